"""Tests mirror the source: `src/pennyweight/a/b.py` is tested in `tests/a/test_b.py`."""

import ast
import re
from pathlib import Path, PurePosixPath

from code_tree import MODULES, tree

REPOSITORY = Path(__file__).parent.parent
HEADING = "Tested elsewhere:"


def mirror(module: str) -> str:
    path = PurePosixPath(module)
    return f"tests/{path.parent}/test_{path.name}".replace("/./", "/")


def covered_elsewhere() -> dict[str, str]:
    """Read the lines `    b.py: tests/a/test_c.py` from the docstrings of the packages.

    `*.py` stands for every module of the package that has no test file of its own.
    """
    tests = {}
    for module in MODULES:
        if not module.endswith("__init__.py"):
            continue
        _, _, listed = (ast.get_docstring(tree(module), clean=False) or "").partition(HEADING)
        package = PurePosixPath(module).parent
        for name, test in re.findall(r"^    (\S+\.py): (\S+)$", listed, re.MULTILINE):
            named = str(package / name)
            mine = [one for one in MODULES if PurePosixPath(one).parent == package]
            own = [one for one in mine if not (REPOSITORY / mirror(one)).exists()]
            tests |= dict.fromkeys(own if name == "*.py" else [named], test)
    return tests


def test_every_module_has_a_test_file() -> None:
    elsewhere = covered_elsewhere()
    missing = {
        module
        for module in MODULES
        if not module.endswith(("__init__.py", "__main__.py"))
        if not (REPOSITORY / mirror(module)).exists() and module not in elsewhere
    }
    assert not missing


def test_what_is_covered_elsewhere_is_there() -> None:
    wrong = []
    for module, test in covered_elsewhere().items():
        if module not in MODULES:
            wrong.append(f"{module} does not exist")
        elif not (REPOSITORY / test).exists():
            wrong.append(f"{module}: {test} does not exist")
        elif (REPOSITORY / mirror(module)).exists():
            wrong.append(f"{module}: {mirror(module)} exists, so no line is needed")
    assert not wrong
