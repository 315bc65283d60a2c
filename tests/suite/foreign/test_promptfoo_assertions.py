"""Assertions of promptfoo: each decides as it does there, or is missing and decides nothing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.command import pennyweight
from pennyweight.api.init import init_from
from pennyweight.checks.attempt import AttemptView
from pennyweight.checks.scenario import observe
from pennyweight.errors import InputError
from pennyweight.suite.loader import load_suite

HEAD = {"prompts": ["{{q}}"], "providers": ["openai:chat:gpt-4.1-mini"]}


def configuration(folder: Path, tests: list[Any] | str, **others: Any) -> Path:
    path = folder / "promptfooconfig.yaml"
    path.write_text(yaml.safe_dump({**HEAD, "tests": tests, **others}))
    return path


def verdicts(config: Path, replies: list[str], **options: Any) -> list[bool | None]:
    """Convert a configuration with one test; decide on each reply."""
    created = init_from(config, config.parent / "new", **options)
    (task,) = load_suite(created.suite).tasks
    assert task.scenario is not None
    seen = [observe(task.scenario, AttemptView({"response": said}), {}) for said in replies]
    return [one.passed(None, answered=False) for one in seen]


WHOLE: dict[str, tuple[Any, list[str], list[str]]] = {
    "contains": ({"type": "contains", "value": "Tea"}, ["Tea!"], ["tea"]),
    "icontains": ({"type": "icontains", "value": "Tea"}, ["tea"], ["te a"]),
    "contains-any": ({"type": "contains-any", "value": ["a", "b"]}, ["b"], ["c", "B"]),
    "contains-all": ({"type": "contains-all", "value": ["a", "b"]}, ["ab"], ["b"]),
    "icontains-all": ({"type": "icontains-all", "value": "a, b"}, ["AB"], ["B"]),
    "icontains-any": ({"type": "icontains-any", "value": ["x", "Y"]}, ["y"], ["z"]),
    "equals": ({"type": "equals", "value": "Yes"}, ["Yes"], ["yes", "Yes."]),
    "equals a number": ({"type": "equals", "value": 42}, ["42"], ["42.0"]),
    "equals JSON": ({"type": "equals", "value": {"a": 1}}, ['{"a": 1}'], ['{"a": 2}', "a"]),
    "starts-with": ({"type": "starts-with", "value": "Yes"}, ["Yes."], ["yes", " Yes"]),
    "regex": ({"type": "regex", "value": r"^\d{3}$"}, ["123"], ["1234", "١٢٣"]),
    "is-json": ({"type": "is-json"}, ["[1]"], ["{", "x [1]"]),
    "is-json with a schema": (
        {"type": "is-json", "value": {"type": "object", "required": ["a"]}},
        ['{"a": 1}'],
        ["{}", "[]"],
    ),
    "contains-json": ({"type": "contains-json"}, ['x {"a": 1} y'], ["x"]),
    "word-count": (
        {"type": "word-count", "value": {"min": 2, "max": 3}},
        ["a b"],
        ["a", "a b c d"],
    ),
    "not-contains": ({"type": "not-contains", "value": "no"}, ["yes"], ["no"]),
    "not-equals": ({"type": "not-equals", "value": "no"}, ["No"], ["no"]),
    "not-regex": ({"type": "not-regex", "value": "[0-9]"}, ["x"], ["x1"]),
    "not-is-json": ({"type": "not-is-json"}, ["x"], ["{}"]),
    "not-contains-all": ({"type": "not-contains-all", "value": ["a", "b"]}, ["a"], ["ab"]),
    "javascript": ({"type": "javascript", "value": "output.length < 3"}, ["ab"], ["abc"]),
    "javascript of two parts": (
        {"type": "javascript", "value": "output.includes('a') && !output.includes('b')"},
        ["a"],
        ["ab", "c"],
    ),
    "not-javascript": ({"type": "not-javascript", "value": "output === 'a'"}, ["b"], ["a"]),
    "a transform": (
        {"type": "equals", "value": "yes", "transform": "output.trim().toLowerCase()"},
        [" Yes "],
        ["no"],
    ),
    "a template": ({"type": "contains", "value": "{{q}}!"}, ["tea!"], ["tea"]),
    "a set": (
        {
            "type": "assert-set",
            "threshold": 0.5,
            "assert": [{"type": "contains", "value": "a"}, {"type": "contains", "value": "b"}],
        },
        ["a", "b", "ab"],
        ["c"],
    ),
    "a set of all": (
        {
            "type": "assert-set",
            "assert": [{"type": "contains", "value": "a"}, {"type": "not-contains", "value": "b"}],
        },
        ["a"],
        ["ab", "c"],
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_an_assertion_decides_as_it_does_there(name: str, tmp_path: Path) -> None:
    assertion, good, bad = WHOLE[name]
    config = configuration(tmp_path, [{"vars": {"q": "tea"}, "assert": [assertion]}])
    wanted = [*[True] * len(good), *[False] * len(bad)]
    assert verdicts(config, [*good, *bad]) == wanted


def test_weights_and_a_threshold_decide_by_their_sum(tmp_path: Path) -> None:
    asserts = [
        {"type": "contains", "value": "a", "weight": 3},
        {"type": "not-contains", "value": "b"},
    ]
    config = configuration(tmp_path, [{"vars": {"q": "x"}, "threshold": 0.7, "assert": asserts}])
    assert verdicts(config, ["a", "ab", "c"]) == [True, True, False]


LOST: dict[str, Any] = {
    "python": {"type": "python", "value": "len(output) > 1"},
    "a file of code": {"type": "javascript", "value": "file://check.js"},
    "code": {"type": "javascript", "value": "output.split(' ').length > 2"},
    "ruby": {"type": "ruby", "value": "true"},
    "webhook": {"type": "webhook", "value": "https://example.com/check"},
    "similar": {"type": "similar", "value": "tea", "threshold": 0.8},
    "is-refusal": {"type": "is-refusal"},
    "not-is-refusal": {"type": "not-is-refusal"},
    "moderation": {"type": "moderation"},
    "classifier": {"type": "classifier", "value": "polite", "provider": "huggingface:x:y"},
    "rouge-n": {"type": "rouge-n", "value": "tea"},
    "levenshtein": {"type": "levenshtein", "value": "tea", "threshold": 2},
    "perplexity": {"type": "perplexity", "threshold": 2},
    "is-sql": {"type": "is-sql"},
    "is-xml": {"type": "is-xml"},
    "is-valid-openai-tools-call": {"type": "is-valid-openai-tools-call"},
    "trace-span-count": {"type": "trace-span-count", "value": {"pattern": "x", "min": 1}},
    "select-best": {"type": "select-best", "value": "the shortest"},
    "g-eval": {"type": "g-eval", "value": "polite"},
    "answer-relevance": {"type": "answer-relevance", "threshold": 0.8},
    "context-faithfulness": {"type": "context-faithfulness", "threshold": 0.8},
    "llm-rubric with a threshold": {"type": "llm-rubric", "value": "polite", "threshold": 0.8},
    "llm-rubric with a prompt": {"type": "llm-rubric", "value": "x", "rubricPrompt": "Grade it"},
    "look-ahead": {"type": "regex", "value": "a(?=b)"},
    "a transform": {"type": "contains", "value": "a", "transform": "output.split('\\n')[0]"},
    "not-latency": {"type": "not-latency", "threshold": 10},
    "an unknown type": {"type": "contians", "value": "a"},
    "an unknown key": {"type": "contains", "value": "a", "contextTransform": "context.x"},
    "a template that is missing": {"$ref": "#/assertionTemplates/none"},
    "no type": {"value": "a"},
    "a text": "contains: a",
    "a set with code": {
        "type": "assert-set",
        "threshold": 1,
        "assert": [{"type": "python", "value": "True"}, {"type": "contains", "value": "a"}],
    },
}


@pytest.mark.parametrize("name", LOST)
def test_an_assertion_that_is_lost_decides_nothing(name: str, tmp_path: Path) -> None:
    asserts = [LOST[name], {"type": "contains", "value": "a"}]
    config = configuration(tmp_path, [{"vars": {"q": "tea"}, "assert": asserts}])
    with pytest.raises(InputError) as told:
        init_from(config, tmp_path / "new")
    assert "promptfooconfig.yaml:" in str(told.value)
    assert "--partial" in told.value.hint
    assert not (tmp_path / "new").exists()
    assert verdicts(config, ["a", "b"], partial=True) == [None, False]
    assert load_suite(tmp_path / "new" / "suite.yaml").partial


@pytest.mark.parametrize("name", [*LOST][:6])
def test_a_part_of_a_sum_that_is_lost_leaves_the_sum_open(name: str, tmp_path: Path) -> None:
    asserts = [LOST[name], {"type": "contains", "value": "a", "weight": 3}]
    for threshold, wanted in ((0.5, [True, False]), (0.9, [None, False])):
        test = {"vars": {"q": "tea"}, "threshold": threshold, "assert": asserts}
        config = configuration(tmp_path, [test])
        assert verdicts(config, ["a", "b"], partial=True, force=True) == wanted


def test_scores_of_graders_are_no_part_of_a_sum(tmp_path: Path) -> None:
    asserts = [{"type": "llm-rubric", "value": "It is kind."}, {"type": "contains", "value": "a"}]
    config = configuration(tmp_path, [{"vars": {"q": "x"}, "threshold": 0.9, "assert": asserts}])
    with pytest.raises(InputError, match=r"llm-rubric 'It is kind.': its score is a fraction"):
        init_from(config, tmp_path / "new")


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_code_that_returns_a_number_is_no_part_of_a_sum(tmp_path: Path) -> None:
    for code, missing in (("output.length / 10", True), ("output.at(0) === 'a'", False)):
        asserts = [{"type": "javascript", "value": code}, {"type": "contains", "value": "a"}]
        test = {"vars": {"q": "x"}, "threshold": 0.5, "assert": asserts}
        created = init_from(
            configuration(tmp_path, [test]), tmp_path / "new", code=True, partial=True, force=True
        )
        assert bool(created.missing) is missing


def test_a_run_of_a_part_says_so_wherever_its_numbers_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = {"vars": {"q": "tea"}, "assert": [LOST["python"], {"type": "contains", "value": "t"}]}
    monkeypatch.chdir(tmp_path)
    config = configuration(tmp_path, [test], providers=["echo"])
    refused = pennyweight("init", "new", "--from", config)
    assert (refused.code, refused.out) == (2, "")
    assert "promptfooconfig.yaml:7: python 'len(output) > 1': it is code" in refused.err
    assert not Path("new").exists()
    made = pennyweight("init", "new", "--from", config, "--partial")
    assert made.code == 0
    assert "Missing" in made.err
    done = pennyweight("run", "new/suite.yaml", "--store", "s.db")
    assert "This suite is a part of the one it was made from. Missing: promptfoo" in done.err
    assert "pass_rate" not in done.out.split("attempt_error_rate")[0].replace("—", "")
    words = "only a part of the suite it was made from"
    assert words in pennyweight("score", "latest", "--store", "s.db").err
    assert words in pennyweight("runs", "--store", "s.db", "--format", "csv").out
    assert words in pennyweight("report", "latest", "--store", "s.db", "-o", "r.md").err + (
        Path("r.md").read_text()
    )
