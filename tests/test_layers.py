"""Imports point downwards only, and what is heavy is loaded when it is used."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pennyweight
from code_tree import MODULES, tree
from pennyweight.cli.group import COMMANDS

PICTURE = Path(__file__).parent.parent / "CONTRIBUTING.md"


def layers() -> tuple[str, ...]:
    """Read the layers from the picture in CONTRIBUTING.md, from the bottom to the top.

    Each line has a name for people, two or more spaces, and the packages from left to right.
    """
    _, _, rest = PICTURE.read_text(encoding="utf-8").partition("```text\n")
    rows = [line.split("  ", 1)[1].split() for line in rest.partition("```")[0].splitlines()]
    return tuple(package for row in reversed(rows) for package in row)


LAYERS = layers()
"""A module may import the packages before its own, and its own."""

SKINS = {"cli", "web", "pytest_plugin"}
"""What people and tools use: each parses, calls one function of `api` and renders the result."""

BELOW_SKINS = {"api", "render", "errors", "text.format", "text.safe"}
"""All that the skins may import beside each other."""


def layer(module: str) -> str:
    """Return the package or top-level module that a file belongs to."""
    return module.split("/", maxsplit=1)[0].removesuffix(".py")


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


def test_the_picture_shows_every_package_once() -> None:
    packages = {layer(module) for module in MODULES} - {"__init__", "__main__"}
    assert sorted(LAYERS) == sorted(packages)


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_downwards(module: str) -> None:
    own = layer(module)
    if own in {"__init__", "__main__"}:
        return
    for name in imported(tree(module)):
        if name == "pennyweight.__version__":
            continue
        other = name.split(".")[1]
        assert LAYERS.index(other) <= LAYERS.index(own), f"{module} imports {name}"


def below_api(module: str) -> list[str]:
    """Return what a module of a skin imports from below `api`."""
    allowed = SKINS | BELOW_SKINS | {"__version__"}
    names = [name.removeprefix("pennyweight.") for name in imported(tree(module))]
    return [name for name in names if name not in allowed and name.split(".")[0] not in allowed]


@pytest.mark.parametrize("module", [m for m in MODULES if layer(m) in SKINS])
def test_skins_import_only_what_is_meant_for_them(module: str) -> None:
    assert not below_api(module), "call a function of `api` instead"


def test_no_package_has_the_name_of_a_public_function() -> None:
    packages = {layer(module) for module in MODULES}
    assert not packages & set(pennyweight.__all__)


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


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["score", "a.jsonl"], ("sqlalchemy", "yaml", "jinja2", "aiohttp", "asyncio")),
        (["compare", "a.jsonl", "a.jsonl"], ("sqlalchemy", "yaml", "jinja2", "aiohttp")),
        (["gate", "a.jsonl", "--policy", "policy.yaml"], ("sqlalchemy", "jinja2", "aiohttp")),
        (["runs", "--store", "store.db"], ("sqlalchemy.dialects.postgresql", "psycopg")),
    ],
)
def test_a_command_loads_no_database_that_it_does_not_use(
    arguments: list[str], names: tuple[str, ...], tmp_path: Path
) -> None:
    tmp_path.joinpath("a.jsonl").write_text('{"task_id": "a", "correct": true}\n')
    tmp_path.joinpath("policy.yaml").write_text("gates:\n  - accuracy >= 0\n")
    code = (
        f"import sys; sys.argv = ['pennyweight', *{arguments!r}]\n"
        "from pennyweight.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print([n for n in {names!r} if n in sys.modules], file=sys.stderr)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1:] == ["[]"], done.stderr


def test_the_public_names_are_there() -> None:
    for name in pennyweight.__all__:
        assert getattr(pennyweight, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        pennyweight.nothing  # noqa: B018
