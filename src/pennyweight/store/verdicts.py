"""The scenarios of a run, and the verdicts about behaviours that are not in the record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import delete, select

from pennyweight.record import KEY, AttemptKey
from pennyweight.store.bulk_insert import insert
from pennyweight.store.cells import checked, json_cell
from pennyweight.store.connection import guarded
from pennyweight.store.store import Store
from pennyweight.store.tables import SCENARIO, VERDICT


@dataclass(frozen=True, slots=True)
class BehaviourVerdict:
    """A verdict about one behaviour of one attempt."""

    key: AttemptKey
    mark: str
    """The behaviour: a hash of its text."""
    who: str
    said_of: str
    """A hash of the response. The verdict does not apply to any other response."""
    holds: bool | None
    why: str
    at: float
    error: bool = False
    evidence: str | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> BehaviourVerdict:
        """Make a verdict from a row of the table."""
        cells = checked(VERDICT, row)
        rest = {name: cells[name] for name in _COLUMNS if name not in KEY}
        return cls(AttemptKey.of(cells), **{**rest, "error": bool(cells["error"])})


def save_scenarios(store: Store, run: str, scenarios: Mapping[str, str]) -> None:
    """Store the scenarios of a run by task, replacing the previous ones."""
    rows = [(run, task, text) for task, text in scenarios.items()]
    with guarded(store.address), store.engine.begin() as connection:
        connection.execute(delete(SCENARIO).where(SCENARIO.c.run == run))
        insert(connection, SCENARIO, ("run", "task_id", "scenario"), rows)


def scenarios_of(store: Store, run: str) -> dict[str, str]:
    """Return the scenarios of a run by task, as JSON."""
    query = select(SCENARIO.c.task_id, SCENARIO.c.scenario).where(SCENARIO.c.run == run)
    with guarded(store.address), store.engine.connect() as connection:
        return {row[0]: scenario_text(row[1]) for row in connection.execute(query)}


def scenario_text(text: Any) -> str:
    """Return the text of a scenario; one that cannot be read is an error."""
    json_cell(text, _is_scenario, "a scenario")
    return str(text)


def _is_scenario(value: Any) -> bool:
    shape: dict[str, Any] = {
        **dict.fromkeys(("expected", "must_not", "checks"), list),
        **dict.fromkeys(("pass_score", "weight"), int | float | None),
        "name": str | None,
        "required": bool,
    }
    return isinstance(value, dict) and all(
        name in shape and isinstance(v, shape[name]) for name, v in value.items()
    )


_COLUMNS = tuple(column.name for column in VERDICT.c)


def save_verdicts(store: Store, verdicts: Iterable[BehaviourVerdict]) -> None:
    """Store verdicts. The previous verdict by the same author is replaced."""
    tables = [{**verdict.key._asdict(), **asdict(verdict)} for verdict in verdicts]
    rows = [tuple(table[name] for name in _COLUMNS) for table in tables]
    with guarded(store.address), store.engine.begin() as connection:
        insert(connection, VERDICT, _COLUMNS, rows)


def verdicts_of(store: Store, run: str) -> list[BehaviourVerdict]:
    """Return the verdicts of a run, oldest first."""
    query = select(VERDICT).where(VERDICT.c.run == run)
    with guarded(store.address), store.engine.connect() as connection:
        rows = connection.execute(query.order_by(VERDICT.c.at, VERDICT.c.who)).mappings()
        return [BehaviourVerdict.of({**row}) for row in rows]
