"""The normalised form in which answers and targets are compared."""

from __future__ import annotations

import re

import polars as pl

_MANTISSA = r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]*)?|\.[0-9]+"
_NUMBER = rf"^[+-]?(?:{_MANTISSA})(?:e[+-]?0*[0-9]{{1,18}})?$"
_CANONICAL = r"^(?:0|-?[1-9][0-9]*(?:\.[0-9]*[1-9])?|-?0\.[0-9]*[1-9])$"
_PARTS = re.compile(r"([+-]?)([0-9,]*)\.?([0-9]*)(?:e([+-]?)0*([0-9]*))?")

_PLAIN = 400
"""Numbers with more digits than this after or before the point are written with an exponent."""


_ONE_VALUE = r"""^\s*\[\s*(?:"([^"\\]*)"|(-?[0-9][0-9.eE+-]*|true|false))\s*\]\s*$"""


def single(text: pl.Expr) -> pl.Expr:
    """Return the value of a list of one value; any other text as it is.

    >>> frame = pl.DataFrame({"a": ['["Paris"]', "[4]", '["a", "b"]', "Oslo"]})
    >>> frame.select(single(pl.col("a")))["a"].to_list()
    ['Paris', '4', '["a", "b"]', 'Oslo']
    """
    return text.map_batches(_single, return_dtype=pl.String, is_elementwise=True)


def _single(texts: pl.Series) -> pl.Series:
    texts = texts.cast(pl.String)
    if not (texts.str.starts_with("[") | texts.str.starts_with(" ")).any():
        return texts  # as in most tables, at no cost
    cell = pl.col(texts.name)
    quoted, plain = (cell.str.extract(_ONE_VALUE, group) for group in (1, 2))
    return texts.to_frame().select(pl.coalesce(quoted, plain, cell)).to_series()


def normalize(text: pl.Expr) -> pl.Expr:
    """Strip and lower-case; convert a plain number to its canonical decimal form.

    >>> pl.DataFrame({"a": [" Paris ", "1,000", "1e3", "1000.0", "-0", "1,00"]}).select(
    ...     normalize(pl.col("a"))
    ... )["a"].to_list()
    ['paris', '1000', '1000', '1000', '0', '1,00']
    """
    return text.map_batches(_normal, return_dtype=pl.String, is_elementwise=True)


def _normal(texts: pl.Series) -> pl.Series:
    """Normalise step by step: an expression would compute its common parts again and again."""
    low = texts.str.strip_chars().str.to_lowercase()
    done = low.str.contains(_CANONICAL) & (low.str.len_bytes() <= _PLAIN)
    places = (~done).arg_true()
    others = low.gather(places)
    is_odd = others.str.contains(_NUMBER)
    if not is_odd.any():
        return low
    odd = others.filter(is_odd)
    values = odd.unique()
    numbers = odd.replace_strict(values, [canonical_number(value) for value in values])
    return low.scatter(places.filter(is_odd), numbers)


_IS_NUMBER = re.compile(_NUMBER)


def is_number(text: str) -> bool:
    """Whether a text is one plain number.

    >>> is_number("1,000"), is_number("1e3"), is_number("12 apples"), is_number("1,00")
    (True, True, False, False)
    """
    return _IS_NUMBER.fullmatch(text.lower()) is not None


def canonical_number(text: str) -> str:
    """Return a plain number in its canonical decimal form, without floating point.

    >>> [canonical_number(s) for s in ("+1,234.50", "1.5e-3", "-0.00", "12e401")]
    ['1234.5', '0.0015', '0', '12e401']
    """
    match = _PARTS.fullmatch(text)
    assert match is not None
    sign, whole, fraction, down, exponent = match.groups()
    digits = whole.replace(",", "") + fraction
    stripped = digits.rstrip("0")
    power = int(f"{down or ''}{exponent or 0}") - len(fraction) + len(digits) - len(stripped)
    digits = stripped.lstrip("0")
    if not digits:
        return "0"
    minus = "-" if sign == "-" else ""
    if abs(power) > _PLAIN:
        return f"{minus}{digits}e{power}"
    if power >= 0:
        return minus + digits + "0" * power
    digits = digits.rjust(1 - power, "0")
    return f"{minus}{digits[:power]}.{digits[power:]}"
