"""The words, numbers and signs of arithmetic in running text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

_TOKENS = re.compile(
    r"""
      (?P<skip>[ \t\n\u00a0\u202f]+|<<[^<>\n]*>>|(?<!\d)\*\*|\*\*(?![ \t]*[\d(])
        |\\[,;!:() \[\]]|\$\$|[`&_]|\\left|\\right|\\displaystyle|\\boxed)
    | (?P<unit>\\(?:text|mathrm|textbf)\{[^{}\n]*\})
    | (?P<clock>\d++:\d++)
    | (?P<number>(?!0[xX][\da-fA-F])(?:\d{1,3}(?:\\?,\d{3})++(?![\d,])|\d++(?!,\d))
        (?:\.\d++(?!\.\.|…|\\l?dots))?+(?![,.]?\d|\{,\})|(?<![\d.])\.\d++)
    | (?P<badnumber>\d[\d,.]*(?:\{,\}[\d,.]+)*|[∛∜])
    | (?P<equals>=(?!=)|equals\b|(?:is|are)[ ]equal[ ]to\b)
    | (?P<about>≈|\\approx(?![a-z]))
    | (?P<money>\\?[$€£¥₹¢])
    | (?P<percent>\\?%|percent\b)
    | (?P<power>\^|\*\*)
    | (?P<times>[*×·⋅∗]|\\times|\\cdot|(?:times|multiplied[ ]by)\b)
    | (?P<over>[/÷]|\\div|divided[ ]by\b)
    | (?P<plus>\+|plus\b)
    | (?P<minus>[-−–]|minus\b)
    | (?P<root>√|\\?sqrt\b)
    | (?P<frac>\\[dt]?frac(?![a-z]))
    | (?P<open>[(\[{]) | (?P<close>[)\]}])
    | (?P<square>[²³])
    | (?P<word>[^\W\d_]+(?:['’-][^\W\d_]+)*(?:_\{?\w+\}?)?)
    | (?P<stop>.)
    """,
    re.VERBOSE,
)
BEFORE = frozenset(
    """of for than half twice thrice double triple third thirds quarter quarters fifth by per until
    every another extra additional more less fewer squared cubed square root log ln sin cos tan exp
    mod average mean ratio product difference remaining at in from between""".split()  # noqa: SIM905
)
"""An expression that follows one of these words may be only a part of what the writer computes."""

TOTALS = frozenset({"total", "sum", "area", "volume", "distance"})
"""«a total of 5 + 3» is an expression of its own."""

ARTICLES = frozenset({"the", "his", "her", "their", "its", "those", "these", "all"})
AFTER = frozenset(
    {
        "r",
        "remainder",
        "rem",
        "am",
        "pm",
        "o'clock",
        "o’clock",
        "squared",
        "cubed",
        "dozen",
        "hundred",
        "thousand",
        "million",
        "billion",
        "trillion",
    }
)
"""A number before one of these words is not its value."""

UNIT_LETTERS = frozenset("mghslLVWNJ")
"""Letters that are units after a space, as in 20 m."""

STARTS = frozenset({"number", "money", "open", "frac", "root"})
"""The kinds of tokens that an operand begins with."""

GO_ON = frozenset({"plus", "minus", "times", "over", "end", "close"})
"""The kinds of tokens that may follow the words after a number of a calculation."""


class Token(NamedTuple):
    """A word, a number or a sign of a text."""

    kind: str
    text: str
    start: int
    end: int
    attached: bool
    """Whether nothing is between it and the token before."""


def tokens_of(text: str, start: int, end: int) -> Iterator[Token]:
    """Split a part of a text into tokens; what has no meaning in arithmetic is left out."""
    before = start
    for match in _TOKENS.finditer(text, start, end):
        kind = match.lastgroup or "stop"
        if kind != "skip":
            first, last = match.span()
            yield Token(kind, match[0], first, last, first == before)
            before = last


NumberOf = Callable[[Token], tuple[int, int, object]]
"""Reads a number: its digits, the power of ten to divide them by, and its text."""


def number_of(token: Token) -> tuple[int, int, object]:
    """Read a number.

    >>> number_of(Token("number", "1,250.5", 0, 7, False))
    (12505, 10, '1,250.5')
    """
    whole, _, decimals = token.text.replace("\\", "").replace(",", "").partition(".")
    return int(whole + decimals), 10 ** len(decimals), token.text


def is_variable(word: str) -> bool:
    """Whether a word is the name of a variable."""
    return (len(word) == 1 and word not in {"a", "A", "I"}) or "_" in word
