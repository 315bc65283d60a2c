"""Several checks together: a share of them is enough."""

from __future__ import annotations

from pennyweight.checks.attempt import AttemptView
from pennyweight.checks.declaration import CheckResult, check
from pennyweight.checks.parameters import Behaviours, Share


@check(by="parts")
def at_least(attempt: AttemptView, share: Share, *, parts: Behaviours) -> CheckResult:
    """A share of several behaviours holds; a `weight` makes one count more than the others.

    Each part is a check or a sentence, with a `weight` of 1 unless it states another. A part of
    weight 0 is only reported.

    >>> parts = [{"contains": "42", "weight": 2}, {"contains": "please"}]
    >>> at_least("It is 42.", 0.5, parts=parts).why
    '67 % hold; at least 50 % is required. Not: contains: please.'
    """
    from pennyweight.checks.behaviour import parts_of, share_that_holds  # noqa: PLC0415

    return share_that_holds(share, parts_of(parts), attempt, {})
