"""Remarks of people: a verdict and a note about a record, tags and notes of a run."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Literal

from pennyweight.api.records import row
from pennyweight.errors import UsageError
from pennyweight.record import AttemptKey
from pennyweight.store.remarks import Remark, add_remark, remarks
from pennyweight.store.store import Store

__all__ = [
    "VERDICTS",
    "PersonVerdict",
    "Remark",
    "remark_on_record",
    "remark_on_run",
    "remarks",
    "tags_of",
]

PersonVerdict = Literal["right", "wrong", "unsure"]
VERDICTS: tuple[PersonVerdict, ...] = ("right", "wrong", "unsure")
ANONYMOUS = "someone"
_CHANGING = threading.Lock()
"""Held while the tags of a run are read and changed."""


def remark_on_record(
    store: Store,
    key: AttemptKey,
    *,
    who: str = "",
    verdict: PersonVerdict | None = None,
    note: str | None = None,
) -> None:
    """Store a person's verdict or note about a record."""
    row(store, key)
    if not verdict and not (note or "").strip():
        raise UsageError("Give a verdict, a note, or both.")
    add_remark(
        store, key, who=_storable(who) or ANONYMOUS, verdict=verdict, note=_stored_note(note)
    )


def remark_on_run(
    store: Store,
    run: str,
    *,
    who: str = "",
    note: str | None = None,
    tags: Sequence[str] | None = None,
    add: Sequence[str] = (),
    remove: Sequence[str] = (),
) -> None:
    """Store a note about a run, or change its tags.

    `tags` replaces all tags; `add` and `remove` change the current ones.
    """
    with _CHANGING:
        changed = None
        if tags is not None or add or remove:
            changed = _changed(tags_of(store, run) if tags is None else tags, add, remove)
        if changed is None and not (note or "").strip():
            raise UsageError("Give a tag, a note, or both.")
        author = _storable(who) or ANONYMOUS
        add_remark(store, run, who=author, note=_stored_note(note), tags=changed)


def tags_of(store: Store, run: str) -> tuple[str, ...]:
    """Return the tags that a run has now."""
    return next((r.tags for r in remarks(store, run) if r.tags is not None), ())


def _changed(tags: Sequence[str], add: Sequence[str], remove: Sequence[str]) -> list[str]:
    remaining = [tag for tag in map(_storable, tags) if tag not in remove]
    return [tag for tag in dict.fromkeys([*remaining, *map(_storable, add)]) if tag]


def _stored_note(note: str | None) -> str | None:
    return None if note is None else _storable(note)


def _storable(text: str) -> str:
    """Remove what no database stores: null characters and unpaired surrogates."""
    return text.replace("\0", "").encode(errors="replace").decode()
