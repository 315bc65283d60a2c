"""Find a function that a suite names, as module:function: beside the suite first.

Suites of one process may each have a `rules.py`. So the modules of a folder are kept for it alone:
while one folder's code is loaded, that of the others is out of sight.
"""

from __future__ import annotations

import importlib
import sys
import threading
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pennyweight.errors import UsageError, unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

FOLDER: ContextVar[Path | None] = ContextVar("folder", default=None)
"""The folder of the suite whose checks are read or run; code of its writer is looked for there."""

REFUSED: ContextVar[bool] = ContextVar("refused", default=False)
"""Whether functions are refused, since what is read comes from somebody who may not name any."""

_KEPT: dict[Path, dict[str, ModuleType]] = {}
"""The modules that were loaded from each folder."""
_LOCK = threading.RLock()
_INSTALLED = {"site-packages", "dist-packages"}


def load_function(path: str, folder: Path | None = None) -> Callable[..., Any]:
    """Find a function by module:function: in a suite's folder, where we are, or installed."""
    module_name, _, attribute = path.rpartition(":")
    if REFUSED.get():
        raise UsageError("What is uploaded may not name a function.")
    try:
        module = load_module(module_name, folder or FOLDER.get())
    except Exception as wrong:
        said = f"{type(wrong).__name__}: {wrong}"
        raise UsageError(f"Module {module_name!r} cannot be imported ({said}).") from wrong
    function = getattr(module, attribute, None)
    if not callable(function):
        known = [n for n, v in vars(module).items() if callable(v)]
        raise UsageError(unknown(f"In module {module_name!r}, function", attribute, known))
    return function  # type: ignore[no-any-return]


def load_module(name: str, folder: Path | None = None) -> ModuleType:
    """Load a module: beside the suite, else where we are, else as Python finds it."""
    with _LOCK:
        for one in dict.fromkeys((folder, Path.cwd())):
            if one is not None and file_of(name, one) is not None:
                return _own(name, one.resolve())
        importlib.invalidate_caches()
        return importlib.import_module(name)


def file_of(name: str, folder: Path) -> Path | None:
    """Find the file of a module below a folder."""
    place = folder.joinpath(*name.split("."))
    ways = (place.with_name(f"{place.name}.py"), place / "__init__.py")
    return next((way for way in ways if way.is_file()), None)


def _own(name: str, folder: Path) -> ModuleType:
    """Load a module of a folder; what others have loaded under its names stays theirs."""
    kept = _KEPT.setdefault(folder, {})
    if name in kept:
        _show(folder)
        return kept[name]
    _show(folder)
    top = name.partition(".")[0]
    hidden = {n: m for n, m in _family(top) if not _beneath(m, folder)}
    for one in hidden:
        del sys.modules[one]
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        module = importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))
        new = {n: m for n, m in list(sys.modules.items()) if n not in before}
        kept |= {n: m for n, m in new.items() if _beneath(m, folder)}
        kept |= {n: m for n, m in _family(top) if _beneath(m, folder)}
        sys.modules.update(hidden)
    return module


def _show(folder: Path) -> None:
    """Let the modules of one folder be seen, and of no other; also by what is imported later."""
    for other, modules in _KEPT.items():
        for name, module in modules.items():
            if other != folder and sys.modules.get(name) is module:
                del sys.modules[name]
    for name, module in _KEPT[folder].items():
        sys.modules.setdefault(name, module)
    places = [str(one) for one in _KEPT]
    sys.path[:] = [one for one in sys.path if one not in places or one == str(Path.cwd())]
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _family(top: str) -> Iterator[tuple[str, ModuleType]]:
    """Give a module and those below it, as far as they are loaded."""
    for name, module in list(sys.modules.items()):
        if name == top or name.startswith(f"{top}."):
            yield name, module


def _beneath(module: ModuleType, folder: Path) -> bool:
    """Whether a module comes out of a folder, and is not merely installed below it."""
    places = [getattr(module, "__file__", None), *(getattr(module, "__path__", None) or ())]
    for one in filter(None, places):
        place = Path(one).resolve()
        if place.is_relative_to(folder):
            return not _INSTALLED & set(place.relative_to(folder).parts)
    return False
