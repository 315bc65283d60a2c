"""Attempts at one task in full: what was asked and answered, what failed, every verdict."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from assay.report.scenarios import verdict_lines
from assay.text.safe import clean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CHECKED = {True: "passed", False: "not passed", None: "undecided"}
SCORED = {True: "right", False: "wrong", None: "no target"}


def render_attempts(found: Sequence[Mapping[str, Any]], format: str) -> str:  # noqa: A002
    """Write attempts for the terminal, or as JSON."""
    if format == "json":
        return json.dumps({"attempts": found}, indent=2, ensure_ascii=False) + "\n"
    return clean("\n".join(line for one in found for line in (*_attempt(one), "")))


def _attempt(one: Mapping[str, Any]) -> list[str]:
    where = f"{one['subject']}, {one['tier']}, attempt {one['attempt']}"
    lines = [f"{one['task_id']} ({where}): {_state(one)}", "", "Asked:", *_asked(one), ""]
    if one["reasoning"]:
        lines += ["Thought:", one["reasoning"], ""]
    if one["response"] is not None:
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


def _asked(one: Mapping[str, Any]) -> list[str]:
    """Write the turns that were sent; one turn alone needs no name."""
    turns = json.loads(one["messages"]) if one["messages"] else []
    if len(turns) < 2:
        return [turns[0]["content"] if turns else one["input"] or ""]
    return [f"{turn['role']}: {turn['content']}" for turn in turns]
