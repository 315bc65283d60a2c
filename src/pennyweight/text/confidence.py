"""The subject's confidence: what it states, and what its token probabilities say."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, isfinite

import orjson
import polars as pl

from pennyweight.text.thinking import spoken

_WORDS = (
    r"confidence[*_`\"']{0,3}[ \t]*[:=：][ \t]*[*_`\"']{0,3}[ \t]*"
    r"([-+]?(?:[0-9]+(?:[.,][0-9]+)*|\.[0-9]+))"
    r"(?:[ \t]*(%|percent)|[ \t]*/[ \t]*([0-9]+(?:\.[0-9]+)?))?"
)
_STATED = f"(?i){_WORDS}"
_LED = r"[*_`\"']{0,3}(?:\b(?:and|final|my|overall|the|with)[ \t]+)*[*_`\"']{0,3}"
_WHOLE = rf"{_LED}{_WORDS}[*_`\"']{{0,3}}"
UNSTATED = rf"(?i)[ \t]*[,;|–—-]?[ \t]*(?:[(\[{{]{_WHOLE}[)\]}}]|{_WHOLE})\.?"
"""A stated confidence with the words and brackets around it: `, with confidence: 80 %`."""


def stated(response: pl.Expr) -> pl.Expr:
    """Read the last confidence that a response states: `CONFIDENCE: 0.8`, `80%` or `8/10`.

    Null if it is outside [0, 1] or not a number. A bare 80 is not read as a percentage, because the
    writer may not have meant one.

    >>> replies = ["Confidence: 0.8", "**CONFIDENCE:** 80 %", "confidence: 8/10", "confidence: 80"]
    >>> pl.DataFrame({"r": replies}).select(stated(pl.col("r")))["r"].to_list()
    [0.8, 0.8, 0.8, None]
    """
    return spoken(response).map_batches(_stated, return_dtype=pl.Float64, is_elementwise=True)


def unstated(text: pl.Series) -> pl.Series:
    """Remove a stated confidence, which is not part of an answer.

    >>> replies = ["4 (CONFIDENCE: 80 %)", "4, with confidence: 0.8.", "confident"]
    >>> unstated(pl.Series(replies)).to_list()
    ['4', '4', 'confident']
    """
    return text.str.replace_all(UNSTATED, "")


def _stated(text: pl.Series) -> pl.Series:
    last = text.str.extract_all(_STATED).list.last()
    parts = last.str.extract_groups(_STATED).struct
    number, percent, whole = (parts.field(name) for name in "123")
    number, whole = (s.cast(pl.Float64, strict=False) for s in (number, whole))
    scale = pl.select(pl.when(percent.is_not_null()).then(100.0).otherwise(whole.fill_null(1.0)))
    value = number / scale.to_series()
    return pl.select(pl.when(value.is_between(0, 1)).then(value)).to_series()


def read_logprobs(text: str) -> list[tuple[str, float | None]] | None:
    """Read a JSON list of tokens with their log-probabilities; None for anything else.

    >>> read_logprobs('[["4", -0.1], ["2", null]]'), read_logprobs('[["4"]]'), read_logprobs("[1")
    ([['4', -0.1], ['2', None]], None, None)
    """
    try:
        pairs = orjson.loads(text)
    except ValueError:
        return None
    return pairs if isinstance(pairs, list) and all(map(_is_pair, pairs)) else None


def _is_pair(pair: object) -> bool:
    return (
        isinstance(pair, list)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and (pair[1] is None or isinstance(pair[1], int | float))
    )


def from_logprobs(tokens: Sequence[tuple[str | bytes, float | None]], answer: str) -> float | None:
    """Multiply the probabilities of the tokens that make up the answer's last occurrence.

    Tokens may be bytes, because a token may be only a part of a character. None if the answer does
    not occur in the tokens as it is, or one of its tokens has no probability.

    >>> round(from_logprobs([("The ", -1.0), ("4", -0.1), ("2", -0.2), (".", 0.0)], "42"), 6)
    0.740818
    """
    pieces = [t.encode(errors="surrogatepass") if isinstance(t, str) else t for t, _ in tokens]
    whole, wanted = b"".join(pieces), answer.strip().encode(errors="surrogatepass")
    start = whole.rfind(wanted)
    if start < 0:
        start = whole.lower().rfind(wanted.lower())
    if start < 0 or not wanted:
        return None
    total, at = 0.0, 0
    for piece, (_, logprob) in zip(pieces, tokens, strict=True):
        begins, at = at, at + len(piece)
        if begins < start + len(wanted) and at > start:
            if logprob is None or not isfinite(logprob):
                return None
            total += logprob
    return exp(min(0.0, total))
