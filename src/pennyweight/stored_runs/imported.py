"""Records of runs that were imported: what the store has no column for is in `extra`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from pennyweight.define import dtype
from pennyweight.record import BY_NAME, STORED
from pennyweight.sources.log_source import TOOL_PASSED

if TYPE_CHECKING:
    from pennyweight.store.store import Spending, Store, StoredRun

PACKED = tuple(name for name in BY_NAME if name not in {column.name for column in STORED})
"""The columns of the record that the store's table does not have."""
NEEDED = ("extra", "passed", "target")
_DECIDED = ("tool", "correct", "judge_passed", "judge_scores")


def is_imported(settings: Mapping[str, Any]) -> bool:
    """Whether a run was imported from a log, and so has no suite."""
    return "log" in settings


def spent_on(run: StoredRun, store: Store) -> Spending:
    """Return what a run cost: the sums of its ledger, with an imported run's records added."""
    spent = store.spent(run.id)
    if not is_imported(run.settings):
        return spent
    for records in store.records(run.id, {"cost_usd", "prompt_tokens", "completion_tokens"}):
        cost, prompt, completion = (
            None if records[name].null_count() == records.height else records[name].sum()
            for name in ("cost_usd", "prompt_tokens", "completion_tokens")
        )
        spent["usd"] = _added(spent["usd"], cost)
        spent["prompt_tokens"] = _added(spent["prompt_tokens"], prompt)
        spent["completion_tokens"] = _added(spent["completion_tokens"], completion)
    return spent


def _added(known: Any, more: Any) -> Any:
    return known if more is None else more + (known or 0)


def unpacked(frame: pl.DataFrame, *, rematch: bool = False) -> pl.DataFrame:
    """Add the columns that `extra` holds. With `rematch`, leave out what decides beside answers."""
    extras = [extra_of(text) for text in frame["extra"]]
    if rematch:
        extras = [{n: v for n, v in extra.items() if n not in _DECIDED} for extra in extras]
        unasked = pl.when(pl.col("target").is_null()).then(pl.col("passed"))
        frame = frame.with_columns(unasked.alias("passed"), pl.col("passed").alias(TOOL_PASSED))
    return frame.with_columns(_column(name, [e.get(name) for e in extras]) for name in PACKED)


def extra_of(text: str | None) -> dict[str, Any]:
    """Read the cell `extra` of a record."""
    if not text:
        return {}
    from pennyweight.store.cells import json_cell  # noqa: PLC0415

    found: dict[str, Any] = json_cell(text, dict, "extra of a record")
    return found


def steps_of(messages: Any) -> tuple[list[Any] | None, list[Any] | None]:
    """Split messages into those that were sent first and the steps that an agent took then.

    >>> asked, steps = steps_of([{"role": "user"}, {"role": "assistant", "tool_calls": [1]}])
    >>> len(asked), len(steps)
    (1, 1)
    """
    said = [one for one in messages if isinstance(one, dict)] if isinstance(messages, list) else []
    replies = [n for n, one in enumerate(said) if one.get("role") == "assistant"]
    if not replies:
        return said or None, None
    asked, steps = said[: replies[0]], said[replies[0] :]
    single = len(steps) == 1 and not steps[0].get("tool_calls")
    return asked or None, None if single else steps


def _column(name: str, values: Sequence[Any]) -> pl.Series:
    cells = [_cell(value) for value in values] if dtype(name) == pl.String else values
    return pl.Series(name, cells, dtype=dtype(name), strict=False)


def _cell(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
