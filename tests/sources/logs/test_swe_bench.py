"""Reports of SWE-bench."""

import json
from pathlib import Path

import pytest

import pennyweight
from pennyweight.errors import InputError
from sources.logs.fixtures import expected, fixture
from sources.logs.reading import notes_of, records

REPORT = {
    "total_instances": 6,
    "resolved_instances": 1,
    "submitted_ids": ["a", "b", "c", "d", "e"],
    "resolved_ids": ["a"],
    "unresolved_ids": ["b"],
    "error_ids": ["c"],
    "empty_patch_ids": ["d"],
    "incomplete_ids": ["f"],
    "schema_version": 2,
}
TESTS = {"FAIL_TO_PASS": {"success": ["t::new"], "failure": []},
         "PASS_TO_PASS": {"success": [], "failure": ["t::old"]}}  # fmt: skip


def written(folder: Path) -> Path:
    (folder / "lab__fixer.run-1.json").write_text(json.dumps(REPORT))
    predictions = [{"instance_id": "a", "model_patch": "diff"}]
    (folder / "predictions.jsonl").write_text("\n".join(map(json.dumps, predictions)))
    place = folder / "logs/run_evaluation/run-1/lab__fixer/a"
    place.mkdir(parents=True)
    instance = {"patch_successfully_applied": True, "resolved": True, "tests_status": TESTS}
    (place / "report.json").write_text(json.dumps({"a": instance}))
    return folder


def test_an_instance_is_a_record(tmp_path: Path) -> None:
    rows = {row["task_id"]: row for row in records(written(tmp_path))}
    verdicts = {name: (row["status"], row["passed"]) for name, row in rows.items()}
    assert verdicts == {
        "a": ("ok", True),
        "b": ("ok", False),
        "c": ("error", None),
        "d": ("ok", False),
        "e": ("error", None),
    }
    first = rows["a"]
    assert (first["run"], first["subject"], first["response"]) == ("run-1", "lab/fixer", "diff")
    checks = {one["name"]: one["holds"] for one in json.loads(first["checks"])}
    assert checks == {"FAIL_TO_PASS: t::new": True, "PASS_TO_PASS: t::old": False}
    assert any("divides by all 6 instances" in note for note in notes_of(tmp_path))


def test_reports_of_instances_are_enough_and_predictions_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path)
    (tmp_path / "lab__fixer.run-1.json").unlink()
    (row,) = records(tmp_path)
    assert (row["run"], row["subject"], row["passed"]) == ("run-1", "lab/fixer", True)
    monkeypatch.chdir(tmp_path / "logs/run_evaluation/run-1/lab__fixer/a")
    (same,) = records(Path("report.json"))
    assert [same[name] for name in ("run", "subject", "task_id", "passed")] == [
        row[name] for name in ("run", "subject", "task_id", "passed")
    ]
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "predictions.jsonl").write_text('{"instance_id": "a", "model_patch": "x"}\n')
    with pytest.raises(InputError, match="without their report"):
        records(alone)


def test_a_real_report_gives_the_tool_s_numbers() -> None:
    report, scores = expected("swe_bench"), pennyweight.score(fixture("swe_bench"))
    rows = records(fixture("swe_bench"))
    assert sum(row["passed"] or 0 for row in rows) == report["resolved_instances"]
    assert len(rows) == report["submitted_instances"]
    assert scores.groups[0].errors == report["error_instances"]
