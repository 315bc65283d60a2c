"""Attempts at one task in full: what was asked and answered, what failed, every verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pennyweight.render.scenarios import verdict_lines
from pennyweight.runs.transcript import asked_of, script_of, turns_of, written
from pennyweight.text.safe import clean

CHECKED = {True: "passed", False: "not passed", None: "undecided"}
SCORED = {True: "right", False: "wrong", None: "no target"}


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
