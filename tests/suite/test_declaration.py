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
