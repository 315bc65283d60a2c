"""The spoken part of a response, and its thoughts between `<think>` and `</think>`."""

from __future__ import annotations

import polars as pl

_THINK = r"(?is)<think(?:ing)?>.*?</think(?:ing)?>"
_UNOPENED = r"(?is)^.*</think(?:ing)?>"
_UNCLOSED = r"(?is)<think(?:ing)?>.*$"
_TAG = r"(?i)</?think(?:ing)?>"


def spoken(response: pl.Expr) -> pl.Expr:
    """Remove the text between `<think>` and `</think>`.

    A lone `</think>` ends a thought that the prompt started; a lone `<think>` starts a thought that
    was cut off.
    """
    return response.map_batches(without_thoughts, return_dtype=pl.String, is_elementwise=True)


def without_thoughts(response: pl.Series) -> pl.Series:
    """Remove the thoughts from one batch of responses."""
    thinking = response.str.contains(_TAG)
    if not thinking.any():
        return response
    rest = keep_where(thinking, response).str.replace_all(_THINK, "")
    rest = rest.str.replace(_UNOPENED, "").str.replace(_UNCLOSED, "")
    return choose(thinking, rest, response)


def thought(response: pl.Series) -> pl.Series:
    """Return the text between `<think>` and `</think>`; null or empty if there is none."""
    thinking = response.str.contains(_TAG)
    if not thinking.any():
        return pl.Series([None], dtype=pl.String).new_from_index(0, len(response))
    holding = keep_where(thinking, response)
    rest = holding.str.replace_all(_THINK, "")
    parts = [
        rest.str.extract_all(_UNOPENED).list.first(),
        holding.str.extract_all(_THINK).list.join("\n"),
        rest.str.replace(_UNOPENED, "").str.extract_all(_UNCLOSED).list.first(),
    ]
    joined = pl.select(pl.concat_str(parts, separator="\n", ignore_nulls=True)).to_series()
    return joined.str.replace_all(_TAG, "")


def keep_where(mask: pl.Series, text: pl.Series) -> pl.Series:
    """Keep a text where a mask is true; null elsewhere."""
    return pl.select(pl.when(mask).then(text)).to_series()


def choose(mask: pl.Series, text: pl.Series, other: pl.Series) -> pl.Series:
    """Take one text where a mask is true, and the other elsewhere."""
    return pl.select(pl.when(mask).then(text).otherwise(other)).to_series()
