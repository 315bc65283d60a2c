"""Footers that disagree with the file are refused: records are never lost without a word."""

import random
from pathlib import Path

import polars as pl
import pytest

import pennyweight
from pennyweight.errors import InputError
from pennyweight.sources.parquet_footer import FooterError, checked_rows

ROWS = 1000
THOUSAND, FIVE_HUNDRED, TWO_THOUSAND = b"\xd0\x0f", b"\xe8\x07", b"\xa0\x1f"
"""The numbers as Thrift writes them."""
PLACES = 5
"""The file, its one row group, and the three columns say how much there is."""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.parquet"
    names = [f"t{i}" for i in range(ROWS)]
    pl.DataFrame({"task_id": names, "answer": ["4"] * ROWS, "target": ["4"] * ROWS}).write_parquet(
        path
    )
    return path


def forge(path: Path, places: list[int], number: bytes) -> None:
    """Replace some of the numbers of records in a footer."""
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    parts = data[start:].split(THOUSAND)
    assert len(parts) == PLACES + 1
    footer = parts[0]
    for place, part in enumerate(parts[1:]):
        footer += (number if place in places else THOUSAND) + part
    path.write_bytes(data[:start] + footer)


@pytest.mark.parametrize("number", [FIVE_HUNDRED, TWO_THOUSAND], ids=["fewer", "more"])
@pytest.mark.parametrize("places", [*([n] for n in range(PLACES)), [0, 4], list(range(PLACES))])
def test_a_footer_that_claims_other_rows_is_refused(
    table: Path, places: list[int], number: bytes
) -> None:
    assert checked_rows(table) == ROWS
    assert pennyweight.score(table, metrics="accuracy").groups[0].records == ROWS
    forge(table, places, number)
    with pytest.raises(
        InputError, match=r"table\.parquet: not a readable Parquet file: its footer"
    ):
        pennyweight.score(table, metrics="accuracy")


def test_every_kind_of_column_and_page_is_counted(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "lists": [[1, 2], [], None] * 700,
            "structs": [{"a": 1, "b": [{"c": "x"}]}, None, {"a": None, "b": []}] * 700,
            "few": ["a", None, "b"] * 700,
            "numbers": range(2100),
            "empty": pl.Series([None] * 2100, dtype=pl.Float64),
        }
    )
    path = tmp_path / "x.parquet"
    for columns in (frame.columns, ["lists"], ["structs"], ["empty"], ["few", "numbers"]):
        for size in (1, 100, 5000):
            one = frame.select(columns)
            one.write_parquet(path, row_group_size=max(size, 50), data_page_size=size)
            assert checked_rows(path) == 2100
    frame.clear().write_parquet(path)
    assert checked_rows(path) == 0


def test_damaged_footers_are_told_as_such(table: Path) -> None:
    whole = table.read_bytes()
    size = int.from_bytes(whole[-8:-4], "little")
    start = len(whole) - 8 - size
    draw = random.Random(5)
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(draw.choice([1, 2, 8])):
            data[draw.randrange(start, len(whole))] = draw.randrange(256)
        table.write_bytes(data)
        try:
            assert checked_rows(table) == ROWS
        except FooterError as error:
            assert str(error).startswith(("its", "it is"))  # noqa: PT017
    for cut in (whole[:4], whole[:-1], whole[: start + 3], whole[:start] + whole[-8:]):
        table.write_bytes(cut)
        with pytest.raises(FooterError):
            checked_rows(table)


def varint(number: int) -> bytes:
    """Write a number as Thrift does, with its sign in the last bit."""
    number = number << 1 if number >= 0 else (-number << 1) - 1
    found = b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])


def one_column(rows: bytes, offset: int, size: int = 100) -> bytes:
    """Return a footer with one column of five values, whose pages are at an offset."""
    schema = b"\x19\x2c" + b"\x55" + varint(1) + b"\x00" + b"\x35\x00\x00"
    chunk = b"\x3c\x56" + varint(5) + b"\x26" + varint(size) + b"\x26" + varint(offset) + b"\x00"
    group = b"\x19\x1c" + chunk + b"\x00\x26" + varint(5) + b"\x00"
    return b"\x15\x02" + schema + rows + b"\x19\x1c" + group + b"\x00"


FIVE = b"\x16" + varint(5)
DEEP = b"\xfc\xb9\x17" + (b"\x55\x02\x00" * 3000) + b"\x00"
FORGED = {
    "nested lists": b"\x19" * 5000,
    "nested columns": b"\x15\x02\x19" + DEEP + b"\x16\x00\x19\x0c\x00",
    "rows as text": one_column(b"\x18\x03abc", 4),
    "rows as digits": one_column(b"\x18\x015", 4),
    "a place before the file": one_column(FIVE, -5),
    "a place far behind the file": one_column(FIVE, 2**66),
    "a size below zero": one_column(FIVE, 50, -10),
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED.keys())
def test_forged_footers_are_told_with_the_path(tmp_path: Path, forged: bytes) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1" + forged + len(forged).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(InputError, match=r"x\.parquet: not a readable Parquet file: its "):
        pennyweight.score(path, metrics="accuracy")
