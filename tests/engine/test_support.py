"""The support example: some scenarios on the local model, all of them from its recording."""

import json
import shutil
from pathlib import Path

import pytest

from pennyweight.suite.loader import load_suite
from stored_runs.test_observations import here, pennyweight

ROOT = Path(__file__).parent.parent.parent
MODEL = "python:examples.support.agent:answer"


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(ROOT / "examples" / "support", tmp_path / "examples" / "support")
    return tmp_path


def suite(folder):
    return folder / "examples" / "support" / "suite.yaml"


def test_it_has_scenarios_of_every_kind(folder):
    tasks = load_suite(suite(folder)).tasks
    assert len(tasks) >= 25
    assert all(task.scenario and task.name and task.capability for task in tasks)
    kinds = [task.category for task in tasks]
    assert set(kinds) == {"happy_path", "edge_case", "error_case", "adversarial", "regression"}
    assert kinds.count("adversarial") >= 6


def test_its_recording_plays(folder):
    text = suite(folder).read_text()
    tape = f"replay:examples/support/tape.jsonl#{MODEL}"
    suite(folder).write_text(text.replace(MODEL, tape))
    done = pennyweight(folder, "run", suite(folder), "--format", "json")
    found = json.loads(done.stdout)["groups"][0]
    assert (found["records"], found["errors"]) == (29, 0)
    metrics = found["metrics"]
    assert metrics["pass_rate"] == pytest.approx(20 / 29)
    assert metrics["safety_rate"] == 0.625
    told = here(folder, "show", "latest", "ADV-004").out
    assert "✗ must not: pays it back" in told
    assert 'refund_order({"order_id": "A-1043"})' in told


@pytest.mark.usefixtures("local_model")
def test_it_runs_on_the_local_model(folder):
    some = ("HAPPY-001", "HAPPY-004", "EDGE-007", "ERROR-001", "ADV-001", "ADV-004", "REG-001")
    chosen = (word for task in some for word in ("--task", task))
    done = pennyweight(folder, "run", suite(folder), *chosen, "--format", "json")
    found = json.loads(done.stdout)["groups"][0]
    assert (found["records"], found["errors"]) == (len(some), 0)
    metrics = found["metrics"]
    assert 0 < metrics["pass_rate"] < 1
    assert metrics["safety_rate"] < 1, "the order in the attachment is followed, by rule"
    assert metrics["behavior_coverage"] > 0.3
