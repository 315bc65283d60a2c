"""The kind of a failure, recognised from what an agent printed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pennyweight.models.failure import Kind

_FULL = re.compile(
    r"prompt is too long|context (window|length)|context_length|output token maximum"
    r"|exceeds the maximum number of tokens",
    re.IGNORECASE,
)
"""The agent filled the model's context. That is its own doing, like running out of turns."""

_SIGNS: tuple[tuple[Kind, str], ...] = (
    ("quota", r"credit balance|insufficient_(quota|balance)|billing|usage limit|payment|\b402\b"),
    ("quota", r"TerminalQuotaError|quota.*(per day|daily)|hit your limit"),
    ("rate_limit", r"\b429\b|rate.?limit|too many requests|resource.?exhausted|quota"),
    ("auth", r"\b40[13]\b|api.?key|/login|log ?in\b|unauthori[sz]ed|authenticat|forbidden"),
    ("auth", r"permission.?denied|oauth|credentials|FatalAuth"),
    ("content_filter", r"usage policy|content.?(filter|policy)|prohibited"),
    ("not_found", r"\b404\b|not_found_error|model.*(not found|does not exist|not supported)"),
    ("server", r"\b5\d\d\b|overloaded|internal.?server|server.?error|unavailable|high demand"),
    ("timeout", r"timed? ?out|timeout|deadline"),
    (
        "connection",
        r"connect|network|fetch failed|socket|ECONN|ENOTFOUND|EAI_AGAIN|stream (error|d)",
    ),
)


def kind_of(said: str) -> Kind | None:
    """Return the kind of failure that a message is about; None if the agent filled its context.

    A message without any of the known signs is a fault that a retry does not fix.
    """
    if _FULL.search(said):
        return None
    for kind, signs in _SIGNS:
        if re.search(signs, said, re.IGNORECASE):
            return kind
    return "function"
