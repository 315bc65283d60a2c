"""What the beginning of a file shows, also if it is cut off, broken or hostile."""

import gzip
import json
from pathlib import Path

import pytest

from pennyweight.sources.peek import HEAD, Peek, partial_json


def test_every_cut_of_an_object_shows_what_comes_before() -> None:
    value = {"a": [1, {"b": 'x"}],'}, None], "c": {"d": True, "e": "é"}, "f": -1.5}
    text = json.dumps(value, indent=1).encode()
    seen = [partial_json(text[:end]) for end in range(1, len(text) + 1)]
    assert seen[-1] == value
    assert all(isinstance(one, dict) for one in seen)
    assert [len(one) for one in seen] == sorted(len(one) for one in seen)


@pytest.mark.parametrize(
    "data",
    [b"", b"[" * 100_000, b'{"a":' * 50_000, b"}{", b"\xff\xfe\x00", b'{"a": nope', b"PK\x03\x04"],
)
def test_nothing_raises(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(data)
    peek = Peek.of(path)
    assert not peek.has("a", "b")
    assert peek.inside("a", 0, "b") is None
    assert not peek.members
    assert isinstance(peek.columns, tuple)


def test_not_a_number_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": NaN, "b": -Infinity}\n{"a": 1}')
    assert [sorted(row) for row in Peek.of(path).rows] == [["a", "b"], ["a"]]


def test_only_the_beginning_is_read_also_of_compressed_files(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(b'\xef\xbb\xbf{"a": "' + b"x" * 10 * HEAD))
    assert len(Peek.of(path).head) <= HEAD
    assert Peek.of(path).has("a") is False
    path.write_bytes(gzip.compress(b'{"a": 1, "b": [' + b"1," * HEAD))
    assert Peek.of(path).has("a", "b")
    path.write_bytes(gzip.compress(b'{"a": 1}')[:12])
    assert Peek.of(path).head == b""
