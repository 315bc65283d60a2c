import json
from pathlib import Path

import pytest

from cli.command import pennyweight, refused, scores
from pennyweight.api.score import score
from pennyweight.errors import InputError
from pennyweight.sources import chunks, loader
from sources.samples import RECORDS, jsonl, parquet


def test_all_problems_are_told_together_the_first_twenty_in_full(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(jsonl([{"id": i, "latency_ms": -1} for i in range(25)]))
    message = refused("score", path)
    assert message.count("latency_ms is -1") == 20
    assert "line 1:" in message
    assert "line 20:" in message
    assert "line 21:" not in message
    assert "… and 5 more problems." in message


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_problems_of_all_kinds_and_files_are_told_in_order(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "CHUNK", size)
    (tmp_path / "a.jsonl").write_text('{"id": 1, "prob_correct": 2}\n{"id": \n{"id": 3}\n[]\n')
    (tmp_path / "b.csv").write_text("id,latency_ms\n1,x\n2,1\n3,-1\n")
    (tmp_path / "c.jsonl").touch()
    message = refused("score", tmp_path).removeprefix("Error: ")
    told = [line.partition(": ")[0].rpartition("/")[2] for line in message.splitlines()]
    assert told[:6] == [
        *("a.jsonl, line 1", "a.jsonl, line 2", "a.jsonl, line 4"),
        *("b.csv, line 2", "b.csv, line 4", "c.jsonl"),
    ]
    result = pennyweight("score", tmp_path, "--skip-bad", "--format", "json")
    assert result.json["groups"][0]["records"] == 2
    assert "5 bad records were left out" in result.err


def test_the_same_attempt_twice_is_told_with_both_places(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(jsonl([{"id": "a"}, {"id": "b"}, {"id": "a"}]))
    message = refused("score", path)
    assert f"{path}, line 3: task 'a': the same attempt (1) as in {path}, line 1" in message
    assert "--map attempt=COLUMN" in message
    result = pennyweight("score", path, "--skip-bad", "--format", "json")
    assert result.json["groups"][0]["records"] == 2
    assert "1 bad record was left out" in result.err


def test_the_same_attempt_in_two_files_is_told_with_both(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(RECORDS[:3]))
    (tmp_path / "b.parquet").write_bytes(parquet(RECORDS[2:5]))
    message = refused("score", tmp_path)
    assert "b.parquet" in message
    assert "task 'tâsk-1': the same attempt (1) as in" in message
    assert "a.jsonl, line 3" in message
    assert scores(tmp_path, "--skip-bad")[0]["records"] == 5


def test_attempts_differ_by_number_tier_subject_or_run() -> None:
    same = {"id": "a", "attempt": 1, "tier": "T0", "model": "m", "run": "r"}
    other = {"attempt": 2, "tier": "T1", "model": "n", "run": "s", "id": "b"}
    assert score([same, *({**same, k: v} for k, v in other.items())]).groups[0].records == 6
    with pytest.raises(InputError, match="the same attempt"):
        score([same, dict(same)])
    with pytest.raises(InputError, match="the same attempt"):
        score([{"id": "a"}, {"id": "a", "attempt": 1}])


def test_records_without_a_task_are_never_the_same() -> None:
    assert score([{"answer": "1"}] * 3).groups[0].records == 3


def test_skip_bad_counts_what_it_leaves_out() -> None:
    rows = [{"id": 1}, {"id": 1}, {"id": 2, "latency_ms": -1}, {"id": 3}]
    found = score(rows, skip_bad=True)
    assert (found.groups[0].records, found.left_out, len(found.problems)) == (2, 2, 2)


def test_plain_records_are_checked_too() -> None:
    with pytest.raises(InputError) as caught:
        score([{"id": 1}, {"id": 2, "prob_correct": float("nan")}])
    assert "the records, line 2: NaN is not a number" in str(caught.value)


def test_nothing_but_bad_records_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"id": 1, "latency_ms": -1}')
    message = refused("score", path, "--skip-bad")
    assert "1 bad record was left out" in message
    assert "There are no records to score" in message


def test_no_records_give_no_values() -> None:
    (group,) = score([]).groups
    assert (group.records, group.errors) == (0, 0)
    assert {e.value for e in group.estimates.values()} == {None}
    assert json.dumps(group.to_dict(), allow_nan=False)


def test_only_errors_give_counts_and_no_quality(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(jsonl([{"id": i, "error": "down", "target": "1"} for i in range(3)]))
    (group,) = scores(path)
    assert (group["records"], group["errors"]) == (3, 3)
    assert group["metrics"]["accuracy"] is None
    assert group["metrics"]["attempt_error_rate"] == 1


@pytest.mark.parametrize(("small", "together"), [(0, 1), (1 << 18, 1), (1 << 18, 3), (400, 100)])
def test_small_files_are_worked_on_together_with_the_same_result(
    small: int, together: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(0, len(RECORDS), 3):
        few = RECORDS[number : number + 3]
        (tmp_path / f"{number:03}.jsonl").write_bytes(jsonl(few))
    monkeypatch.setattr(loader, "SMALL", small)
    monkeypatch.setattr(loader, "TOGETHER", together)
    seen: list[int] = []
    found = score(tmp_path, by="subject", progress=seen.append)
    assert found.to_dict() == score(RECORDS, by="subject").to_dict()
    assert seen == sorted(seen)
    assert seen[-1] == len(RECORDS)
