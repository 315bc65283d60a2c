"""The source as the tests of its layout read it: paths and syntax trees."""

import ast
from functools import cache
from pathlib import Path

import pennyweight

ROOT = Path(pennyweight.__file__).parent
MODULES = tuple(sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py")))


@cache
def tree(module: str) -> ast.Module:
    return ast.parse((ROOT / module).read_text(encoding="utf-8"))


def names(module: str) -> set[str]:
    """All names that a module defines: functions, classes, variables, attributes of `self`."""
    defined = set()
    for node in ast.walk(tree(module)):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                defined.add(name)
            case ast.ClassDef(name=name):
                defined.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                defined.add(name)
            case ast.Attribute(attr=name, value=ast.Name(id="self" | "cls")):
                defined.add(name)
    return defined
