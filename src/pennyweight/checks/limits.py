"""Limits: time, cost, tokens."""

from __future__ import annotations

from typing import Annotated

from pennyweight.checks.attempt import AttemptView
from pennyweight.checks.declaration import CheckResult, check, within
from pennyweight.checks.parameters import Count, Duration, Positive, one_of
from pennyweight.text.format import declared, duration, money, plural


@check()
def latency(attempt: AttemptView, max_: Duration) -> CheckResult:
    """The reply took at most `max`: milliseconds, or a time such as 2s.

    >>> latency({"latency_ms": 850.0}, "2s").holds
    True
    """
    took = attempt.row.get("latency_ms")
    if took is None:
        return CheckResult(None, "The latency is unknown.")
    return CheckResult(
        took <= max_, f"It took {duration(took)}; at most {declared(max_, 'ms')} is allowed."
    )


@check()
def cost(attempt: AttemptView, max_: Positive) -> CheckResult:
    """The attempt cost at most `max` US dollars.

    >>> cost({"cost_usd": 0.002}, 0.001).why
    'It cost $0.002; at most $0.001 is allowed.'
    """
    paid = attempt.row.get("cost_usd")
    if paid is None:
        return CheckResult(None, "The cost is unknown.")
    return CheckResult(
        paid <= max_, f"It cost {money(paid)}; at most {declared(max_, 'US$')} is allowed."
    )


_Side = Annotated[str, one_of("total", "prompt", "completion")]


@check(some_of=("max", "min"))
def tokens(
    attempt: AttemptView,
    max_: Count | None = None,
    *,
    min_: Count | None = None,
    of: _Side = "total",
) -> CheckResult:
    """The number of tokens: all of them, or only `of: prompt` or `of: completion`.

    >>> tokens({"prompt_tokens": 40, "completion_tokens": 12}, 50).holds
    False
    """
    sides = ("prompt", "completion") if of == "total" else (of,)
    used = [attempt.row.get(f"{side}_tokens") for side in sides]
    known = [n for n in used if n is not None]
    if len(known) < len(used):
        return CheckResult(None, "The number of tokens is unknown.")
    total = sum(known)
    return CheckResult(within(total, min_, max_), f"{plural(total, 'token')} ({of}).")
