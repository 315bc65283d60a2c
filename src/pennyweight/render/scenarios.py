"""Scenarios of a run: which passed, and every verdict with its evidence."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pennyweight.render.plain import csv_table, markdown_table, one_line
from pennyweight.render.terminal import Terminal, borderless
from pennyweight.runs.transcript import asked_of, script_of, turns_of, written
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    import polars as pl

_KEPT = (
    *("task_id", "subject", "tier", "attempt", "category", "capability", "status", "passed"),
    *("expected_behaviors", "observed_behaviors", "violated", "undecided"),
)
_TEXTS = (
    *("input", "messages", "response", "reasoning", "target", "answer", "correct"),
    *("error", "error_kind", "work"),
)
NEEDED = frozenset((*_KEPT, "checks", "weight", "error"))
"""The columns that are read of records; those of one task are read whole."""
CHECKED = {True: "passed", False: "not passed", None: "undecided"}
SCORED = {True: "right", False: "wrong", None: "no target"}
_SIGNS = {True: "✓", False: "✗", None: "?"}


def attempts(frames: Iterable[pl.DataFrame]) -> list[dict[str, Any]]:
    """Give the attempts at scenarios, each with its verdicts; one that failed has none."""
    found = []
    for frame in frames:
        if "checks" not in frame.columns:
            continue
        failed = (frame["status"] == "error") & frame["weight"].is_not_null()
        for row in frame.filter(frame["checks"].is_not_null() | failed).iter_rows(named=True):
            one = {name: row.get(name) for name in _KEPT}
            checks = json.loads(row["checks"] or "[]")
            error = {} if row["checks"] else {"error": row["error"]}
            found.append({**one, **error, "checks": checks})
    return found


def attempts_at(task: str, frames: Iterable[pl.DataFrame]) -> list[dict[str, Any]]:
    """Give all attempts at one task, checked or not, with what was asked and said."""
    found = []
    for frame in frames:
        for row in frame.filter(frame["task_id"] == task).iter_rows(named=True):
            one = {name: row.get(name) for name in (*_KEPT, *_TEXTS)}
            checks = row.get("checks")
            found.append({**one, "checks": json.loads(checks) if checks else []})
    return found


def rows(found: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Lay scenarios out as a table, a row for each task of each subject in each tier."""
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for one in found:
        groups.setdefault((one["task_id"], one["subject"], one["tier"]), []).append(one)
    table = [["task", "subject", "tier", "category", "passed", "violated", "not seen", "undecided"]]
    table[0].append("could not be made")
    for (task, subject, tier), several in groups.items():
        passed = sum(one["passed"] is True for one in several)
        named = [_named(several, *what) for what in _COLUMNS]
        category = one_line(several[0]["category"] or "—", 16)
        head = [one_line(x, 24) for x in (task, subject, tier)]
        made = [one for one in several if "error" not in one]
        table.append([*head, category, f"{passed}/{len(made)}", *named, _failed(several)])
    return table


def _failed(several: Sequence[Mapping[str, Any]]) -> str:
    """Say how many attempts could not be made, and why not the first of them."""
    errors = [one["error"] for one in several if "error" in one]
    if not errors:
        return "—"
    count = "" if len(several) == 1 else f"{len(errors)} of {len(several)}, "
    return one_line(f"{count}{errors[0] or 'no reason is known'}", 120)


_COLUMNS = (("must_not", True), ("expected", False), (None, None))


def _named(several: Sequence[Mapping[str, Any]], role: str | None, holds: bool | None) -> str:
    names: dict[str, int] = {}
    for one in several:
        for check in one["checks"]:
            same = check["holds"] is holds and (role is None or check["role"] == role)
            failed = role == "expected" and check["role"] == "check" and check["holds"] is False
            if same or failed:
                names[check["name"]] = names.get(check["name"], 0) + 1
    return one_line("; ".join(names), 60) or "—"


def render(found: Sequence[Mapping[str, Any]], format: str) -> str:  # noqa: A002
    """Write the table of scenarios."""
    table = rows(found)
    if format == "csv":
        return csv_table(table)
    if format == "markdown":
        return markdown_table(table, right=(4,))
    terminal = Terminal()
    shown = borderless()
    few = [i for i in (1, 2) if len({row[i] for row in table[1:]}) > 1]
    columns = (0, *few, 3, 4)
    for index in columns:
        shown.add_column(table[0][index], justify="right" if index == 4 else "left")
    shown.add_column("what is wrong")
    for row in table[1:]:
        wrong = [f"{table[0][i]}: {row[i]}" for i in (5, 6, 7, 8) if row[i] != "—"]
        shown.add_row(*(row[i] for i in columns), "; ".join(wrong) or "—")
    terminal.print(shown)
    return terminal.text()


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
        told = [{k: v for k, v in one.items() if k != "work"} for one in found]
        turns = [[list(turn) for turn in turns_of(one)] for one in found]
        whole = [{**one, "turns": t} if t else one for one, t in zip(told, turns, strict=True)]
        return json.dumps({"attempts": whole}, indent=2, ensure_ascii=False) + "\n"
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
    return lines + [line for check in one["checks"] for line in verdict_lines(check)]


def _state(one: Mapping[str, Any]) -> str:
    if one["checks"]:
        return CHECKED[one["passed"]]
    if one["status"] != "ok":
        return str(one["status"])
    return CHECKED[one["passed"]] if one["passed"] is not None else SCORED[one["correct"]]
