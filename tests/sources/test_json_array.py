"""An array inside of a large object, and lines of JSON, in every form and cut anywhere."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from pennyweight.errors import InputError
from pennyweight.sources import json_array
from pennyweight.sources.json_array import JsonArray, loads
from pennyweight.sources.json_lines import json_lines

ITEMS: list[Any] = [
    {"a": 1, "b": {"c": ["}", "]", '"'], "results": [{"x": 1}]}},
    {"a": '\\"},\n    {', "d": []},
    {"e": {}, "f": "é"},
]
OBJECT = {
    "id": "x",
    "before": {"results": [{"no": 1}], "other": [1]},
    "results": {"version": 3, "results": ITEMS, "stats": {"n": 3}},
    "after": [1, 2],
}
REST = {**OBJECT, "results": {"version": 3, "results": [], "stats": {"n": 3}}}


@pytest.mark.parametrize("indent", [None, 1, 2, 4, "\t"])
@pytest.mark.parametrize("block", [1, 7, 64, 1 << 20])
def test_elements_and_the_rest(
    indent: Any, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_array, "BLOCK", block)
    path = tmp_path / "x.json"
    path.write_text(json.dumps(OBJECT, indent=indent), encoding="utf-8")
    array = JsonArray(path, "results", "results")
    found = []
    for text in array:
        found.append(loads(text))
        assert array.head["results"] == {"version": 3, "results": []}
    assert found == ITEMS
    assert array.rest == REST


@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_alone_an_empty_one_and_none(indent: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.json.gz"
    path.write_bytes(gzip.compress(json.dumps(ITEMS, indent=indent).encode()))
    assert [loads(text) for text in JsonArray(path)] == ITEMS
    path.write_bytes(gzip.compress(json.dumps({"a": {"results": []}, "b": 1}).encode()))
    array = JsonArray(path, "a", "results")
    assert list(array) == []
    assert array.rest == {"a": {"results": []}, "b": 1}
    assert list(JsonArray(path, "results")) == []


@pytest.mark.parametrize("indent", [None, 2])
def test_a_cut_is_told_wherever_it_is(indent: Any, tmp_path: Path) -> None:
    text = json.dumps(OBJECT, indent=indent)
    path = tmp_path / "x.json"
    for end in range(0, len(text), 5):
        path.write_text(text[:end], encoding="utf-8")
        array = JsonArray(path, "results", "results")
        with pytest.raises(InputError, match="cut off"):
            assert list(array) is None or array.rest
    path.write_bytes(gzip.compress(text.encode())[:-9])
    with pytest.raises(InputError, match="cannot be read"):
        list(JsonArray(path, "results", "results"))


def test_a_huge_element_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_array, "BLOCK", 100)
    monkeypatch.setattr(json_array, "MAX_ELEMENT", 1000)
    for indent in (None, 2):
        path = tmp_path / "x.json"
        path.write_text(json.dumps({"a": [{"b": "x" * 5000}]}, indent=indent))
        with pytest.raises(InputError, match="longer than"):
            list(JsonArray(path, "a"))


def test_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": NaN}\n\n{"b": \xff}\n[1]\n' + b"[" * 9999)
    numbers, values = zip(*json_lines(path), strict=True)
    assert numbers == (1, 3, 4, 5)
    assert values[1:] == (None, [1], None)
    assert "a" in values[0]
