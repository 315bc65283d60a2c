"""scipy.special, imported on first use, because loading it takes longer than loading Polars."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class _Special:
    """Stands for the module until one of its functions is used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("scipy.special"), name)


special: Any = _Special()
