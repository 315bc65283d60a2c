import json

import jsonschema
import pytest
import yaml

from pennyweight.schema.problems import DocumentError
from pennyweight.suite import plan
from pennyweight.suite.declaration import SUITE, json_schema
from pennyweight.suite.loader import load_suite
from pennyweight.suite.starter import first_suite

VALIDATOR = jsonschema.Draft202012Validator(json_schema())


def test_the_first_suite_loads_and_editors_accept_it(tmp_path):
    files = first_suite()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    suite = load_suite(tmp_path / "suite.yaml")
    assert suite.subjects[0].model == "local/smollm2-135m"
    assert plan.count(suite) >= 20
    assert all(task.target for task in suite.tasks)
    line = files["suite.yaml"].splitlines()[0]
    schema = line.removeprefix("# yaml-language-server: $schema=")
    assert json.loads(files[schema]) == json_schema()
    VALIDATOR.validate(yaml.safe_load(files["suite.yaml"]))


def test_the_schema_is_one():
    VALIDATOR.check_schema(json_schema())
    assert set(json_schema()["properties"]) == {f.name for f in SUITE.fields}
    assert all(p["description"] for p in json_schema()["properties"].values())


BASE = {"suite": "s", "tasks": ["q"], "subjects": ["local/m"]}


@pytest.mark.parametrize(
    "more",
    [
        {"runs": 3},
        {"runs": 0},
        {"rnus": 3},
        {"runs": "3"},
        {"answer": "last_number"},
        {"answer": {"marker": "X:"}},
        {"answer": "marker=X:"},
        {"answer": "nothing"},
        {"match": {"numeric": 0.1}},
        {"match": {"numeric": {"relative": 0.1}}},
        {"match": {"nmueric": 1}},
        {"limits": {"concurrency": "auto"}},
        {"limits": {"concurrency": 4, "usd": 1}},
        {"limits": {"concurrency": "some"}},
        {"limits": {"usd": 0}},
        {"tiers": {"T0": None, "T1": {"system": "x"}}},
        {"tiers": {"T0": {"sytem": "x"}}},
        {"prices": {"local/m": {"input": 1, "output": 2}}},
        {"prices": {"local/m": {"input": 1}}},
        {"messages": [{"role": "user", "content": "x"}]},
        {"messages": [{"role": "robot", "content": "x"}]},
        {"subjects": [{"model": "m", "temperature": 0}]},
        {"subjects": [{"name": "m"}]},
        {"examples": [{"input": "a", "output": "b"}]},
        {"confidence": "stated"},
        {"confidence": "felt"},
    ],
)
def test_editors_and_loading_agree(tmp_path, more):
    table = {**BASE, **more}
    path = tmp_path / "suite.json"
    path.write_text(json.dumps(table))
    try:
        load_suite(path)
        loads = True
    except DocumentError:
        loads = False
    assert VALIDATOR.is_valid(table) is loads


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("max_token: 5", "max_tokens"),
        ("temprature: 0", "temperature"),
        ("stop_sequences: [END]", "stop"),
        ("maxTokens: 5", "max_tokens"),
        ("max_output_tokens: 5", "max_tokens"),
        ("max_completion_tokens: 5", "max_tokens"),
        ("random_seed: 5", "seed"),
        ("topp: 1", "top_p"),
    ],
)
@pytest.mark.parametrize(
    "place",
    [
        "settings: {{{}}}\nsubjects: [local/m]",
        "subjects: [{{model: local/m, settings: {{{}}}}}]",
        "subjects: [local/m]\ntiers: {{T0: {{settings: {{{}}}}}}}",
        "subjects: [local/m]\njudge: {{models: [{{model: local/m, settings: {{{}}}}}]}}",
    ],
)
def test_a_misspelled_setting_is_a_mistake_wherever_it_is(tmp_path, given, meant, place):
    path = tmp_path / "suite.yaml"
    path.write_text(f"suite: s\ntasks: [q]\n{place.format(given)}\n")
    with pytest.raises(DocumentError) as caught:
        load_suite(path)
    key = given.partition(":")[0]
    (problem,) = (p for p in caught.value.problems if f"Key {key!r}" in p)
    assert f"Did you mean {meant!r}? To send it as it is, write it under 'extra'." in problem
    assert ", line " in problem
    path.write_text(f"suite: s\ntasks: [q]\n{place.format(f'extra: {{{given}}}')}\n")
    load_suite(path)


def test_settings_of_some_servers_are_sent_as_they_are(tmp_path):
    text = "settings: {min_tokens: 5, top_a: 1, repetition_penalty: 1.1, tool_choice: auto}"
    path = tmp_path / "suite.yaml"
    path.write_text(f"suite: s\ntasks: [q]\nsubjects: [local/m]\n{text}\n")
    assert load_suite(path).settings["min_tokens"] == 5
