"""Rubrics as people write them, and every mistake in them at once."""

import json

import jsonschema
import pytest

from pennyweight.schema.problems import DocumentError
from pennyweight.suite.declaration import json_schema
from pennyweight.suite.loader import load_judging, load_suite
from pennyweight.suite.rubric import DEFAULT, PASS_MARK, load_rubric

GOOD = """\
rubric: review
pass_mark: 0.7
instructions: Be strict.
categories:
  works:
    weight: 2
    items:
      - It does what was asked.
      - {id: edge_cases, text: It holds at the edges., points: 4, na_when: there are none}
  tidy:
    items: It is tidy.
"""

SUITE = """\
suite: s
tasks: [{id: a, input: x}]
subjects: [python:m:answer]
judge:
"""


def written(folder, text, name="rubric.yaml"):
    path = folder / name
    path.write_text(text)
    return path


def test_a_rubric_is_read(tmp_path):
    rubric = load_rubric(written(tmp_path, GOOD))
    assert (rubric.name, rubric.pass_mark, rubric.instructions) == ("review", 0.7, "Be strict.")
    assert [(c.name, c.weight) for c in rubric.categories] == [("works", 2.0), ("tidy", 1.0)]
    assert [(i.id, i.points, i.na_when) for i in rubric.items] == [
        ("works_1", 1.0, None),
        ("edge_cases", 4.0, "there are none"),
        ("tidy", 1.0, None),
    ]


def test_another_text_is_another_rubric(tmp_path):
    first = load_rubric(written(tmp_path, GOOD))
    assert first.mark == load_rubric(written(tmp_path, GOOD + "# a note\n")).mark
    assert first.mark != load_rubric(written(tmp_path, GOOD.replace("tidy.", "neat."))).mark


def test_every_mistake_is_told_with_its_line(tmp_path):
    text = """\
pass_mark: 70
threshold: 0.5
categories:
  works:
    weight: 0
    items: []
  tidy:
    items:
      - {text: It is tidy., points: none}
      - {criterion: neat}
  clean:
    items: [{id: same, text: One.}, {id: same, text: Two.}]
  empty: {weight: 2}
"""
    path = written(tmp_path, text)
    with pytest.raises(DocumentError) as raised:
        load_rubric(path)
    told = str(raised.value).splitlines()
    for line, what in (
        (1, "pass_mark must be a number from 0 to 1, not 70"),
        (2, "Did you mean 'pass_mark'?"),
        (5, "weight must be a number above 0, not 0"),
        (6, "items must be a list of items, not an empty list"),
        (9, "points must be a number above 0, not 'none'"),
        (10, "Did you mean 'text'?"),
        (10, "needs 'text'"),
        (12, "the item 'same' is already in 'clean'"),
        (13, "needs 'items'"),
    ):
        assert any(f"{path}, line {line}: " in one and what in one for one in told), what


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("categories: {}", "at least one category"),
        ("- a", "must be a mapping"),
        ("a: [", "not YAML"),
    ],
)
def test_what_is_no_rubric_is_told(tmp_path, text, said):
    with pytest.raises(DocumentError, match=said):
        load_rubric(written(tmp_path, text))
    with pytest.raises(DocumentError, match="no such file"):
        load_rubric(tmp_path / "none.yaml")


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch):
    (tmp_path / "m.py").write_text("def answer(text):\n    return text\n")
    monkeypatch.chdir(tmp_path)


def test_a_suite_names_its_judges(tmp_path):
    written(tmp_path, GOOD)
    more = """\
  models: [{name: one, model: openai/x, base_url: "http://127.0.0.1:1", temperature: 0}, a/b]
  rubric: rubric.yaml
  consensus: confidence
  disagreement: 0.2
  more: [c/d]
  pass_mark: 0.8
prices: {one: {input: 1, output: 2}}
"""
    judging = load_suite(written(tmp_path, SUITE + more, "suite.yaml")).judge
    assert [j.name for j in judging.judges] == ["one", "a/b"]
    assert judging.judges[0].settings == {"temperature": 0}
    assert [j.name for j in judging.more] == ["c/d"]
    assert (judging.consensus, judging.disagreement) == ("confidence", 0.2)
    assert (judging.rubric.name, judging.rubric.pass_mark) == ("review", 0.8)


@pytest.mark.parametrize("text", ["judge: a/b", "judge: {model: a/b}", "judge: {models: a/b}"])
def test_one_judge_with_the_default_rubric_is_one_line(tmp_path, text):
    path = written(tmp_path, SUITE.replace("judge:", text), "suite.yaml")
    judging = load_suite(path).judge
    assert [j.model for j in judging.judges] == ["a/b"]
    assert judging.rubric == DEFAULT
    assert judging.rubric.pass_mark == PASS_MARK
    assert load_judging(path)[0] == judging


def test_mistakes_of_suite_and_rubric_are_told_together(tmp_path):
    written(tmp_path, "categories: {a: {items: []}}\n")
    text = SUITE + "  models: [a/b, a/b]\n  rubric: rubric.yaml\n  disagreement: 3\nruns: 0\n"
    with pytest.raises(DocumentError) as raised:
        load_suite(written(tmp_path, text, "suite.yaml"))
    told = str(raised.value)
    assert "line 5: the subject 'a/b' appears twice" in told
    assert "line 7: judge.disagreement must be a number from 0 to 1" in told
    assert "line 8: runs must be" in told
    assert "rubric.yaml, line 1: categories.a.items must be" in told


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ("{rubric: r.yaml}", "judge needs 'models'"),
        ("{models: a/b, model: a/b}", "judge needs 'models'"),
        ("{models: a/b, rubric: none.yaml}", "none.yaml: no such file"),
        ("{models: a/b, more: a/b}", "is in 'models' and in 'more'"),
        ("{judges: a/b}", "Did you mean 'models'?"),
    ],
)
def test_mistakes_about_judges_are_told(tmp_path, judge, said):
    path = written(tmp_path, SUITE.replace("judge:", f"judge: {judge}"), "suite.yaml")
    with pytest.raises(DocumentError, match=said.replace("?", r"\?")):
        load_suite(path)


def test_editors_know_judges_and_rubrics():
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    suite = {"suite": "s", "tasks": "t.jsonl", "subjects": ["a/b"]}
    for judge in ("a/b", {"models": ["a/b"], "rubric": {"categories": {"x": {"items": ["y"]}}}}):
        jsonschema.validate({**suite, "judge": judge}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**suite, "judge": {"models": "a/b", "rubric": {"x": 1}}}, schema)
    assert "na_when" in json.dumps(schema)
