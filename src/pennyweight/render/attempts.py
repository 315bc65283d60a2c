"""Attempts at a task in full: what was asked and replied, and why one did not pass."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from pennyweight.record import decided_by
from pennyweight.render.plain import json_text, one_line
from pennyweight.render.terminal import Terminal
from pennyweight.stored_runs.transcript import asked_of, left_out_of, script_of, turns_of, written
from pennyweight.text.format import count, plural
from pennyweight.text.safe import clean

_FACTS = (
    *("task_id", "subject", "tier", "attempt", "category", "capability", "status", "passed"),
    *("expected_behaviors", "observed_behaviors", "violated", "undecided"),
)
NEEDED = frozenset((*_FACTS, "checks", "weight", "error"))
"""The columns of records that the scenarios of a run are shown with."""
_TEXTS = (
    *("input", "messages", "response", "reasoning", "target", "answer", "correct"),
    *("error", "error_kind", "work"),
)
_JUDGED = ("judge_passed", "judge_score", "judge_scores", "judgments", "impl_rate")
CHECKED = {True: "passed", False: "not passed", None: "undecided"}
SCORED = {True: "right", False: "wrong", None: "no target"}
_SIGNS = {True: "✓", False: "✗", None: "?"}
_COLOURS = {True: "green", False: "red", None: "yellow"}
_COLUMNS = {
    "violated": ({"must_not"}, True),
    "not seen": ({"expected", "check"}, False),
    "undecided": ({"must_not", "expected", "check"}, None),
}
"""The columns that name checks: of which roles, and with which result."""
MAX_OUTPUT_LINES, MAX_DIFF_LINES = 15, 120
"""The lines of a command's output, its last, and of a diff that are shown."""
_WORK = ("exit_code", "ended", "checks", "diff", "files", "left_out")
"""What JSON has of the work of an agent."""
Line = tuple[str, str]
"""A line and its style."""


def attempts_of(frames: Iterable[pl.DataFrame]) -> Iterator[dict[str, Any]]:
    """Yield attempts with prompts and replies, checked or not."""
    for frame in frames:
        for row in frame.iter_rows(named=True):
            one = {name: row.get(name) for name in (*_FACTS, *_TEXTS)}
            scores = {"scores": json.loads(row["scores"])} if row.get("scores") else {}
            judged = {name: row.get(name) for name in _JUDGED if name in row}
            checks = json.loads(row.get("checks") or "[]")
            yield {**one, "checks": checks, **scores, **judged}


def checked_attempts(frames: Iterable[pl.DataFrame]) -> list[dict[str, Any]]:
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


def _work(one: Mapping[str, Any]) -> Mapping[str, Any]:
    """Read what an agent did in its workspace; nothing for a model."""
    try:
        read = json.loads(one.get("work") or "{}")
    except ValueError:
        return {}
    return read if isinstance(read, dict) and "exit_code" in read else {}


def _good(one: Mapping[str, Any]) -> bool | None:
    """Whether an attempt passed; None if nothing decides that."""
    if one["status"] != "ok":
        return False
    decided: bool | None = one["passed"]
    if decided_by(one) == "judge":
        return one["judge_passed"]  # type: ignore[no-any-return]
    return decided if one["checks"] or decided is not None else one["correct"]


def why_failed(several: Sequence[Mapping[str, Any]]) -> str:
    """Say in a few words why attempts at a task did not pass, by the first that did not."""
    bad = [one for one in several if _good(one) is not True]
    if any(one["checks"] for one in several):
        return _problems(several)
    first = next((one for one in bad if _good(one) is False), None)
    return _reason(first, several) if first else ""


def _reason(one: Mapping[str, Any], several: Sequence[Mapping[str, Any]]) -> str:
    if one["status"] == "error":
        return _problems(several)
    if one["status"] != "ok":
        return one_line(f"{one['status']}: {one['error'] or _work(one).get('ended', '')}", 120)
    broken = [check for check in _work(one).get("checks", ()) if not check["holds"]]
    if broken:
        return "; ".join(f"{c['check']} {one_line(c['command'], 60)}: {_ended(c)}" for c in broken)
    if _work(one).get("exit_code"):
        return f"the agent exited with code {_work(one)['exit_code']}"
    if decided_by(one) == "judge":
        return one_line("; ".join(text.strip() for text, _ in _judgments(one) if text), 120)
    if one["target"] is None:
        return ""
    answer = "no answer" if one["answer"] is None else f"answer {one_line(one['answer'], 40)}"
    return f"{answer}, target {one_line(one['target'], 40)}"


def _problems(several: Sequence[Mapping[str, Any]]) -> str:
    """Name the checks that kept attempts at a scenario from passing, and the first error."""
    found = {title: _names(several, *what) for title, what in _COLUMNS.items()}
    found["could not be made"] = _failed(several)
    return "; ".join(f"{title}: {text}" for title, text in found.items() if text)


def _failed(several: Sequence[Mapping[str, Any]]) -> str:
    """Write how many attempts failed, and the error of the first."""
    errors = [one["error"] for one in several if one["status"] == "error"]
    if not errors:
        return ""
    count = "" if len(several) == 1 else f"{len(errors)} of {len(several)}, "
    return one_line(f"{count}{errors[0] or 'unknown error'}", 120)


def _names(several: Sequence[Mapping[str, Any]], roles: Container[str], holds: bool | None) -> str:
    checks = (check for one in several for check in one["checks"] if check["holds"] is holds)
    names = dict.fromkeys(check["name"] for check in checks if check["role"] in roles)
    return one_line("; ".join(names), 60)


def _ended(check: Mapping[str, Any]) -> str:
    return f"exit code {check['after']}" if check["ended"] == "exit" else str(check["ended"])


def render(found: Iterable[Mapping[str, Any]], format: str) -> str:  # noqa: A002
    """Write attempts for the terminal, or as JSON."""
    if format == "json":
        return json_text({"attempts": [_plain(one) for one in found]})
    terminal = Terminal()
    for number, one in enumerate(found):
        if number:
            terminal.line("")
        lines = list(_attempt(one))
        while not lines[-1][0]:
            lines.pop()
        for text, style in lines:
            for line in clean(text).split("\n"):
                terminal.line(line, style)
    return terminal.text()


def _plain(one: Mapping[str, Any]) -> dict[str, Any]:
    work, turns = _work(one), [list(turn) for turn in turns_of(one)]
    shown = {name: value for name, value in one.items() if name != "work"}
    shown |= {"turns": turns} if turns else {}
    shown |= {"workspace": {n: work[n] for n in _WORK if n in work}} if work else {}
    return {**shown, "why": why_failed([one])}


def _attempt(one: Mapping[str, Any]) -> Iterator[Line]:
    where = f"{one['subject']}, {one['tier']}, attempt {one['attempt']}"
    yield f"{one['task_id']} ({where}): {_state(one)}", f"bold {_COLOURS[_good(one)]}"
    yield "", ""
    yield from _judgments(one)
    if talk := turns_of(one):
        yield from _section("Said:", written([*asked_of(one)[:-1], *talk]))
    else:
        later = [("user, later", line) for line in script_of(one)]
        yield from _section("Asked:", written([*asked_of(one), *later]))
    if one["reasoning"]:
        yield from _section("Thought:", [one["reasoning"]])
    if one["response"] is not None and not talk:
        yield from _section("Replied:", [one["response"]])
    if one["error"]:
        yield f"Error ({one['error_kind'] or one['status']}): {one['error']}", "red"
        yield "", ""
    yield from _workspace(_work(one))
    if one["status"] != "error" and one["target"] is not None and decided_by(one) != "judge":
        yield f"Answer: {one['answer'] or 'no answer was found'}", _COLOURS[one["correct"]]
        yield f"Target: {one['target']}", "green"
        yield "", ""
    if left_out := left_out_of(one):
        for file in left_out:
            yield f"Left out of the checks: {file['path']} {file['why']}.", ""
        yield "", ""
    for check in one["checks"]:
        yield from _verdict(check)
    for name, value in one.get("scores", {}).items():
        yield f"{name}: {json.dumps(value, ensure_ascii=False)}", ""


def judgments_text(one: Mapping[str, Any]) -> str:
    """Return the judges' scores of a record with the evidence of each item, as lines."""
    return "\n".join(text for text, _ in _judgments(one)).rstrip()


def _judgments(one: Mapping[str, Any]) -> Iterator[Line]:
    """Show the judges' scores, and the evidence of each item."""
    for judgment in one.get("judgments") or ():
        score = judgment["score"]
        said = judgment["status"] if score is None else f"{score:.2f} of 1"
        yield f"{judgment['judge']}: {said}", _COLOURS[one.get("judge_passed")]
        try:
            items = json.loads(judgment["items"] or "{}")
        except ValueError:
            continue
        for name, given in items.items() if isinstance(items, dict) else ():
            mark = given if isinstance(given, dict) else {"score": given}
            evidence = one_line(str(mark.get("evidence") or ""), 160)
            yield f"    {name}: {mark.get('score')}{f', {evidence}' if evidence else ''}", ""
    logged = one.get("impl_rate")
    if not one.get("judgments") and logged is not None and decided_by(one) == "judge":
        yield f"judge: {logged:.2f} of 1", _COLOURS[one["judge_passed"]]
        yield "", ""
    if one.get("judgments"):
        yield "", ""


def _section(title: str, lines: Iterable[str]) -> Iterator[Line]:
    yield title, "dim"
    yield from ((line, "") for line in lines)
    yield "", ""


def _workspace(work: Mapping[str, Any]) -> Iterator[Line]:
    """Show how the checks of an agent's work ended, and what it changed."""
    if not work:
        return
    if work["exit_code"] or work.get("ended") != "exit":
        yield f"The agent ended: {work.get('ended')}, exit code {work['exit_code']}.", "red"
        yield "", ""
    for check in work.get("checks", ()):
        good = bool(check["holds"])
        text = f"{_SIGNS[good]} {check['check']}: {check['command']}: {_ended(check)}"
        yield f"{text} (before: {check['before']})", _COLOURS[good]
        lines = [] if good else str(check["output"]).rstrip().splitlines()
        if hidden := max(0, len(lines) - MAX_OUTPUT_LINES):
            yield f"    … {plural(hidden, 'earlier line')}", "dim"
        yield from ((f"    {line}", "") for line in lines[hidden:])
    if work.get("checks"):
        yield "", ""
    files = {name: n for name, n in work.get("files", {}).items() if n}
    changed = ", ".join(f"{count(n)} {name}" for name, n in files.items())
    yield f"Files: {changed or 'none changed'}.", "dim"
    lines = str(work.get("diff") or "").splitlines()
    yield from ((line, _diff_style(line)) for line in lines[:MAX_DIFF_LINES])
    if len(lines) > MAX_DIFF_LINES:
        left = plural(len(lines) - MAX_DIFF_LINES, "more line")
        yield f"… {left}; --format json has the whole diff.", "dim"
    yield "", ""


def _diff_style(line: str) -> str:
    """Return the colour of a line of a diff.

    >>> _diff_style("+++ b/a.py"), _diff_style("+x"), _diff_style("-x"), _diff_style(" x")
    ('bold', 'green', 'red', '')
    """
    if line.startswith(("+++ ", "--- ")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


def _verdict(check: Mapping[str, Any]) -> Iterator[Line]:
    """Show one verdict with its evidence."""
    role = {"expected": "expected", "must_not": "must not", "check": "check"}[check["role"]]
    holds = check["holds"]
    good = not holds if check["role"] == "must_not" and holds is not None else holds
    yield f"{_SIGNS[good]} {role}: {check['name']}", _COLOURS[good]
    yield f"    {one_line(check['why'], 200)}", ""
    for found in check["evidence"][:3]:
        place = f", {found['start']}–{found['end']}" if "start" in found else ""
        yield f"    {found['of']}{place}: {one_line(found['text'], 120)!r}", "dim"


def _state(one: Mapping[str, Any]) -> str:
    if one["checks"]:
        return CHECKED[one["passed"]]
    if one["status"] != "ok":
        return str(one["status"])
    if decided_by(one) == "judge":
        return f"{CHECKED[one['judge_passed']]}, decided by the judge"
    return CHECKED[one["passed"]] if one["passed"] is not None else SCORED[one["correct"]]
