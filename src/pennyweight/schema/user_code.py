"""Functions of the user that a suite names as module:function, such as checks and models.

Several suites in one process may each have a module called `rules`. So the modules of a folder
belong to that folder: while the code of one folder is loaded, modules of the others are hidden.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from pennyweight.errors import DeclarationError, UsageError, unknown
from pennyweight.schema.audit import is_audited, note_use

_FOLDER: ContextVar[Path | None] = ContextVar("folder", default=None)
_FORBIDDEN: ContextVar[bool] = ContextVar("forbidden", default=False)
_MODULES: dict[Path, dict[str, ModuleType]] = {}
"""The modules that were loaded from each folder."""
_REGISTERED: dict[str, Callable[..., Any]] = {}
"""The functions that were passed in from Python, by their paths."""
_CHANGED: dict[Path, int] = {}
"""When each file was last changed, as it was loaded."""
_LOCK = threading.RLock()
_INSTALLED = {"site-packages", "dist-packages"}


@contextmanager
def suite_folder(folder: Path) -> Iterator[None]:
    """Look for the user's functions in the folder of a suite while its checks are read or run."""
    token = _FOLDER.set(folder)
    try:
        yield
    finally:
        _FOLDER.reset(token)


def current_folder() -> Path | None:
    """Return the folder of the suite whose checks are read or run."""
    return _FOLDER.get()


@contextmanager
def functions_forbidden() -> Iterator[None]:
    """Refuse to load any function, while a suite is read that someone uploaded."""
    token = _FORBIDDEN.set(True)
    try:
        yield
    finally:
        _FORBIDDEN.reset(token)


def are_functions_forbidden() -> bool:
    """Whether a suite is read that may name no code and no files, such as an upload."""
    return _FORBIDDEN.get()


def load_function(path: str, folder: Path | None = None) -> Callable[..., Any]:
    """Load module:function from a suite's folder, the working directory or an installed package."""
    module_name, _, attribute = path.rpartition(":")
    if _FORBIDDEN.get():
        raise UsageError("An uploaded suite cannot name a function.")
    if is_audited():
        note_use(f"call the function {path}")
        return lambda *_: None
    if path in _REGISTERED:
        return _REGISTERED[path]
    if module_name == "__main__":
        raise UsageError(
            f"The function {attribute!r} was passed in from Python and exists only there. Continue "
            "there: pennyweight.resume(run, suite=suite)."
        )
    try:
        module = load_module(module_name, folder or _FOLDER.get())
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(f"Module {module_name!r} cannot be imported ({reason}).") from error
    function = getattr(module, attribute, None)
    if not callable(function):
        known = [n for n, v in vars(module).items() if callable(v)]
        raise UsageError(unknown(f"In module {module_name!r}, function", attribute, known))
    return function  # type: ignore[no-any-return]


def function_path(function: Callable[..., Any]) -> str:
    """Return the path of a function or of another callable, such as `rules:answer`.

    >>> function_path(len), function_path(partial(int, base=2))
    ('builtins:len', 'builtins:int')
    """
    inner = function.func if isinstance(function, partial) else inspect.unwrap(function)
    named = inner if inspect.isroutine(inner) or inspect.isclass(inner) else type(inner)
    module = getattr(named, "__module__", None) or "builtins"
    return f"{module}:{named.__qualname__}"


def register_function(path: str, function: Callable[..., Any]) -> None:
    """Let `load_function` find a function of this process under a path."""
    _REGISTERED[path] = function


def load_file(path: Path, what: str) -> ModuleType | None:
    """Load a file of the user's, again if it has changed; `what` it has, for a person to confirm.

    None while a suite of unknown origin is only read: its code must not run.
    """
    if _FORBIDDEN.get():
        raise UsageError(f"An uploaded suite cannot name a file of code ({path.name}).")
    if is_audited():
        note_use(f"run {what} in {path}")
        return None
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file.")
    folder = path.parent.resolve()
    with _LOCK:
        changed = path.stat().st_mtime_ns
        if _CHANGED.get(path.resolve(), changed) != changed:
            _MODULES.get(folder, {}).pop(path.stem, None)
            sys.modules.pop(path.stem, None)
        _CHANGED[path.resolve()] = changed
        try:
            return _load_from(path.stem, folder)
        except DeclarationError as error:
            raise UsageError(str(error)) from error
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise UsageError(f"{path}: cannot be imported ({reason}).") from error


def code_mark(function: Callable[..., Any]) -> str:
    """Return a short hash of the file that a function is written in, or of its code."""
    code: Any = inspect.unwrap(function)
    if isinstance(code, partial):
        code = inspect.unwrap(code.func)
    if not (inspect.isroutine(code) or inspect.isclass(code)):
        code = type(code)  # an object that can be called
    file = inspect.getsourcefile(code)
    source = Path(file).read_bytes() if file and Path(file).is_file() else b""
    held = source or repr(_code_parts(code.__code__)).encode()
    return hashlib.blake2b(held, digest_size=8).hexdigest()


def _code_parts(value: Any) -> Any:
    """Return code as values that are the same in every process: no addresses, and sets in order."""
    if isinstance(value, CodeType):
        return [value.co_code, [_code_parts(one) for one in value.co_consts], value.co_names]
    if isinstance(value, frozenset | tuple):
        parts = [repr(_code_parts(one)) for one in value]
        return sorted(parts) if isinstance(value, frozenset) else parts
    return value


def model_name(model: str | Callable[..., Any]) -> str:
    """Return the name of a model; a function gets one under which it is found."""
    if isinstance(model, str):
        return model
    path = function_path(model)
    register_function(path, model)
    return f"python:{path}"


def load_module(name: str, folder: Path | None = None) -> ModuleType:
    """Load a module from a folder, else from the working directory, else as Python finds it."""
    with _LOCK:
        for place in dict.fromkeys((folder, Path.cwd())):
            if place is not None and module_file(name, place) is not None:
                return _load_from(name, place.resolve())
        importlib.invalidate_caches()
        return importlib.import_module(name)


def module_file(name: str, folder: Path) -> Path | None:
    """Return the file of a module in a folder; None if there is none."""
    path = folder.joinpath(*name.split("."))
    candidates = (path.with_name(f"{path.name}.py"), path / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)


def _load_from(name: str, folder: Path) -> ModuleType:
    """Load a module of a folder; modules of the same name from elsewhere stay as they are."""
    modules = _MODULES.setdefault(folder, {})
    _show(folder)
    if name in modules:
        return modules[name]
    top = name.partition(".")[0]
    hidden = {n: m for n, m in _family(top) if not _comes_from(m, folder)}
    for one in hidden:
        del sys.modules[one]
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))
        new = {n: m for n, m in list(sys.modules.items()) if n not in before}
        modules |= {n: m for n, m in new.items() if _comes_from(m, folder)}
        modules |= {n: m for n, m in _family(top) if _comes_from(m, folder)}
        sys.modules.update(hidden)


def _show(folder: Path) -> None:
    """Make the modules of one folder visible, also to later imports, and hide the others'."""
    for other, modules in _MODULES.items():
        for name, module in modules.items():
            if other != folder and sys.modules.get(name) is module:
                del sys.modules[name]
    for name, module in _MODULES[folder].items():
        sys.modules.setdefault(name, module)
    folders = [str(one) for one in _MODULES]
    sys.path[:] = [one for one in sys.path if one not in folders or one == str(Path.cwd())]
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _family(top: str) -> Iterator[tuple[str, ModuleType]]:
    """Yield a module and its submodules, if they are loaded."""
    for name, module in list(sys.modules.items()):
        if name == top or name.startswith(f"{top}."):
            yield name, module


def _comes_from(module: ModuleType, folder: Path) -> bool:
    """Return whether a module is in a folder, and not merely installed below it."""
    places = [getattr(module, "__file__", None), *(getattr(module, "__path__", None) or ())]
    for one in filter(None, places):
        place = Path(one).resolve()
        if place.is_relative_to(folder):
            return not _INSTALLED & set(place.relative_to(folder).parts)
    return False
