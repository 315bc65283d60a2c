"""Imports point downwards only, and what is heavy is loaded when it is used."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pennyweight
from pennyweight.cli import COMMANDS

ROOT = Path(pennyweight.__file__).parent

LAYERS = (
    *("errors", "record", "stats", "define", "text", "measures", "metrics", "catalogue"),
    *("schema", "sources", "scoring", "checks", "suite", "gates", "models", "agent", "store"),
    *("runs", "engine", "judges", "render", "api", "web", "cli", "pytest_plugin"),
)
"""From the bottom to the top; a module may import those before its own, and its own."""

FILES = sorted(ROOT.rglob("*.py"))


def layer(module: str) -> str:
    return module.split(".")[1]


def imported(node: ast.AST) -> Iterator[str]:
    """Yield the modules of the package that a piece of code imports when it runs."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            for other in child.orelse:
                yield from imported(other)
        elif isinstance(child, ast.Import):
            yield from (name.name for name in child.names if name.name.startswith("pennyweight"))
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "relative imports hide what is imported"
            if child.module == "pennyweight":
                yield from (f"pennyweight.{name.name}" for name in child.names)
            elif child.module and child.module.startswith("pennyweight."):
                yield child.module
        else:
            yield from imported(child)


def test_every_module_has_its_layer() -> None:
    found = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in FILES}
    assert found - {"__init__", "__main__"} <= set(LAYERS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_downwards(path: Path) -> None:
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if own in {"__init__", "__main__"}:
        return
    for module in imported(ast.parse(path.read_text(encoding="utf-8"))):
        if module == "pennyweight.__version__":
            continue
        assert LAYERS.index(layer(module)) <= LAYERS.index(own), f"{own} imports {module}"


HEAVY = ("polars", "numpy", "scipy", "rich", "zstandard", "pandas", "fastapi", "uvicorn")
SLOW = (*HEAVY, "sqlalchemy", "yaml", "jinja2", "aiohttp", "starlette", "altair")


@pytest.mark.parametrize(
    "code",
    [
        "import pennyweight",
        "import sys; sys.argv = ['pennyweight', '--help']; from pennyweight.cli import main",
        "import sys; sys.argv = ['pennyweight', '--version']; from pennyweight.cli import main",
    ],
)
def test_help_and_import_load_nothing_heavy(code: str) -> None:
    ended = (
        "\ntry: main()\nexcept SystemExit as end: assert not end.code\n" if "main" in code else ""
    )
    check = f"\nimport sys; print([n for n in {HEAVY!r} if n in sys.modules], file=sys.stderr)"
    command = [sys.executable, "-W", "error", "-c", code + ended + check]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (0, "[]")


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_help_of_every_command_loads_nothing_heavy(name: str) -> None:
    code = (
        f"import sys; sys.argv = ['pennyweight', {name!r}, '--help']\n"
        "from pennyweight.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        f"print([n for n in {SLOW!r} if n in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (0, "[]")


def test_the_public_names_are_there() -> None:
    for name in pennyweight.__all__:
        assert getattr(pennyweight, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        pennyweight.nothing  # noqa: B018
