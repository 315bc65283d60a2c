"""Frames of pandas come in and go out without pyarrow."""

import pandas
import polars as pl

from pennyweight.sources.frames import frame_of, to_pandas


def test_a_pandas_frame_keeps_its_values_and_what_is_missing() -> None:
    given = pandas.DataFrame(
        {
            "n": [1, 2],
            "x": [0.5, None],
            "text": ["a", None],
            "mixed": [7, "seven"],
            "flag": [True, False],
        }
    )
    found = frame_of(given)
    assert found is not None
    assert found.to_dicts() == [
        {"n": 1, "x": 0.5, "text": "a", "mixed": "7", "flag": True},
        {"n": 2, "x": None, "text": None, "mixed": "seven", "flag": False},
    ]


def test_lists_and_mappings_in_cells_stay_what_they_are() -> None:
    found = frame_of(pandas.DataFrame({"tags": [["a"], ["b", "c"]], "usage": [{"n": 1}, {"n": 2}]}))
    assert found is not None
    assert found.row(1) == (["b", "c"], {"n": 2})


def test_other_values_are_no_frame() -> None:
    assert frame_of([{"a": 1}]) is None
    assert frame_of("records.jsonl") is None


def test_there_and_back() -> None:
    frame = pl.DataFrame({"n": [1, None], "text": ["a", None], "flag": [True, False]})
    out = to_pandas(frame)
    assert out["n"].isna().tolist() == [False, True]
    assert out["text"].isna().tolist() == [False, True]
    back = frame_of(out)
    assert back is not None
    assert back.rows() == [(1.0, "a", True), (None, None, False)]
