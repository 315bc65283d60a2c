"""Scenarios in a suite: behaviours, criteria and the turns of a scripted user."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pennyweight.checks import CHECKS
from pennyweight.checks.behaviour import NOT, Behaviour, definitions, read_behaviour
from pennyweight.checks.scenario import Scenario
from pennyweight.schema.kinds import WRONG, AnyOf, ListOf, MapOf, ParsedBy, Text
from pennyweight.schema.problems import Problems
from pennyweight.schema.structs import Field, Struct
from pennyweight.schema.tree import Node

DEFINITIONS = definitions()
"""The definitions that the JSON schema of a suite refers to."""

_KNOWN_AT_THE_END = {"cost", "judge_score"}
"""Checks of values that are known only when an attempt is over."""
LATER = "later"
"""The role of a scripted turn that follows a reply."""

_BEHAVIOUR = ParsedBy(read_behaviour, {"$ref": "#/$defs/behavior"}, "a check or a sentence")
_SEVERAL = ListOf(_BEHAVIOUR, "a list of behaviours", lone=True)

_LINE = Text("text that is not empty", filled=True)

_TURN = Struct(
    "a turn",
    (
        Field("say", _LINE, "What the user says next.", required=True),
        Field("if", _BEHAVIOUR, "The condition: a check of the reply before."),
        Field("else", _LINE, "What the user says if the condition does not hold."),
    ),
    {"user": "say", "when": "if", "otherwise": "else"},
    only_with=(("else", "if"),),
)

_TURNS = Field(
    "turns",
    ListOf(AnyOf((_TURN, _LINE)), "a list of turns", lone=True),
    "The user's turns after the first reply.",
)
_RESULTS = Field(
    "tool_results",
    MapOf(Text()),
    "The result of each tool when the model calls it; the model then continues.",
)
FIELDS = (
    Field("expected_behaviors", _SEVERAL, "Behaviours that must be observed.").also(
        "expected_behaviours", "expected_behavior"
    ),
    Field("must_not", _SEVERAL, "Behaviours that must never be observed.").also("must_nots"),
    Field("checks", _SEVERAL, "Further checks that must hold; they do not count in the score."),
    Field(
        "evaluation_criteria",
        AnyOf((_SEVERAL, MapOf(_BEHAVIOUR))),
        "Further checks that must hold: a list, or a mapping with a name for each.",
    ),
    _TURNS,
    _RESULTS,
)


def criteria(given: Any) -> tuple[Any, ...]:
    """Read criteria as behaviours: a list, or a mapping with a name for each."""
    given = parsed(given)
    if not isinstance(given, Mapping):
        return tuple(given) if isinstance(given, list | tuple) else (given,)
    if any(str(key).removeprefix(NOT) in CHECKS for key in given):
        return (given,)
    return tuple(_with_name(str(name), one) for name, one in given.items())


def _with_name(name: str, given: Any) -> Any:
    if isinstance(given, Mapping):
        return {"name": name, **given}
    bare = str(given).strip()
    if bare.removeprefix(NOT) in CHECKS:
        return {"name": name, bare: None}
    return {"name": name, "judge": given}


def read_scenario(row: Mapping[str, Any], problems: Problems, *, judged: bool) -> Scenario | None:
    """Read the scenario of a task; None if it has no checks.

    A sentence is for a judge, so it is a problem if the suite has none (`judged`).
    """
    expected, must_not, checks = (
        tuple(_behaviours(row.get(name, ()), name, problems, judged=judged))
        for name in ("expected_behaviors", "must_not", "checks")
    )
    if not (expected or must_not or checks):
        return None
    return Scenario(
        expected,
        must_not,
        checks,
        pass_score=row.get("pass_score"),
        name=row.get("name"),
        weight=row.get("weight", 1.0),
        required=row.get("required", False),
    )


def _behaviours(
    given: Sequence[Any], key: str, problems: Problems, *, judged: bool
) -> list[Behaviour]:
    behaviours: list[Behaviour] = []
    for number, one in enumerate(given, 1):
        place = f"{key}[{number}]"
        behaviour = _BEHAVIOUR.read(Node.of(one), place, problems)
        if behaviour is WRONG:
            continue
        asked = [b for b in behaviour.leaves() if b.check.name in {"judge", "judge_score"}]
        if asked and not judged:
            problems.add(
                0,
                f"{place}: {asked[0].name[:60]!r} is for a judge, but the suite has none. "
                "Name one under 'judge:', or write a check, such as {contains: refund}.",
            )
        if behaviour.name in {b.name for b in behaviours}:
            problems.add(
                0, f"{place}: {behaviour.name[:60]!r} appears twice; give one of them a 'name'."
            )
        behaviours.append(behaviour)
    return behaviours


def read_script(row: Mapping[str, Any], problems: Problems) -> tuple[str, ...]:
    """Read what follows the first reply, each line as JSON: results of tools, then turns."""
    lines: list[dict[str, Any]] = []
    if row.get("tool_results") is not None:
        results = _RESULTS.kind.read(Node.of(parsed(row["tool_results"])), "tool_results", problems)
        lines += [] if results is WRONG else [{"results": results}]
    if row.get("turns") is not None:
        turns = _TURNS.kind.read(Node.of(parsed(row["turns"])), "turns", problems)
        for number, turn in enumerate([] if turns is WRONG else turns, 1):
            table: dict[str, Any] = {"say": turn} if isinstance(turn, str) else turn
            if "if" in table:
                _check_condition(table["if"], f"turns[{number}].if", problems)
                table = {**table, "if": table["if"].plain()}
            lines.append(table)
    return tuple(map(json.dumps, lines))


def parsed(value: Any) -> Any:
    """Return the value of a cell: a mapping or list if it is one in JSON, else the text itself."""
    if isinstance(value, str) and value.lstrip()[:1] in {"{", "["}:
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _check_condition(condition: Behaviour, name: str, problems: Problems) -> None:
    check = condition.check
    if check.by != "record" or check.name in _KNOWN_AT_THE_END or check.family == "files":
        problems.add(
            0,
            f"{name}: {condition.key} cannot be decided during the conversation; use a check "
            "that looks at the reply alone, such as contains.",
        )
