"""scipy.special, imported on first use: it takes as long to load as Polars does."""

from __future__ import annotations

import threading
from importlib import import_module
from typing import Any


class _Special:
    """Stands for the module until one of its functions is asked for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("scipy.special"), name)


special: Any = _Special()


def fetch_early(*more: str) -> None:
    """Import it, and other modules, in the background, while something else is waited for."""

    def fetch() -> None:
        for name in (*more, "scipy.special"):
            import_module(name)

    threading.Thread(target=fetch, name="assay-imports", daemon=True).start()
