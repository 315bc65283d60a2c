"""Data sets of OpenAI Evals: replies are graded as the tool graded them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pennyweight.api.init import init_from
from pennyweight.checks.attempt import AttemptView
from pennyweight.checks.scenario import observe
from pennyweight.errors import InputError
from pennyweight.suite.loader import load_suite
from sources.logs.fixtures import fixture

REGISTRY = """\
sums:
  id: sums.dev.v0
sums.dev.v0:
  class: evals.elsuite.basic.match:Match
  args: {samples_jsonl: sums/samples.jsonl, num_few_shot: 3}
words:
  id: words.dev.v0
words.dev.v0:
  class: evals.elsuite.basic.includes:Includes
  args: {samples_jsonl: sums/samples.jsonl, ignore_case: true}
facts.dev.v0:
  class: evals.elsuite.modelgraded.classify:ModelBasedClassify
  args: {samples_jsonl: sums/samples.jsonl, modelgraded_spec: fact}
own.dev.v0:
  class: mine.evals:Own
  args: {samples_jsonl: sums/samples.jsonl}
"""
SAMPLES = """\
{"input": [{"role": "system", "content": "+"}, {"role": "user", "content": "1 + 1"}], "ideal": "2"}
{"input": [{"role": "system", "content": "Red or blue?"}], "ideal": ["red", "blue"], "topic": "x"}
{"input": "no ideal"}
"""
MODEL = "local/smollm2-135m"


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    (tmp_path / "reg" / "evals").mkdir(parents=True)
    (tmp_path / "reg" / "data" / "sums").mkdir(parents=True)
    (tmp_path / "reg" / "data" / "sums" / "samples.jsonl").write_text(SAMPLES)
    path = tmp_path / "reg" / "evals" / "lab.yaml"
    path.write_text(REGISTRY)
    return path


def verdicts(suite: Path, *replies: str) -> list[bool | None]:
    scenarios = [task.scenario for task in load_suite(suite).tasks]
    seen = (
        observe(one, AttemptView({"response": said}), {}).passed(None, answered=False)
        for one, said in zip(scenarios, replies, strict=True)
        if one
    )
    return list(seen)


def test_one_of_several_evals_is_named(registry: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="several evals") as told:
        init_from(registry, tmp_path / "new")
    assert "#sums" in told.value.hint
    created = init_from(f"{registry}#sums", tmp_path / "new", model=MODEL)
    assert [str(one).split(": ", 1)[0] for one in created.left_out] == [
        "lab.yaml:5",
        "data/sums/samples.jsonl:3",
    ]
    assert verdicts(created.suite, "2.", "Red") == [True, False]
    assert verdicts(created.suite, "It is 2", "blue") == [False, True]
    tasks = load_suite(created.suite).tasks
    assert [len(task.before) for task in tasks] == [1, 0]
    assert tasks[1].extra == {"topic": "x"}


def test_each_class_is_graded_its_way(registry: Path, tmp_path: Path) -> None:
    created = init_from(f"{registry}#words", tmp_path / "a", model=MODEL)
    assert verdicts(created.suite, "It is 2", "Bluebird") == [True, True]
    graded = init_from(f"{registry}#facts.dev.v0", tmp_path / "b", model=MODEL)
    assert verdicts(graded.suite, "2", "red", "x") == [None, None, None]
    with pytest.raises(InputError, match="class Own is code"):
        init_from(f"{registry}#own.dev.v0", tmp_path / "c")
    data = registry.parent.parent / "data" / "sums" / "samples.jsonl"
    alone = init_from(data, tmp_path / "d", model=MODEL)
    assert "Match is assumed" in alone.notes[0]


def recorded(path: Path) -> dict[str, dict[str, Any]]:
    events: dict[str, dict[str, Any]] = {}
    for line in path.read_text().splitlines():
        one = json.loads(line)
        if one.get("type") in {"sampling", "match"}:
            events.setdefault(one["sample_id"], {})[one["type"]] = one["data"]
    return events


@pytest.mark.parametrize(("log", "name"), [("sums", "lab-sums-a"), ("incl", "lab-incl-a")])
def test_a_recorded_log_is_graded_as_it_was(log: str, name: str, tmp_path: Path) -> None:
    folder = fixture("openai_evals")
    source = folder / "registry" / "evals" / "lab.yaml"
    suite = load_suite(init_from(f"{source}#{name}", tmp_path, model=MODEL).suite)
    tasks = {task.input: task.scenario for task in suite.tasks}
    events = recorded(folder / f"{log}.jsonl").values()
    for one in events:
        scenario = tasks[one["sampling"]["prompt"][-1]["content"]]
        assert scenario is not None
        view = AttemptView({"response": one["sampling"]["sampled"][0]})
        assert observe(scenario, view, {}).passed(None, answered=False) == one["match"]["correct"]
    assert len(events) == 5
