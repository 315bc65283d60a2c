"""Tables of other libraries: pandas frames become Polars frames, and the other way round.

Polars itself needs pyarrow for most of this, so columns are converted one at a time.
"""

from __future__ import annotations

import json
from contextlib import suppress
from importlib import import_module
from typing import Any

import polars as pl

from pennyweight.errors import UsageError


def frame_of(value: object) -> pl.DataFrame | None:
    """Return a Polars or pandas frame as a Polars frame; None if it is neither."""
    if isinstance(value, pl.LazyFrame):
        return value.collect()
    if isinstance(value, pl.DataFrame):
        return value
    kind = type(value)
    if kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "pandas":
        return _from_pandas(value)
    return None


def to_pandas(frame: pl.DataFrame) -> Any:
    """Return a frame as a pandas frame; a missing number is NaN, other missing values are None."""
    try:
        pandas = import_module("pandas")
    except ImportError:
        raise UsageError("to_pandas needs the package pandas: pip install pandas.") from None
    return pandas.DataFrame({column.name: _cells(column) for column in frame})


def _cells(column: pl.Series) -> Any:
    is_flags = column.dtype == pl.Boolean and not column.has_nulls()
    return column.to_numpy() if column.dtype.is_numeric() or is_flags else column.to_list()


def _from_pandas(frame: Any) -> pl.DataFrame:
    return pl.DataFrame([_series(str(name), frame[name]) for name in frame.columns])


def _series(name: str, cells: Any) -> pl.Series:
    if cells.dtype.kind in "iufb":
        with suppress(ImportError):
            return pl.Series(name, pl.from_pandas(cells))
    pairs = zip(cells.tolist(), cells.isna().tolist(), strict=True)
    values = [None if missing else value for value, missing in pairs]
    try:
        return pl.Series(name, values)
    except (TypeError, pl.exceptions.PolarsError):  # of several kinds, such as 7 and "seven"
        return pl.Series(name, [_written(value) for value in values], pl.String)


def _written(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
