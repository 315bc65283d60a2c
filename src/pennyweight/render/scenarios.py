"""Scenarios of a run: which passed, and every verdict with its evidence."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from pennyweight.render.plain import csv_table, json_text, markdown_table, one_line
from pennyweight.render.terminal import table_text
from pennyweight.stored_runs.transcript import asked_of, left_out_of, script_of, turns_of, written
from pennyweight.text.safe import clean

_FACTS = (
    *("task_id", "subject", "tier", "attempt", "category", "capability", "status", "passed"),
    *("expected_behaviors", "observed_behaviors", "violated", "undecided"),
)
_TEXTS = (
    *("input", "messages", "response", "reasoning", "target", "answer", "correct"),
    *("error", "error_kind", "work"),
)
NEEDED = frozenset((*_FACTS, "checks", "weight", "error"))
"""The columns of the records of a run; the records of one task are read with all columns."""
CHECKED = {True: "passed", False: "not passed", None: "undecided"}
SCORED = {True: "right", False: "wrong", None: "no target"}
_SIGNS = {True: "✓", False: "✗", None: "?"}
_COLUMNS = {
    "violated": ({"must_not"}, True),
    "not seen": ({"expected", "check"}, False),
    "undecided": ({"must_not", "expected", "check"}, None),
}
"""The columns that name checks: of which roles, and with which result."""


def attempts(frames: Iterable[pl.DataFrame]) -> list[dict[str, Any]]:
    """Return the attempts at scenarios with their verdicts; one that failed has none."""
    found = []
    for frame in frames:
        if "checks" not in frame.columns:
            continue
        failed = (frame["status"] == "error") & frame["weight"].is_not_null()
        for row in frame.filter(frame["checks"].is_not_null() | failed).iter_rows(named=True):
            one = {name: row.get(name) for name in _FACTS}
            checks = json.loads(row["checks"] or "[]")
            error = {} if row["checks"] else {"error": row["error"]}
            found.append({**one, **error, "checks": checks})
    return found


def attempts_at(task: str, frames: Iterable[pl.DataFrame]) -> list[dict[str, Any]]:
    """Return all attempts at one task, checked or not, with prompts and replies."""
    found = []
    for frame in frames:
        for row in frame.filter(frame["task_id"] == task).iter_rows(named=True):
            one = {name: row.get(name) for name in (*_FACTS, *_TEXTS)}
            checks = row.get("checks")
            found.append({**one, "checks": json.loads(checks) if checks else []})
    return found


def rows(found: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Make one row for each task of each subject in each tier."""
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for one in found:
        groups.setdefault((one["task_id"], one["subject"], one["tier"]), []).append(one)
    table = [[*("task", "subject", "tier", "category", "passed"), *_COLUMNS, "could not be made"]]
    for (task, subject, tier), several in groups.items():
        passed = sum(one["passed"] is True for one in several)
        named = [_names(several, *what) for what in _COLUMNS.values()]
        category = one_line(several[0]["category"] or "—", 16)
        head = [one_line(x, 24) for x in (task, subject, tier)]
        made = [one for one in several if "error" not in one]
        table.append([*head, category, f"{passed}/{len(made)}", *named, _failed(several)])
    return table


def _failed(several: Sequence[Mapping[str, Any]]) -> str:
    """Write how many attempts failed, and the error of the first."""
    errors = [one["error"] for one in several if "error" in one]
    if not errors:
        return "—"
    count = "" if len(several) == 1 else f"{len(errors)} of {len(several)}, "
    return one_line(f"{count}{errors[0] or 'unknown error'}", 120)


def _names(several: Sequence[Mapping[str, Any]], roles: Container[str], holds: bool | None) -> str:
    checks = (check for one in several for check in one["checks"] if check["holds"] is holds)
    names = dict.fromkeys(check["name"] for check in checks if check["role"] in roles)
    return one_line("; ".join(names), 60) or "—"


def render(found: Sequence[Mapping[str, Any]], format: str) -> str:  # noqa: A002
    """Write the table of scenarios."""
    table = rows(found)
    if format == "csv":
        return csv_table(table)
    if format == "markdown":
        return markdown_table(table, right=(4,))
    head, *body = table
    several = [i for i in (1, 2) if len({row[i] for row in body}) > 1]
    columns = (0, *several, 3, 4)
    shown = []
    for row in body:
        problems = [f"{head[i]}: {row[i]}" for i in (5, 6, 7, 8) if row[i] != "—"]
        shown.append([*(row[i] for i in columns), "; ".join(problems) or "—"])
    return table_text([*(head[i] for i in columns), "problems"], shown, right=(len(columns) - 1,))


def verdict_lines(check: Mapping[str, Any]) -> list[str]:
    """Write one verdict with its evidence."""
    role = {"expected": "expected", "must_not": "must not", "check": "check"}[check["role"]]
    holds = check["holds"]
    good = not holds if check["role"] == "must_not" and holds is not None else holds
    lines = [f"{_SIGNS[good]} {role}: {check['name']}", f"    {one_line(check['why'], 200)}"]
    for found in check["evidence"][:3]:
        place = f", {found['start']}–{found['end']}" if "start" in found else ""
        lines.append(f"    {found['of']}{place}: {one_line(found['text'], 120)!r}")
    return lines


def render_attempts(found: Sequence[Mapping[str, Any]], format: str) -> str:  # noqa: A002
    """Write attempts for the terminal, or as JSON."""
    if format == "json":
        shown = [{k: v for k, v in one.items() if k != "work"} for one in found]
        turns = [[list(turn) for turn in turns_of(one)] for one in found]
        whole = [{**one, "turns": t} if t else one for one, t in zip(shown, turns, strict=True)]
        return json_text({"attempts": whole})
    return clean("\n".join(line for one in found for line in (*_attempt(one), "")))


def _attempt(one: Mapping[str, Any]) -> list[str]:
    where = f"{one['subject']}, {one['tier']}, attempt {one['attempt']}"
    lines = [f"{one['task_id']} ({where}): {_state(one)}", ""]
    if talk := turns_of(one):
        lines += ["Said:", *written([*asked_of(one)[:-1], *talk]), ""]
    else:
        later = [("user, later", line) for line in script_of(one)]
        lines += ["Asked:", *written([*asked_of(one), *later]), ""]
    if one["reasoning"]:
        lines += ["Thought:", one["reasoning"], ""]
    if one["response"] is not None and not talk:
        lines += ["Replied:", one["response"], ""]
    if one["error"]:
        lines += [f"Error ({one['error_kind'] or one['status']}): {one['error']}", ""]
    if one["status"] != "error" and one["target"] is not None and not one["checks"]:
        answer = "no answer was found" if one["answer"] is None else f"answer: {one['answer']}"
        lines += [f"{answer}; target: {one['target']}", ""]
    left_out = [f"Left out of the checks: {f['path']} {f['why']}." for f in left_out_of(one)]
    lines += [*left_out, ""] if left_out else []
    return lines + [line for check in one["checks"] for line in verdict_lines(check)]


def _state(one: Mapping[str, Any]) -> str:
    if one["checks"]:
        return CHECKED[one["passed"]]
    if one["status"] != "ok":
        return str(one["status"])
    return CHECKED[one["passed"]] if one["passed"] is not None else SCORED[one["correct"]]
