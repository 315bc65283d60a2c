"""Names say one thing each, and private names stay private."""

import ast
from collections import defaultdict
from collections.abc import Iterator

from code_tree import MODULES, names, tree

PLATFORM = {"os", "signal", "time", "socket"}
"""Modules whose functions differ between platforms: `hasattr(os, "nice")` is a fair question."""

PUBLIC_UNDERSCORE = {"_replace", "_asdict", "_fields", "_make", "_exit", "_repr_html_", "_typeshed"}
"""Documented names that begin with an underscore: of named tuples, `os`, notebooks, typing."""


def test_a_class_name_is_defined_once() -> None:
    modules = defaultdict(list)
    for module in MODULES:
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.ClassDef):
                modules[node.name].append(module)
    twice = {name for name, places in modules.items() if len(places) > 1}
    assert not twice


def test_no_module_uses_private_names_of_others() -> None:
    found = {f"{module}: {use}" for module in MODULES for use in private_uses(module)}
    assert not found


def private_uses(module: str) -> Iterator[str]:
    own = names(module)
    for node in ast.walk(tree(module)):
        match node:
            case ast.ImportFrom(module=source, names=imported):
                yield from (f"{source}.{a.name}" for a in imported if is_private(a.name))
                if source and any(is_private(part) for part in source.split(".")):
                    yield source
            case ast.Attribute(attr=name) if is_private(name) and name not in own:
                yield ast.unparse(node)
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]):
                if is_private(name):
                    yield ast.unparse(node)


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC_UNDERSCORE


def test_nothing_is_told_apart_by_hasattr() -> None:
    found = set()
    for module in MODULES:
        for node in ast.walk(tree(module)):
            match node:
                case ast.Call(func=ast.Name(id="hasattr"), args=[ast.Name(id=name), _]):
                    if name not in PLATFORM:
                        found.add(f"{module}: {ast.unparse(node)}")
                case ast.Call(func=ast.Name(id="hasattr")):
                    found.add(f"{module}: {ast.unparse(node)}")
    assert not found


def test_constants_say_what_they_limit() -> None:
    found = {module for module in MODULES if names(module) & {"MOST", "KEPT", "LARGE"}}
    assert not found
