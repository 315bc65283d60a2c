"""Tool calls: their names, arguments, order and number.

Calls are read from the replies of every provider, and from the output of agents.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal, DecimalException
from typing import Annotated, Any

from pennyweight.checks.attempt import AttemptView, CalledTool
from pennyweight.checks.declaration import CheckResult, Excerpt, check, within
from pennyweight.checks.json_values import same_value
from pennyweight.checks.parameters import Count, Flag, Part, Pattern, Table, Text, Texts, one_of
from pennyweight.checks.search import search, search_text
from pennyweight.text.format import plural


def _found(tool: CalledTool) -> Excerpt:
    return Excerpt(f"tool_calls[{tool.place}]", f"{tool.name}({_written(tool.arguments)})")


def _written(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, ensure_ascii=False, default=str)


def _names(attempt: AttemptView) -> str:
    return ", ".join(tool.name for tool in attempt.tools) or "none"


@check(one_of=("tool", "any", "all"))
def tool_called(
    attempt: AttemptView, tool: Text | None = None, *, any_: Texts = (), all_: Texts = ()
) -> CheckResult:
    """A tool was called: one, `any` of several, or `all` of them.

    >>> tool_called({"tool_calls": '[{"name": "refund", "arguments": "{}"}]'}, "refund").holds
    True
    """
    wanted = (tool,) if tool is not None else any_ or all_
    there = tuple(_found(one) for one in attempt.tools if one.name in wanted)
    called = {one.name for one in attempt.tools}
    holds = all(n in called for n in wanted) if all_ or tool else any(n in called for n in wanted)
    return CheckResult(holds, f"Called: {_names(attempt)}.", there)


@check(some_of=("args", "contains", "pattern"))
def tool_args(
    attempt: AttemptView,
    tool: Text,
    *,
    args: Table | None = None,
    contains: Part | None = None,
    pattern: Pattern | None = None,
    exact: Flag = False,
) -> CheckResult:
    r"""A tool was called with these arguments: the values in `args`, or words in any of them.

    Further arguments are allowed unless `exact: true`. One call that fits is enough.

    >>> calls = '[{"name": "lookup_order", "arguments": "{\\"order_id\\": \\"A-1\\"}"}]'
    >>> tool_args({"tool_calls": calls}, "lookup_order", args={"order_id": "A-1"}).holds
    True
    """
    own = [one for one in attempt.tools if one.name == tool]
    if not own:
        return CheckResult(holds=False, why=f"{tool} was not called. Called: {_names(attempt)}.")
    for one in own:
        text = _written(one.arguments)
        has = args is None or _has(one.arguments, args, exact=exact)
        has = has and (contains is None or search_text(contains, text) is not None)
        if has and (pattern is None or search(pattern, text)):
            return CheckResult(True, "The arguments match.", (_found(one),))
    return CheckResult(False, f"No call of {tool} has these arguments.", tuple(map(_found, own)))


def _has(given: Any, wanted: Mapping[str, Any], *, exact: bool) -> bool:
    if not isinstance(given, Mapping) or (exact and given.keys() != wanted.keys()):
        return False
    return all(name in given and _same(given[name], value) for name, value in wanted.items())


def _same(given: Any, wanted: Any) -> bool:
    """Compare values; a number may be written as text, as models do: 500 equals "500.00"."""
    if isinstance(given, Mapping) and isinstance(wanted, Mapping):
        return given.keys() == wanted.keys() and all(_same(given[k], wanted[k]) for k in given)
    if isinstance(given, list | tuple) and isinstance(wanted, list | tuple):
        return len(given) == len(wanted) and all(map(_same, given, wanted))
    if isinstance(given, str) != isinstance(wanted, str) and not isinstance(wanted, Mapping | list):
        numbers = _number(given), _number(wanted)
        if None not in numbers:
            return numbers[0] == numbers[1]
        return str(given).strip().lower() == str(wanted).strip().lower()
    return same_value(given, wanted)


def _number(value: Any) -> Decimal | None:
    """Return a number, also if it is written as text; else None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = Decimal(str(value).strip().replace(",", ""))
    except DecimalException:
        return None
    return number if number.is_finite() else None


_Order = Annotated[str, one_of("exact", "within")]


@check()
def tool_sequence(attempt: AttemptView, tools: Texts, *, order: _Order = "within") -> CheckResult:
    """Tools were called in this order; other calls in between are allowed unless `order: exact`.

    >>> calls = '[{"name": "find"}, {"name": "check"}, {"name": "refund"}]'
    >>> tool_sequence({"tool_calls": calls}, ["find", "refund"]).holds
    True
    """
    called = [one.name for one in attempt.tools]
    if order == "exact":
        holds = called == list(tools)
    else:
        rest = iter(called)
        holds = all(name in rest for name in tools)
    return CheckResult(holds, f"Called: {_names(attempt)}.", tuple(map(_found, attempt.tools)))


@check(some_of=("max", "min", "exactly"))
def tool_count(
    attempt: AttemptView,
    max_: Count | None = None,
    *,
    min_: Count | None = None,
    exactly: Count | None = None,
    tool: Text | None = None,
) -> CheckResult:
    """The number of tool calls is between `min` and `max`; of all tools, or of one `tool`.

    >>> tool_count({"tool_calls": '[{"name": "find"}, {"name": "find"}]'}, 1, tool="find").holds
    False
    """
    own = [one for one in attempt.tools if tool is None or one.name == tool]
    count = len(own)
    holds = within(count, min_, max_) and (exactly is None or count == exactly)
    why = f"{plural(count, 'call')} of {tool or 'any tool'}."
    return CheckResult(holds, why, tuple(map(_found, own[:5])))
