import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from cli.command import pennyweight, refused, strict_json
from pennyweight import PerTaskResult
from pennyweight.api.score import per_task_results, score
from pennyweight.catalogue import MEASURES
from pennyweight.sources import chunks
from sources.samples import FORMS, RECORDS, jsonl

Read = Callable[[Path], list[dict[str, Any]]]


def lines(path: Path) -> list[dict[str, Any]]:
    return [strict_json(line) for line in path.read_text().splitlines()]


def rows(path: Path) -> list[dict[str, Any]]:
    return pl.read_parquet(path).to_dicts()


READ: dict[str, Read] = {".jsonl": lines, ".parquet": rows}


@pytest.mark.parametrize("suffix", READ)
@pytest.mark.parametrize("form", ["jsonl", "pretty", "comma", "parquet"])
@pytest.mark.parametrize("size", [50, 1 << 20])
def test_every_record_is_there_once_in_order_with_all_measures(
    suffix: str, form: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = tmp_path / f"r{FORMS[form][0]}", tmp_path / f"out{suffix}"
    source.write_bytes(FORMS[form][1](RECORDS))
    monkeypatch.setattr(chunks, "CHUNK", size)
    monkeypatch.setattr(chunks, "ROWS", 7)
    result = pennyweight("score", source, "--per-task", out, "--metric", "accuracy")
    assert result.code == 0
    assert str(out) in result.err
    written = READ[suffix](out)
    assert [(r["task_id"], r["attempt"]) for r in written] == [
        (r["id"], r["attempt"]) for r in RECORDS
    ]
    assert [r["shade"] for r in written] == [r["shade"] for r in RECORDS]
    assert [r["target"] for r in written] == [r["target"] for r in RECORDS]
    assert set(MEASURES) <= set(written[0])
    for record, row in zip(RECORDS, written, strict=True):
        right = record["prediction"] is not None and record["target"] == "1,000"
        assert row["correct"] == (None if record.get("status") == "error" else right)
        assert row["total_tokens"] == record["prompt_tokens"] + record["output_tokens"]
        assert row["cot"] == record["reasoning"]


def test_infinity_is_a_string_in_json_lines(tmp_path: Path) -> None:
    found = [{"id": 1, "cost": 1, "passed": False, "note": '"cost_of_pass":1.7976931348623157e308'}]
    found += [{"id": 2, "cost": 2, "passed": True, "note": "x"}, {"id": 3, "note": "y"}]
    score(found, per_task=tmp_path / "o.jsonl")
    written = lines(tmp_path / "o.jsonl")
    assert [r["cost_of_pass"] for r in written] == ["Infinity", 2, None]
    assert [r["note"] for r in written] == [r["note"] for r in found]
    score(found, per_task=tmp_path / "o.parquet")
    assert [r["cost_of_pass"] for r in rows(tmp_path / "o.parquet")] == [float("inf"), 2, None]


@pytest.mark.parametrize("suffix", READ)
def test_unknown_columns_keep_their_values(suffix: str, tmp_path: Path) -> None:
    extra = {"a": 1, "b": "x", "c": [1, 2], "d": {"e": None, "f": [{"g": 1.5}]}, "_id": True}
    score([{"id": 1, **extra}, {"id": 2}], per_task=tmp_path / f"o{suffix}")
    first, second = READ[suffix](tmp_path / f"o{suffix}")
    assert {k: first[k] for k in extra} == extra
    assert [second[k] for k in extra] == [None] * len(extra)


@pytest.mark.parametrize("suffix", READ)
def test_unknown_columns_may_differ_from_chunk_to_chunk(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "CHUNK", 1)
    values = [1, 2.5, "x", [1], {"a": 1}, {"b": "c"}, None, True, [{"a": 1}]]
    source, out = tmp_path / "r.jsonl", tmp_path / f"out{suffix}"
    source.write_bytes(jsonl([{"id": i, "x": v} for i, v in enumerate(values)]))
    score(source, per_task=out)
    texts = ["1", "2.5", "x", "[1]", '{"a": 1}', '{"b": "c"}', None, "true", '[{"a": 1}]']
    assert [r["x"] for r in READ[suffix](out)] == texts


def test_numbers_of_two_kinds_stay_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK", 1)
    (tmp_path / "r.jsonl").write_bytes(jsonl([{"id": 1, "x": 1}, {"id": 2, "x": 2.5}, {"id": 3}]))
    score(tmp_path / "r.jsonl", per_task=tmp_path / "o.jsonl")
    assert [r.get("x") for r in lines(tmp_path / "o.jsonl")] == [1, 2.5, None]


def test_what_a_table_holds_is_written_as_strict_json(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "id": ["a", "b"],
            "x": [float("nan"), float("inf")],
            "y": [b"\xff", None],
            "z": pl.Series([1, 2]).cast(pl.Duration("ms")),
            "d": pl.Series(["1.5", "2.5"]).cast(pl.Decimal(5, 2)),
            "t": pl.Series([0, 1]).cast(pl.Datetime("us", "UTC")),
            "c": pl.Series(["q", "q"], dtype=pl.Categorical),
        }
    )
    for suffix, read in READ.items():
        score(frame, per_task=tmp_path / f"o{suffix}")
        assert len(read(tmp_path / f"o{suffix}")) == 2


def test_bad_and_doubled_records_are_left_out(tmp_path: Path) -> None:
    found = [{"id": "a"}, {"id": "b", "latency_ms": -1}, {"id": "a"}, {"id": "c"}]
    score(found, skip_bad=True, per_task=tmp_path / "o.jsonl")
    assert [r["task_id"] for r in lines(tmp_path / "o.jsonl")] == ["a", "c"]


def test_errors_are_written_too(tmp_path: Path) -> None:
    score([{"id": "a", "error": "down"}], per_task=tmp_path / "o.jsonl")
    (row,) = lines(tmp_path / "o.jsonl")
    assert (row["status"], row["error"], row["cost_of_pass"]) == ("error", "down", None)


@pytest.mark.parametrize("suffix", READ)
@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--skip-bad", "--by", "nope"],
        ["--set", "bins=0", "--skip-bad"],
    ],
)
def test_a_mistake_leaves_what_is_there(suffix: str, arguments: list[str], tmp_path: Path) -> None:
    source, out = tmp_path / "r.jsonl", tmp_path / f"o{suffix}"
    source.write_bytes(jsonl([{"id": 1}, {"id": 2, "latency_ms": -1}]))
    out.write_text("precious")
    refused("score", source, "--per-task", out, *arguments)
    assert out.read_text() == "precious"
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([source.name, out.name])


def test_nothing_is_written_where_there_are_no_records(tmp_path: Path) -> None:
    source, out = tmp_path / "r.jsonl", tmp_path / "o.jsonl"
    for content in ("", '{"id": 1, "latency_ms": -1}\n'):
        source.write_text(content)
        out.write_text("precious")
        refused("score", source, "--skip-bad", "--per-task", out)
        assert out.read_text() == "precious"


def test_no_folder_is_left_behind(tmp_path: Path) -> None:
    score(RECORDS, per_task=tmp_path / "o.parquet")
    assert [p.name for p in tmp_path.iterdir()] == ["o.parquet"]


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    source = tmp_path / "r.jsonl"
    source.write_bytes(jsonl(RECORDS))
    (tmp_path / "folder.jsonl").mkdir()
    for place, told in {
        tmp_path / "no" / "o.jsonl": "no such folder to write o.jsonl into",
        tmp_path / "o.txt": "the name must end in .jsonl or .parquet",
        tmp_path / "folder.jsonl": "a folder has this name",
        Path("/proc/o.jsonl"): "/proc/o.jsonl: cannot be written",
    }.items():
        if place.parent == Path("/proc") and not Path("/proc/self").exists():
            continue
        assert told in refused("score", source, "--per-task", place)


def test_the_result_of_one_task_has_the_fields_of_its_specification() -> None:
    record = {"id": 1, "cot": "1. so\n2. Sorry", "target": "4", "answer": "4", "prompt_tokens": 3}
    (result,) = per_task_results([record])
    assert result == PerTaskResult(
        correct=True,
        cot="1. so\n2. Sorry",
        cot_tokens=4,
        step_count=2,
        self_correcting=True,
        prompt_tokens=3,
        completion_tokens=None,
        total_tokens=None,
        latency_ms=None,
    )


def test_what_was_written_can_be_scored_again(tmp_path: Path) -> None:
    first = score(RECORDS, by="shade", per_task=tmp_path / "o.parquet")
    again = score(tmp_path / "o.parquet", by="shade")
    for one, other in zip(first.groups, again.groups, strict=True):
        assert json.dumps(one.to_dict()["metrics"]) == json.dumps(other.to_dict()["metrics"])
