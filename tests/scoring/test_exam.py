"""Tasks that changed are left out of comparisons, changed grading is refused; both are said."""

import json

import polars as pl
import pytest

import pennyweight
from pennyweight.errors import UsageError
from pennyweight.scoring.large import spill
from pennyweight.text.exam import digest

TASKS = 40


def side(name, right=lambda i: i % 2, **columns):
    """The records of one side; `columns` are values, or functions of the task's number."""
    rows = []
    for i in range(TASKS):
        row = {"task_id": f"q{i}", "subject": name, "input": f"Question {i}?", "target": f"t{i}"}
        row |= {n: v(i) if callable(v) else v for n, v in columns.items()}
        row["answer"] = row["target"] if right(i) else "wrong"
        rows.append(row)
    return rows


def compared(a, b, **options):
    return pennyweight.compare([*a, *b], by="subject", **options)


def easier(i):
    return f"Easy question {i}?" if i < 11 else f"Question {i}?"


@pytest.fixture(params=["in memory", "on disk"])
def kept(request, monkeypatch):
    if request.param == "on disk":
        monkeypatch.setattr(spill, "IN_MEMORY", 20)
        monkeypatch.setattr(spill, "PART", 15)


def test_tasks_that_became_easier_are_no_improvement(kept):
    found = compared(side("a"), side("b", lambda i: i % 2 or i < 11, input=easier))
    pair = found.pair("b", "accuracy")
    assert (pair.tasks, pair.difference, pair.p) == (29, 0.0, 1.0)
    assert [s.group.records for s in found.sides] == [29, 29], "tables show the same exam too"
    assert (found.exam.tasks, found.exam.changed, found.exam.parts) == (40, 11, (("input", 11),))
    said, *_ = found.exam.sentences()
    assert said.startswith(
        "11 of 40 tasks differ between a and b and are left out: "
        "q0 (the input), q1 (the input), q2 (the input) and 8 more."
    )
    assert found.to_dict()["exam"]["examples"][0] == {"task": "q0", "parts": ["input"]}


def test_another_prompt_over_the_same_tasks_is_compared_and_said(kept):
    found = compared(side("a"), side("b", input=lambda i: f"Think. Question {i}?"))
    assert found.pair("b", "accuracy").tasks == 40
    assert (found.exam.changed, found.exam.prompts) == (0, 40)
    assert found.exam.sentences() == [
        "The inputs of all 40 tasks differ and their targets are equal: a and b count as "
        "different prompts over the same tasks."
    ]


def test_a_changed_target_counts_under_another_prompt_too(kept):
    other = side("b", input=lambda i: f"Hm: {i}?", target=lambda i: "u" if i < 3 else f"t{i}")
    found = compared(side("a"), other)
    assert (found.exam.changed, found.exam.prompts) == (3, 37)
    assert found.exam.parts == (("target", 3),)


def test_an_edit_under_one_of_three_prompts_is_found():
    sides = [
        *side("a", input=lambda i: f"A: {i}"),
        *side("b", input=lambda i: f"B: {i}"),
        *side("c", input=lambda i: f"A: {i}{' or so' if i < 2 else ''}"),
    ]
    found = pennyweight.compare(sides, by="subject")
    assert (found.exam.changed, found.exam.prompts) == (2, 38)


def test_all_tasks_changed_is_an_error_that_says_so(kept):
    other = side("b", input=lambda i: f"Hm: {i}?", target=lambda i: f"u{i}")
    with pytest.raises(UsageError, match="all 40 tasks differ between a and b: q0 "):
        compared(side("a"), other)


@pytest.mark.parametrize(
    "columns",
    [
        {"input": lambda i: f" Question {i}?\n"},
        {"target": lambda i: f" t{i}"},
        {"input": None},
        {"choices": lambda i: ["x", "y"]},
        {"note": lambda i: f"{i}"},
        {"pass_score": None},
        {"input": None, "question": lambda i: f"Question {i}?"},
    ],
)
def test_what_a_side_does_not_know_and_how_it_is_written_is_no_change(columns):
    found = compared(side("a"), side("b", **columns))
    assert found.exam.changed == 0
    assert found.exam.sentences() == []


def test_tasks_that_only_one_side_tried_are_no_change():
    found = compared(side("a")[:30], side("b")[10:])
    assert (found.exam.changed, found.pair("b", "accuracy").tasks) == (0, 20)


def test_sides_that_are_graded_differently_are_refused(kept):
    judged = side("b", grading_digest="1 answer=1 judges=3")
    with pytest.raises(UsageError, match=r"a and b are graded differently: the judges.*judge RUN"):
        compared(side("a", grading_digest="1 answer=1 judges=2"), judged)
    found = compared(side("a"), judged)
    assert found.pair("b", "accuracy").tasks == 40, "nothing is known of the grading of a"


def test_a_rule_for_both_takes_the_place_of_their_own():
    a, b = side("a", grading_digest="1 match=1"), side("b", grading_digest="1 match=2")
    with pytest.raises(UsageError, match=r"the match rule\. --match RULE"):
        compared(a, b)
    assert compared(a, b, match="contains").pair("b", "accuracy").tasks == 40


def test_a_side_that_says_less_than_the_other_is_named():
    whole = side("a", task_digest=lambda i: digest({"input": f"Question {i}?", "checks": []}))
    found = compared(whole, side("b"))
    assert (found.exam.known, found.exam.changed) == (("whole", "parts"), 0)
    assert found.exam.sentences() == [
        "b says only in part what was asked and how it is decided; a change of the rest goes "
        "unnoticed."
    ]


def test_columns_and_formats_make_no_difference(tmp_path):
    rows = side("a", choices=lambda i: ["x", f"y{i}"], target=lambda i: i)
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    names = {"input": "question", "target": "gold", "answer": "prediction"}

    frame = pl.DataFrame(rows, infer_schema_length=None, strict=False)
    frame.drop("choices").rename(names).reverse().write_parquet(tmp_path / "b.parquet")
    frame.drop("choices").with_columns(pl.col("target").cast(pl.Float64)).write_csv(
        tmp_path / "c.csv"
    )
    sources = [str(tmp_path / name) for name in ("a.jsonl", "b.parquet", "c.csv")]
    found = pennyweight.compare(sources)
    assert (found.exam.changed, found.exam.prompts) == (0, 0)


def test_what_two_systems_retrieved_for_a_question_is_no_change_of_it():
    sides = [side(name, context=lambda i, n=name: f"Passage {i} of {n}.") for name in "ab"]
    found = compared(*sides)
    assert (found.exam.changed, found.exam.prompts) == (0, 40)


def test_two_prompts_in_a_log_of_promptfoo_are_two_prompts(tmp_path):
    def results(edit=""):
        for i in range(8):
            for prompt in ("Be brief.", "Think."):
                yield {
                    "prompt": {"raw": f"{prompt} {i}?", "label": prompt},
                    "provider": {"id": "m"},
                    "vars": {"q": f"{i}{edit}"},
                    "testCase": {
                        "vars": {"q": f"{i}{edit}"},
                        "assert": [{"type": "x", "value": i}],
                    },
                    "response": {"output": "x"},
                    "success": i % 2 == 0,
                    "gradingResult": {"pass": i % 2 == 0, "score": 1, "componentResults": []},
                }

    log = {"evalId": "e", "results": {"version": 3, "results": list(results()), "stats": {}}}
    (tmp_path / "log.json").write_text(json.dumps({**log, "config": {}}))
    found = pennyweight.compare(str(tmp_path / "log.json"), by="tier")
    assert (found.exam.known, found.exam.changed) == (("whole", "whole"), 0)
    assert found.pair("Think.", "pass_rate").tasks == 8


@pytest.mark.parametrize("change", [{"grading_digest": "match=000000000000"}, {"target": "other"}])
def test_a_report_on_different_exams_says_so_and_not_that_tasks_differ(tmp_path, change):
    graded = {"grading_digest": "match=111111111111"}
    rows = [*side("a", **graded), *side("b", **graded | change)]
    pennyweight.report(rows, str(tmp_path / "r.md"))
    text = (tmp_path / "r.md").read_text("utf-8")
    assert "The sides did not take the same exam, so their differences are not tested." in text
    assert "no tasks in common" not in text
