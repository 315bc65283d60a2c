"""Turn the names that people use into sources: paths, `-`, run ids, unique prefixes, `latest`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pennyweight.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennyweight.store.store import Store


def resolve(names: Sequence[str], store: str | Store | None = None) -> list[Any]:
    """Return what each name stands for: an existing path is a file, anything else a run."""
    if all(name == "-" or Path(name).exists() for name in names):
        return list(names)  # the store is not opened where no run is named
    from pennyweight.runs.source import resolve as found  # noqa: PLC0415

    return list(found(names, open_store(store)))


def unmixed(sources: Sequence[Any]) -> list[Any]:
    """Refuse runs together with files: gates decide on one kind of records."""
    runs = [one for one in sources if not isinstance(one, str)]
    if runs and len(runs) < len(sources):
        raise UsageError(
            "Runs and files cannot be taken together; 'pennyweight export' writes a file."
        )
    return list(sources)


def open_store(store: str | Store | None) -> Store:
    """Return the store at an address; a store is returned as it is."""
    from pennyweight.store.store import Store  # noqa: PLC0415

    return store if isinstance(store, Store) else Store(store)
