"""Tables that tools wrote, in every form."""

import json
from pathlib import Path

import polars as pl
import pytest

from pennyweight.errors import InputError
from pennyweight.sources.table_rows import cell, table_rows

ROWS = [{"a": 1, "b": "x"}, {"a": 2, "b": "y, z"}]


@pytest.mark.parametrize("form", ["jsonl", "json", "csv", "parquet"])
def test_every_form_gives_the_same_rows(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{form}"
    if form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    elif form == "json":
        path.write_text(json.dumps(ROWS))
    elif form == "csv":
        pl.DataFrame(ROWS).write_csv(path)
    else:
        pl.DataFrame(ROWS).write_parquet(path)
    found = [{name: cell(value) for name, value in row.items()} for _, row in table_rows(path)]
    assert found == ROWS


def test_a_short_line_is_no_row_and_a_cut_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n3\n")
    assert [row for _, row in table_rows(path)] == [{"a": "1", "b": "2"}, None]
    whole = tmp_path / "t.parquet"
    pl.DataFrame(ROWS).write_parquet(whole)
    whole.write_bytes(whole.read_bytes()[:-9])
    with pytest.raises(InputError, match="not Parquet that can be read"):
        list(table_rows(whole))


@pytest.mark.parametrize("text", ["[" * 5000, "__import__('os')", "{1: open('x')}", "[1, 2"])
def test_what_is_no_value_stays_a_text(text: str) -> None:
    assert cell(text) == text
