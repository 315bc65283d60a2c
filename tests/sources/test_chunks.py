import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import zstandard
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cli.command import refused, scores
from pennyweight.api.score import score
from pennyweight.sources import chunks
from pennyweight.sources.chunks import chunks_of
from pennyweight.sources.files import find_files
from sources.samples import FORMS, RECORDS, Record, approximately, array, jsonl, pretty


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
@pytest.mark.parametrize("form", FORMS)
def test_where_a_file_is_cut_does_not_matter(
    form: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suffix, write = FORMS[form]
    path = tmp_path / f"records{suffix}"
    path.write_bytes(write(RECORDS[:14]))
    whole = score(path, by="shade").to_dict()
    monkeypatch.setattr(chunks, "CHUNK", size)
    monkeypatch.setattr(chunks, "ROWS", 1 + size % 5)
    assert len(list(chunks_of(*find_files([path])))) > 1
    assert score(path, by="shade").to_dict() == approximately(whole)


cells = st.text(alphabet='a",;\n\r\té😀\u2028 ', max_size=8)


@settings(max_examples=25)
@given(
    answers=st.lists(cells.filter(str.strip), min_size=1, max_size=6),
    size=st.integers(1, 40),
    form=st.sampled_from([f for f in FORMS if f != "ndjson"]),
)
def test_any_text_survives_any_cut(
    answers: list[str], size: int, form: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    suffix, write = FORMS[form]
    # a bare carriage return at the end of an unquoted cell is part of the line's end
    assume(suffix not in {".csv", ".tsv"} or not any("\r" in a for a in answers))
    path = tmp_path_factory.mktemp("cut") / f"records{suffix}"
    path.write_bytes(write([{"id": str(i), "note": a} for i, a in enumerate(answers)]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "CHUNK", size)
        patch.setattr(chunks, "ROWS", 2)
        found = score(path, by=["task_id", "note"], metrics=["accuracy"])
    assert [g.group["note"] for g in found.groups] == answers


@pytest.mark.parametrize("size", [1, 5, 1 << 20])
@pytest.mark.parametrize("write", [jsonl, pretty, array, FORMS["comma"][1]])
def test_problems_keep_their_lines_in_any_cut(
    write: Callable[[Sequence[Record]], bytes],
    size: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records = [
        {"id": f"t{i}", "cot": "a\nb", "latency_ms": -1 if i in {3, 7} else 1} for i in range(9)
    ]
    data = write(records)
    path = (
        tmp_path
        / f"r{'.csv' if b'latency_ms' in data[:30] else '.json' if data[:1] == b'[' else '.jsonl'}"
    )
    path.write_bytes(data)
    monkeypatch.setattr(chunks, "CHUNK", size)
    message = refused("score", path)
    for task in ("t3", "t7"):
        before = data[: data.index(task.encode())].decode()
        line = before.count("\n") + 1 - (write is pretty)  # a pretty object begins a line earlier
        told = f'{path}, line {line}: task "{task}": latency_ms is'
        assert told in message, (told, message)


def test_lines_are_counted_over_blank_ones_and_quoted_ends(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'\n\r\n{"id":"a"}\n\n{"id":"b","latency_ms":-1}')
    (tmp_path / "b.csv").write_bytes(b'\n\nid,cot,latency_ms\n\na,"x\n\ny",1\n\nb,,-1\n')
    assert "a.jsonl, line 5: task" in refused("score", tmp_path / "a.jsonl")
    assert "b.csv, line 9: task" in refused("score", tmp_path / "b.csv")


@pytest.mark.parametrize("form", ["jsonl", "array", "comma", "semicolon"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("last", [b"", b"\n", b"\r\n\r\n\n"])
def test_bom_line_ends_blank_lines_and_a_missing_last_one_are_fine(
    form: str, bom: bytes, last: bytes, tmp_path: Path
) -> None:
    suffix, write = FORMS[form]
    records = [{"id": str(i), "answer": "é", "target": "é"} for i in range(3)]
    plain = write(records).replace(b"\r\n", b"\n").rstrip(b"\n")
    for end in (b"\n", b"\r\n", b"\n\n", b"\r\n \r\n"):
        path = tmp_path / f"r{suffix}"
        path.write_bytes(bom + plain.replace(b"\n", end) + last)
        (group,) = scores(path, "--metric", "accuracy")
        assert (group["records"], group["metrics"]) == (3, {"accuracy": 1.0})


def test_objects_one_after_the_other_are_an_array_too(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("\n".join(json.dumps({"id": i}, indent=1) for i in range(3)))
    assert scores(path, "--metric", "accuracy")[0]["records"] == 3


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('[\n{"id": 1},\n{"id": 2,}\n]', "line 3: not JSON"),
        ('[\n{"id": 1}\n{"id": 2}\n]', "line 3: the array is not closed with ']', or a comma"),
        ('[\n{"id": 1}', "line 2: the array is not closed with ']'"),
        ('[\n{"id": 1},\n', "line 3: not JSON"),
        ('[\n{"id": 1}\n]\n{"id": 2}', "line 4: there is more after the end of the array."),
        ('[{"id": 1},, {"id": 2}]', "line 1: not JSON"),
        ('[{"id": 1}\n, 5, "x", null, [1]]', "line 2: a JSON object is needed here, not a number"),
        ('[{"id": "a\nb"}]', "line 1: not JSON: Invalid control character"),
        (
            '[{"a": ' + "[" * 99_999 + "]" * 99_999 + "}]",
            "line 1: not JSON that can be read: nested",
        ),
        ("<html>", "line 1: not JSON"),
        ('{"id": 1}\n}', "line 2: not JSON"),
    ],
)
def test_what_is_wrong_with_an_array_is_told(content: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(content)
    assert f"{path}, {told}" in refused("score", path)


def test_an_early_mistake_is_told_without_reading_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.json"
    path.write_text('[{"id" 1},\n' + '{"id": 2},\n' * 1000 + "]")
    monkeypatch.setattr(chunks, "CHUNK", 100)
    read = 0

    def count(reader: object) -> bool:
        nonlocal read
        read += 1
        return more(reader)

    more = chunks._Text.more
    monkeypatch.setattr(chunks._Text, "more", count)
    assert "line 1: not JSON" in refused("score", path)
    assert read <= 2


def test_bytes_that_are_not_utf_8_are_placed(tmp_path: Path) -> None:
    for name, data, told in [
        (
            "a.jsonl",
            b'{"id":"a"}\n{"id":"\xff"}\n{"id":"c"}\n{"id":"\xc3("}',
            ["line 2: byte 8", "line 4: byte 8"],
        ),
        ("b.json", b'[{"id":"a"},\n{"id":"\xff"}]', ["line 2: bytes that are not UTF-8"]),
        ("c.csv", b'id,cot\na,b\nb,"x\n\xff"\n', ["line 4: byte 1 is not UTF-8"]),
        ("d.csv", b"id,c\xff\na,b\n", ["line 1: bytes that are not UTF-8"]),
        ("e.jsonl", '{"id": "a"}'.encode("utf-16"), ["line 1: byte 1 is not UTF-8"]),
    ]:
        (tmp_path / name).write_bytes(data)
        message = refused("score", tmp_path / name)
        assert all(f"{name}, {one}" in message for one in told), message


MEGABYTE = b"a" * (1 << 20)


def bomb(path: Path, head: bytes, fill: bytes, tail: bytes) -> Path:
    """Write a small compressed file of 3 GB."""
    if path.suffix == ".gz":
        member = gzip.compress(fill * 100, 1)
        path.write_bytes(gzip.compress(head) + member * 30 + gzip.compress(tail))
        return path
    with path.open("wb") as raw, zstandard.ZstdCompressor(1).stream_writer(raw) as file:
        file.write(head)
        for _ in range(3000):
            file.write(fill)
        file.write(tail)
    return path


@pytest.mark.parametrize(
    ("name", "head", "fill", "said"),
    [
        ("a.jsonl.gz", b'{"response": "', MEGABYTE, "line 1: longer than 64 MB"),
        ("a.jsonl.zst", b'{"response": "', MEGABYTE, "line 1: longer than 64 MB"),
        ("a.json.zst", b'[{"response": "', MEGABYTE, "line 1: longer than 64 MB"),
        ("a.csv.zst", b'id,response\na,"', MEGABYTE, "line 2: longer than 64 MB"),
        ("a.csv.zst", b'id,response\na,"', MEGABYTE[:-1] + b"\n", "not closed within 16 MB"),
    ],
)
def test_a_bomb_ends_with_an_error_in_little_memory(name, head, fill, said, tmp_path):
    path = bomb(tmp_path / name, head, fill, b'"}')
    command = [sys.executable, "-m", "pennyweight", "score", str(path)]
    code = (
        "import resource, subprocess, sys;"
        f"done = subprocess.run({command!r}, capture_output=True, text=True, timeout=60);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, done.returncode);"
        "print(done.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    numbers, _, message = done.stdout.partition("\n")
    kilobytes, status = map(int, numbers.split())
    assert (status, kilobytes < 1_000_000) == (2, True), numbers
    assert said in message
    assert "Traceback" not in message


def test_a_table_of_very_many_columns_is_refused(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{i}" for i in range(100_000)) + "\n" + "1," * 99_999 + "1\n")
    assert "line 1: 100,000 columns; at most 10,000 can be read." in refused("score", path)
