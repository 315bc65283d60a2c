"""The store of runs, as skins open it and as they name its parts."""

from __future__ import annotations

from pennyweight.store.connection import StoreError
from pennyweight.store.lease import Owner
from pennyweight.store.store import Run, Store

__all__ = ["Owner", "Run", "Store", "StoreError"]
