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
criteria.dev.v0:
  class: evals.elsuite.modelgraded.classify:ModelBasedClassify
  args: {samples_jsonl: sums/samples.jsonl, modelgraded_spec: closedqa}
fuzzy.dev.v0:
  class: evals.elsuite.basic.fuzzy_match:FuzzyMatch
  args: {samples_jsonl: sums/samples.jsonl}
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
    with pytest.raises(InputError, match="args: num_few_shot"):
        init_from(f"{registry}#sums", tmp_path / "new", model=MODEL)
    created = init_from(f"{registry}#sums", tmp_path / "new", model=MODEL, partial=True)
    assert [str(one).split(": ", 1)[0] for one in created.missing] == [
        "lab.yaml:5",
        "data/sums/samples.jsonl:3",
    ]
    assert verdicts(created.suite, "2.", "Red") == [True, False]
    assert verdicts(created.suite, "It is 2", "blue") == [False, True]
    tasks = load_suite(created.suite).tasks
    assert [len(task.before) for task in tasks] == [1, 0]
    assert tasks[1].extra == {"topic": "x"}


def test_each_class_is_graded_its_way(registry: Path, tmp_path: Path) -> None:
    created = init_from(f"{registry}#words", tmp_path / "a", model=MODEL, partial=True)
    assert verdicts(created.suite, "It is 2", "Bluebird") == [True, True]
    graded = init_from(f"{registry}#criteria.dev.v0", tmp_path / "b", model=MODEL, partial=True)
    assert verdicts(graded.suite, "2", "red", "x") == [None, None, None]
    assert load_suite(graded.suite).judge
    with pytest.raises(InputError, match="class Own is code"):
        init_from(f"{registry}#own.dev.v0", tmp_path / "c")
    data = registry.parent.parent / "data" / "sums" / "samples.jsonl"
    with pytest.raises(InputError, match="samples: they do not say how replies are graded"):
        init_from(data, tmp_path / "d", model=MODEL)
    alone = init_from(data, tmp_path / "d", model=MODEL, partial=True)
    assert verdicts(alone.suite, "2", "red", "x") == [None, None, None]
    data.write_text("\n".join(SAMPLES.splitlines()[:2]) + "\n")
    begins = init_from(f"{data}#Match", tmp_path / "e", model=MODEL)
    assert verdicts(begins.suite, "2.", "a red one") == [True, False]
    inside = init_from(f"{data}#Includes", tmp_path / "f", model=MODEL)
    assert verdicts(inside.suite, "It is 2", "a red one") == [True, True]
    with pytest.raises(InputError, match="no class 'Fuzzy'"):
        init_from(f"{data}#Fuzzy", tmp_path / "g", model=MODEL)


@pytest.mark.parametrize("name", ["facts.dev.v0", "fuzzy.dev.v0"])
def test_a_class_that_grades_otherwise_has_no_verdict(
    name: str, registry: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"lab\.yaml:\d+: (fact|FuzzyMatch): "):
        init_from(f"{registry}#{name}", tmp_path / "new", model=MODEL)
    created = init_from(f"{registry}#{name}", tmp_path / "new", model=MODEL, partial=True)
    assert set(verdicts(created.suite, *["2"] * len(load_suite(created.suite).tasks))) == {None}
    assert load_suite(created.suite).judge is None


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text('{"input": "1 + 1", "ideal": "2"}\n{"input": "1 +\n')
    with pytest.raises(InputError, match=r"samples\.jsonl:2: a row: it is not valid JSON"):
        init_from(f"{path}#Match", tmp_path / "new", model=MODEL)


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
