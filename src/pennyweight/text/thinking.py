"""What a response says, and what it thinks aloud between `<think>` and `</think>`."""

from __future__ import annotations

import polars as pl

_THINK = r"(?is)<think(?:ing)?>.*?</think(?:ing)?>"
_UNOPENED = r"(?is)^.*</think(?:ing)?>"
_UNCLOSED = r"(?is)<think(?:ing)?>.*$"
_TAG = r"(?i)</?think(?:ing)?>"


def spoken(response: pl.Expr) -> pl.Expr:
    """Leave out what stands between `<think>` and `</think>`.

    A lone `</think>` ends a thought that the prompt had begun; a lone `<think>` begins one that
    was cut off.
    """
    return response.map_batches(said, return_dtype=pl.String, is_elementwise=True)


def said(response: pl.Series) -> pl.Series:
    """Leave out what is thought, of one batch."""
    thinking = response.str.contains(_TAG)
    if not thinking.any():
        return response
    rest = keep_where(thinking, response).str.replace_all(_THINK, "")
    rest = rest.str.replace(_UNOPENED, "").str.replace(_UNCLOSED, "")
    return choose(thinking, rest, response)


def thought(response: pl.Series) -> pl.Series:
    """Take what stands between `<think>` and `</think>`; null or empty where nothing does."""
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
    """Keep a text where a mask holds; null elsewhere."""
    return pl.select(pl.when(mask).then(text)).to_series()


def choose(mask: pl.Series, text: pl.Series, other: pl.Series) -> pl.Series:
    """Take one text where a mask holds, and the other elsewhere."""
    return pl.select(pl.when(mask).then(text).otherwise(other)).to_series()
