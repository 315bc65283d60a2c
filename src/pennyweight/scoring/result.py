"""What the results of `score`, `compare`, `gate` and `plan` have in common in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

_SHOWN_BY: list[Callable[[Any], str]] = []


def show_with(function: Callable[[Any], str]) -> None:
    """Name the function that shows results in notebooks; it is in a layer above this one."""
    _SHOWN_BY[:] = [function]


class Result:
    """A result that becomes a table of Polars or pandas, and that notebooks show as HTML."""

    __slots__ = ()

    def to_polars(self) -> pl.DataFrame:
        """Return the result as a Polars frame."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return the result as a pandas frame."""
        from pennyweight.sources.frames import to_pandas  # noqa: PLC0415

        return to_pandas(self.to_polars())

    def _repr_html_(self) -> str | None:
        return _SHOWN_BY[0](self) if _SHOWN_BY else None
