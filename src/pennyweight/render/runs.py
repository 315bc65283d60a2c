"""Runs and baselines as tables or as data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pennyweight.render.format import estimate_cells, heading
from pennyweight.render.plain import cost_text, csv_table, json_text, markdown_table, one_line
from pennyweight.render.terminal import Terminal, fits, labelled, table_text
from pennyweight.render.view import EVERY_ERROR, run_outcome
from pennyweight.store.cells import DamagedRun
from pennyweight.store.lanes.batches import OutBatches
from pennyweight.store.store import Spending, StoredRun
from pennyweight.suite.narrowing import change_words, part_words
from pennyweight.text.format import MISSING, count, declared, money, plural, share
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from pennyweight.gates.baseline import Baseline
    from pennyweight.scoring.estimates import Headline
    from pennyweight.stored_runs.replies import UnscoredReply

_INTERNAL = ("narrowing", "scored")
"""Settings that say nothing to a person."""
RunEntry = tuple[StoredRun, dict[str, int], Spending]
"""A run, its records by status, and what it cost."""


def facts(run: StoredRun, statuses: dict[str, int], spent: Spending) -> dict[str, Any]:
    """Describe a run as plain data."""
    return {
        "id": run.id,
        "suite": run.suite,
        "status": run.status,
        "attempts": run.attempts,
        "records": statuses,
        "spent": spent,
        "created": datetime.fromtimestamp(run.created, UTC).isoformat(timespec="seconds"),
        "path": run.place,
        "data_hash": run.data_hash,
        "narrowed": part_words(run.settings) or None,
        "changed": change_words(run.settings) or None,
        "settings": run.settings,
    }


def _made(statuses: dict[str, int]) -> int:
    """Count the attempts that were made; one that ended in an error was not.

    >>> _made({"ok": 3, "truncated": 1, "error": 2})
    4
    """
    return sum(statuses.values()) - statuses.get("error", 0)


def render(
    entries: Sequence[RunEntry],
    format: str,  # noqa: A002
    damaged: Sequence[DamagedRun] = (),
    headlines: Mapping[str, Headline] | None = None,
    out: Mapping[str, OutBatches] | None = None,
) -> str:
    """Write a list of runs with their headlines; `damaged` ones only as JSON.

    `out` has what is out in batches, of runs that wait for some.
    """
    known, away = headlines or {}, out or {}
    if format == "json":
        unread = [{**asdict(one), "advice": one.advice} for one in damaged]
        runs = [
            {
                **facts(*one),
                "headline": _headline(known.get(one[0].id)),
                **({"out": asdict(away[one[0].id])} if one[0].id in away else {}),
            }
            for one in entries
        ]
        return json_text({"runs": runs, "damaged": unread})
    if format == "csv":
        head = ["run", "suite", "status", "made", "attempts", "errors", "cost_usd", "narrowed"]
        rows = (
            [
                *(run.id, run.suite, run.status, _made(n), run.attempts, n.get("error", 0)),
                *(spent["usd"], part_words(run.settings)),
            ]
            for run, n, spent in entries
        )
        return csv_table([head, *rows])
    head = ["run", "suite", "status", "made", "headline", "cost"]
    below = "\n" if format == "table" else ", "

    def body(*, narrow: bool = False) -> list[list[str]]:
        return [
            _row(*entry, known.get(entry[0].id), away.get(entry[0].id), below=below, narrow=narrow)
            for entry in entries
        ]

    right = range(3, 6)
    if format == "markdown":
        return markdown_table([head, *body()], right)
    if fits([head, *body()]):
        return table_text(head, body(), right=right)
    below_run = [[f"{id_}\n{word}", suite, *rest] for id_, suite, word, *rest in body(narrow=True)]
    return table_text([*head[:2], *head[3:]], below_run, right=range(2, 5))


def _headline(headline: Headline | None) -> dict[str, Any] | None:
    if headline is None:
        return None
    e = headline.estimate
    found = {"metric": headline.metric, "value": e.value, "low": e.low, "high": e.high}
    return {**found, "side": headline.side or None}


def _row(
    run: StoredRun,
    statuses: dict[str, int],
    spent: Spending,
    headline: Headline | None,
    out: OutBatches | None,
    *,
    below: str,
    narrow: bool,
) -> list[str]:
    made = f"{count(_made(statuses))}/{count(run.attempts)}"
    if errors := statuses.get("error", 0):
        made += f"{below}{plural(errors, 'error')}"
    if out:
        made += f"{below}{count(out.requests)} out in batches"
    name, cost = one_line(run.suite, 16 if narrow else 20), cost_text(spent) or MISSING
    cost = cost.replace("least ", "least\n") if narrow else cost
    part = one_line(part_words(run.settings), 40)
    suite = f"{name}{below}{part}" if part else name
    value = MISSING
    if headline is not None and headline.estimate.value is not None:
        number, ends = estimate_cells(headline.metric, headline.estimate)
        value = f"{heading(headline.metric)} {number}" + (f"{below}{ends}" if ends else "")
        if headline.side:
            value += f"{below}{one_line(headline.side, 16 if narrow else 24)}"
    outcome, _ = run_outcome(run.status, run.attempts, sum(statuses.values()), errors)
    word = "no result" if outcome == EVERY_ERROR else outcome.partition(",")[0]  # see `made`
    return [run.id, suite, word, made, value, cost]


def out_fact(out: OutBatches, format: str) -> Any:  # noqa: A002
    """Return what is out in batches as a fact of a run.

    >>> out_fact(OutBatches(2, 1_500, 700), "table")
    '1,500 requests in 2 batches, 700 of them answered'
    """
    if format == "json":
        return asdict(out)
    where = plural(out.batches, "batch", "batches")
    return f"{plural(out.requests, 'request')} in {where}, {count(out.done)} of them answered"


def render_one(entry: RunEntry, format: str, **more: Any) -> str:  # noqa: A002
    """Write one run in full; `more` are facts that only some runs have."""
    run = entry[0]
    found = {**facts(*entry), **more}
    if format == "json":
        return json_text({**found, "text": run.text})
    found = {n: v for n, v in found.items() if n != "scenarios" and v not in (None, "")}
    counts = sum(entry[1].values()), entry[1].get("error", 0)
    found["status"], _ = run_outcome(run.status, run.attempts, *counts)
    found["settings"] = {n: v for n, v in run.settings.items() if n not in _INTERNAL}
    rows = [[k, v if isinstance(v, str) else json.dumps(v, default=str)] for k, v in found.items()]
    if format != "table":
        return (csv_table if format == "csv" else markdown_table)([["field", "value"], *rows])
    terminal = Terminal()
    terminal.print(labelled([name, one_line(_words(v), 400)] for name, v in found.items()))
    terminal.print(f"'pennyweight score {run.id}' computes its metrics.", style="dim")
    return terminal.text()


def _words(value: Any, name: str = "") -> str:
    """Write a fact for a person, without unknown values; a `name` that ends in usd is money.

    >>> _words({"calls": 1200, "usd": 0.0019128, "held_usd": None})
    'calls 1,200, cost $0.00191'
    >>> _words({"seed": 1, "tiers": ["T0", "T1"], "match": {"kind": "contains", "value": None}})
    'seed 1; tiers T0, T1; match (kind contains)'
    """
    if isinstance(value, dict):
        known = {k: v for k, v in value.items() if v not in (None, "", [], {})}
        separator = "; " if any(isinstance(v, dict | list) for v in known.values()) else ", "
        words = (
            f"{heading(k) if k != 'usd' else 'cost'} "
            + (f"({_words(v)})" if isinstance(v, dict) else _words(v, k))
            for k, v in known.items()
        )
        return separator.join(words) or "none"
    if isinstance(value, list):
        return ", ".join(map(_words, value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        if name.endswith("usd"):
            return money(value)
        return count(value) if isinstance(value, int) else declared(value)
    return value if isinstance(value, str) else json.dumps(value, default=str)


def render_replies(replies: Sequence[UnscoredReply], format: str) -> str:  # noqa: A002
    """Write replies as text, each under what was asked and whom; a single one alone."""
    if format == "json":
        return json_text({"replies": [asdict(one) for one in replies]})
    names = ("task", "subject", "tier", "attempt", "response", "error")
    if format != "table":
        rows = [[getattr(one, n) for n in names] for one in replies]
        if format == "csv":
            return csv_table([names, *rows])
        return markdown_table([names, *([str(c or "") for c in row] for row in rows)])
    said = [clean(one.response if one.response is not None else one.error or "") for one in replies]
    if len(replies) == 1:
        return f"{said[0]}\n"
    tiers = len({one.tier for one in replies}) > 1
    blocks = []
    for one, text in zip(replies, said, strict=True):
        who = [one.task, one.subject, *([one.tier] if tiers else ())]
        blocks.append(f"{clean(' · '.join(who))}: {clean(one_line(one.input, 60))}\n{text}\n")
    return "\n".join(blocks)


def render_baselines(baselines: Sequence[Baseline], format: str) -> str:  # noqa: A002
    """Write a list of baselines."""
    if format == "json":
        return json_text([asdict(one) for one in baselines])
    head = ["name", "source", "kept", "records", "pass_rate"]
    if format == "csv":
        rows = ([b.name, b.source, moment(b), b.records, b.pass_rate, b.planned] for b in baselines)
        return csv_table([[*head, "planned"], *rows])
    body = [
        [b.name, one_line(b.source), moment(b), _records(b), share(b.pass_rate)] for b in baselines
    ]
    if format == "markdown":
        return markdown_table([head, *body], right=(3, 4))
    return table_text(head, body, right=(3, 4))


def _records(one: Baseline) -> str:
    whole = one.planned is None or one.planned <= one.records
    return count(one.records) if whole else f"{count(one.records)} of {count(one.planned)}"


def moment(one: Baseline) -> str:
    """Write when a baseline was created."""
    return f"{datetime.fromtimestamp(one.created, UTC):%Y-%m-%d %H:%M}"
