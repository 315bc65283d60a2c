"""Names in the order in which people list them."""

from __future__ import annotations

import polars as pl
import pytest

import pennyweight
from pennyweight.text.natural_order import in_natural_order, natural

NAMES = ["T10", "T9", "T2", "t1", "T", "", "9", "10", "T2b", "T02", "٣", "1" * 5000]


def test_numbers_in_names_count_as_numbers() -> None:
    ordered = sorted(NAMES, key=natural)
    assert ordered.index("T2") < ordered.index("T9") < ordered.index("T10")
    assert ordered.index("9") < ordered.index("10")
    assert len({str(natural(name)) for name in NAMES}) == len(NAMES)


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical])
def test_rows_are_sorted_by_each_column_in_turn(kind: pl.DataType) -> None:
    rows = pl.DataFrame({"tier": ["T10", "T2", None, "T2"], "attempt": [1, 10, 1, 9]})
    found = in_natural_order(rows.with_columns(pl.col("tier").cast(kind)))
    assert found.rows() == [("T2", 9), ("T2", 10), ("T10", 1), (None, 1)]


def test_a_given_order_is_kept() -> None:
    order = pl.Enum(["b", "a"])
    rows = pl.DataFrame({"side": pl.Series(["a", "b"], dtype=order)})
    assert in_natural_order(rows)["side"].to_list() == ["b", "a"]


def test_groups_of_scores_are_in_natural_order() -> None:
    rows = [{"tier": f"probe@{p}%", "passed": True} for p in (100, 25, 0)]
    names = [group.name for group in pennyweight.score(rows, by="tier").groups]
    assert names == ["tier=probe@0%", "tier=probe@25%", "tier=probe@100%"]
