"""Scenarios as a person writes them: behaviours, criteria, and a scripted user's lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pennyweight.checks import CHECKS
from pennyweight.checks.behaviour import NOT, definitions, read_behaviour
from pennyweight.checks.scenario import Scenario
from pennyweight.errors import UsageError
from pennyweight.schema.kinds import AnyOf, ListOf, MapOf, ParsedBy, Text
from pennyweight.schema.structs import Field, Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pennyweight.checks.behaviour import Behaviour

DEFINITIONS = definitions()
"""What the JSON schema of a suite refers to."""

_LATER_KNOWN = {"cost", "judge_score"}
"""Checks of what is known only when an attempt is over."""
LATER = "later"
"""The role of a line that the user will say after the reply, as its script decides."""

_BEHAVIOUR = ParsedBy(read_behaviour, lambda: {"$ref": "#/$defs/behavior"}, "a check or a sentence")
_SEVERAL = ListOf(_BEHAVIOUR, "a list of behaviours", lone=True)

_TURN = Struct(
    "a turn",
    (
        Field("say", Text(), "What the user says next.", required=True),
        Field("if", _BEHAVIOUR, "It is said only if this holds of the reply before."),
        Field("else", Text(), "What is said if it does not; nothing, without it."),
    ),
    {"user": "say", "when": "if", "otherwise": "else"},
)

EXPECTED = Field("expected_behaviors", _SEVERAL, "What must be seen.").also(
    "expected_behaviours", "expected_behavior"
)
MUST_NOT = Field("must_not", _SEVERAL, "What must never be seen.").also("must_nots")
CHECKS_ = Field("checks", _SEVERAL, "What else must hold; it does not count in the score.")
CRITERIA = Field(
    "evaluation_criteria",
    AnyOf((_SEVERAL, MapOf(_BEHAVIOUR))),
    "More that must hold: a list, or a mapping with a name for each.",
)
TURNS = Field(
    "turns",
    ListOf(AnyOf((_TURN, Text())), "a list of turns"),
    "What the user says after the first reply, turn by turn.",
)
RESULTS = Field(
    "tool_results",
    MapOf(Text()),
    "What tools give when the model calls them: a text for each tool; then the model goes on.",
)
FIELDS = (EXPECTED, MUST_NOT, CHECKS_, CRITERIA, TURNS, RESULTS)

Tell = "Callable[[str], None]"


def criteria(given: Any) -> tuple[Any, ...]:
    """Read criteria as behaviours: a list, or a mapping with a name for each."""
    given = _parsed(given)
    if not isinstance(given, Mapping):
        return tuple(given) if isinstance(given, list | tuple) else (given,)
    if any(str(key).removeprefix(NOT) in CHECKS for key in given):
        return (given,)
    return tuple(_called(str(name), one) for name, one in given.items())


def _called(name: str, given: Any) -> Any:
    if isinstance(given, Mapping):
        return {"name": name, **given}
    bare = str(given).strip()
    if bare.removeprefix(NOT) in CHECKS:
        return {"name": name, bare: None}
    return {"name": name, "judge": given}


def read_scenario(
    row: Mapping[str, Any], tell: Callable[[str], None], *, judged: bool
) -> Scenario | None:
    """Make the scenario of a task; None where nothing is to be checked.

    A sentence is for a judge: without one (`judged`) it is a mistake.
    """
    found: dict[str, tuple[Behaviour, ...]] = {}
    for name in ("expected_behaviors", "must_not", "checks"):
        found[name] = tuple(_behaviours(row.get(name, ()), name, tell, judged=judged))
    if not any(found.values()):
        return None
    return Scenario(
        found["expected_behaviors"],
        found["must_not"],
        found["checks"],
        pass_score=row.get("pass_score"),
        name=row.get("name"),
        weight=row.get("weight", 1.0),
        required=row.get("required", False),
    )


def _behaviours(
    given: Sequence[Any], key: str, tell: Callable[[str], None], *, judged: bool
) -> list[Behaviour]:
    made: list[Behaviour] = []
    for number, one in enumerate(given, 1):
        try:
            behaviour = read_behaviour(one)
        except UsageError as error:
            tell(f"{key}[{number}]: {error}")
            continue
        if not judged and behaviour.check.name in {"judge", "judge_score"}:
            tell(
                f"{key}[{number}]: {behaviour.name[:60]!r} is for a judge, and the suite has none. "
                "Name one under 'judge:', or write a check, such as {contains: refund}."
            )
        if behaviour.name in {b.name for b in made}:
            tell(f"{key}[{number}]: {behaviour.name[:60]!r} is there twice; give it a 'name'.")
        made.append(behaviour)
    return made


def read_script(row: Mapping[str, Any], tell: Callable[[str], None]) -> tuple[str, ...]:
    """Read what happens after the first reply, each line as JSON: results of tools, then turns."""
    lines: tuple[str, ...] = ()
    results = row.get("tool_results")
    if results is not None:
        given = _parsed(results)
        if isinstance(given, Mapping) and all(isinstance(v, str) for v in given.values()):
            lines = (json.dumps({"results": dict(given)}),)
        else:
            tell("tool_results: a mapping of tools, each with the text that it gives.")
    return lines + (_turns(row["turns"], tell) if row.get("turns") is not None else ())


def _parsed(value: Any) -> Any:
    """Read what a cell of a table holds as JSON."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _turns(given: Any, tell: Callable[[str], None]) -> tuple[str, ...]:
    given = _parsed(given)
    lines = []
    for number, one in enumerate(given if isinstance(given, list | tuple) else [given], 1):
        table = {"say": one} if isinstance(one, str) else one
        try:
            lines.append(json.dumps(_turn(table)))
        except UsageError as error:
            tell(f"turns[{number}]: {error}")
    return tuple(lines)


def _turn(table: Any) -> dict[str, Any]:
    keys = {f.name for f in _TURN.fields}
    if not isinstance(table, Mapping) or not set(table) <= keys or "say" not in table:
        raise UsageError("a turn is what the user says, or a mapping of say, if and else.")
    for key in ("say", "else"):
        if key in table and (not isinstance(table[key], str) or not table[key].strip()):
            raise UsageError(f"{key}: what the user says is text.")
    if "else" in table and "if" not in table:
        raise UsageError("'else' has a meaning only beside 'if'.")
    if "if" not in table:
        return {"say": table["say"]}
    condition = read_behaviour(table["if"])
    check = condition.check
    if check.by != "record" or check.name in _LATER_KNOWN or check.family == "files":
        raise UsageError(
            f"if: {condition.key} cannot be decided while the conversation goes on; 'if' needs a "
            "check that looks at the reply alone, such as contains."
        )
    return {**table, "if": condition.plain()}
