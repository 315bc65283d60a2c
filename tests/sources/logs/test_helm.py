"""Runs of HELM."""

import json
from pathlib import Path
from typing import Any

import pytest

import pennyweight
from pennyweight.errors import InputError, UsageError
from sources.logs.fixtures import expected, fixture
from sources.logs.reading import notes_of, records

SPEC = {"name": "sums:model=lab_mini", "scenario_spec": {}, "adapter_spec": {"model": "lab/mini"}}


def state(name: str, trial: int, said: str, **result: Any) -> dict[str, Any]:
    references = [{"output": {"text": "Even"}, "tags": ["correct"]},
                  {"output": {"text": "Odd"}, "tags": []}]  # fmt: skip
    instance = {"id": name, "input": {"text": "Is 2 even?"}, "references": references,
                "split": "test"}  # fmt: skip
    ended = {"success": True, "completions": [{"text": said}], "request_time": 0.5, **result}
    return {"instance": instance, "train_trial_index": trial, "result": ended, "request": {},
            "output_mapping": {"A": "Even", "B": "Odd"}}  # fmt: skip


def stat(name: str, value: float, **more: Any) -> dict[str, Any]:
    named = {"name": name, "split": "test", **more}
    return {"name": named, "count": 1, "sum": value, "sum_squared": value, "mean": value}


def written(folder: Path, mean: float = 0.5) -> Path:
    states = [state("a", 0, " A"), state("a", 1, " B"), state("b", 0, "", success=False)]
    values = {("a", 0): 1.0, ("a", 1): 0.0}
    per = [
        {"instance_id": name, "train_trial_index": trial, "stats": [stat("exact_match", value),
         stat("num_output_tokens", 0), stat("num_prompt_tokens", 9), stat("bleu", 0.25)]}
        for (name, trial), value in values.items()
    ]  # fmt: skip
    worst = {"name": "robustness", "computed_on": "worst"}
    stats = [stat("exact_match", 0.0, perturbation=worst), stat("exact_match", mean)]
    for name, value in (
        ("run_spec", SPEC),
        ("scenario_state", {"adapter_spec": {}, "request_states": states}),
        ("per_instance_stats", per),
        ("stats", stats),
    ):
        (folder / f"{name}.json").write_text(json.dumps(value))
    return folder


def test_a_request_is_a_record(tmp_path: Path) -> None:
    right, wrong, broken = records(written(tmp_path))
    assert (right["run"], right["suite"], right["subject"]) == (SPEC["name"], "sums", "lab/mini")
    assert (right["task_id"], right["attempt"], wrong["attempt"]) == ("a", 1, 2)
    assert (right["answer"], right["target"], wrong["answer"]) == ("Even", "Even", "Odd")
    assert (right["passed"], wrong["passed"], broken["status"]) == (True, False, "error")
    assert (right["prompt_tokens"], right["completion_tokens"]) == (9, None)  # 0 is unknown
    assert right["latency_ms"] == 500
    assert notes_of(tmp_path) == []


def test_what_differs_is_told_and_a_statistic_can_be_chosen(tmp_path: Path) -> None:
    (note,) = notes_of(written(tmp_path, mean=0.75))
    assert note.endswith("reports exact_match of test 0.75; these records give 0.5.")
    assert records(tmp_path, scorer="bleu")[0]["impl_rate"] == 0.25
    with pytest.raises(UsageError, match="Did you mean 'bleu'"):
        records(tmp_path, scorer="blue")


def test_a_run_that_failed_is_told(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "per_instance_stats.json").unlink()
    assert "failed before it was scored" in notes_of(tmp_path)[0]
    (tmp_path / "scenario_state.json").unlink()
    with pytest.raises(InputError, match="holds the replies"):
        records(tmp_path)


def test_a_real_run_gives_the_tool_s_number() -> None:
    ((_, stats),) = expected("helm").items()
    report = next(s for s in stats if s["name"] == "exact_match" and "perturbation" not in s)
    assert pennyweight.score(fixture("helm"))["pass_rate"].value == pytest.approx(report["mean"])
    assert notes_of(fixture("helm")) == []
