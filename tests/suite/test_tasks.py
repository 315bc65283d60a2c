"""Rows that become tasks."""

import json
import re

import polars as pl
import pytest

from pennyweight.schema.problems import DocumentError
from pennyweight.suite.loader import load_suite
from suite.problems import MINIMAL, mistakes

COLUMNS = "suite: s\ntasks:\n  from: {file}\n  columns: {columns}\nsubjects: [m]\n"


def test_mistakes_in_files_of_tasks_have_their_own_lines(write):
    lines = ['{"id": "a", "input": "x"}', "{oops", "", '["list"]', '{"id": "a", "input": "y"}']
    lines += ['{"id": "c", "inptu": "y"}', '{"id": "d", "input": NaN}']
    found = mistakes(write(MINIMAL.format(tasks="tasks.jsonl"), tasks_jsonl="\n".join(lines)))
    assert [re.match(r"tasks.jsonl, line (\d)", f).group(1) for f in found] == [
        "2",
        "4",
        "5",
        "6",
        "7",
    ]
    assert "already used on line 1" in found[2]
    assert "there is inptu. The input is called" in found[3]
    many = "\n".join(['{"id": 1, "input": "a"}'] * 101)
    found = mistakes(write(MINIMAL.format(tasks="tasks.jsonl"), tasks_jsonl=many))
    assert len(found) == 21
    assert "80 more problems" in found[-1]


def test_tasks_without_an_input_are_one_mistake(write):
    many = "\n".join(['{"q": 1}'] * 100 + ['{"id": "x", "r": 1}'])
    found = mistakes(write(MINIMAL.format(tasks="tasks.jsonl"), tasks_jsonl=many))
    assert found == [
        "tasks.jsonl, line 1: task '1' and 99 more have no input; there is q. The input is called "
        "input, question, prompt, query, problem, instruction; 'columns: {input: COLUMN}' (--map "
        "input=COLUMN) names another column.",
        "tasks.jsonl, line 101: task 'x' has no input; there is r. The input is called "
        "input, question, prompt, query, problem, instruction; 'columns: {input: COLUMN}' (--map "
        "input=COLUMN) names another column.",
    ]


def test_a_mapped_column_that_does_not_exist_is_one_mistake(write):
    text = "suite: s\ntasks:\n  from: t.csv\n  columns: {input: frage}\nsubjects: [local/m]\n"
    rows = "Text,Antwort\n" + "a,b\n" * 30
    assert mistakes(write(text, t_csv=rows)) == [
        "suite.yaml, line 4: tasks.columns.input: Column 'frage' is not known. t.csv has: Text, "
        "Antwort."
    ]


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("Question,Answer", "2 + 2?,4"),
        (" ID , Question , Correct Answer ", "a,2 + 2?,4"),
        ("question;expected_outcome", "2 + 2?;4"),
        ("\ufeffQuestion\tExpected Output", "2 + 2?\t4"),
        ("QUESTION,answerKey", "2 + 2?,4"),
    ],
)
def test_columns_are_found_in_any_case_and_with_other_signs(header, row, write):
    suite = load_suite(write(MINIMAL.format(tasks="t.csv"), t_csv=f"{header}\n{row}\n"))
    assert (suite.tasks[0].input, suite.tasks[0].target) == ("2 + 2?", "4")


def test_foreign_columns(write):
    columns = "{input: frage, target: lsg}"
    text = f"suite: s\ntasks: {{from: t.csv, columns: {columns}, limit: 1}}\nsubjects: [m]\n"
    suite = load_suite(write(text, t_csv="frage;lsg;answer\nwas?;das;secret\nwer?;x;y\n"))
    assert [(t.input, t.target, t.extra) for t in suite.tasks] == [
        ("was?", "das", {"answer": "secret"})
    ]
    assert "cannot use 'answer'" in "\n".join(mistakes(write(text + "prompt: '{{ answer }}'\n")))
    wrong = text.replace("target: lsg", "targt: lsg")
    assert "Did you mean 'target'?" in "\n".join(mistakes(write(wrong)))


def test_columns_that_no_row_has_are_told_before_anything_is_called(write):
    text = COLUMNS.format(file="t.csv", columns="{target: Antwrt, input: Frage, context: Anhang}")
    table = "Frage,Antwort\n1 + 1?,2\n2 + 2?,4\n"
    assert mistakes(write(text + "runs: x\n", t_csv=table)) == [
        "suite.yaml, line 4: tasks.columns.context: Column 'Anhang' is not known. "
        "t.csv has: Frage, Antwort.",
        "suite.yaml, line 4: tasks.columns.target: Column 'Antwrt' is not known. "
        "Did you mean 'Antwort'? t.csv has: Frage, Antwort.",
        "suite.yaml, line 6: runs must be a whole number of at least 1, not 'x'.",
    ]


@pytest.mark.parametrize("limit", ["", "  limit: 1\n"])
def test_a_column_that_only_some_rows_fill_is_known(write, tmp_path, limit):
    columns = "{input: Frage, target: Antwort}\n" + limit.rstrip("\n")
    rows = [{"Frage": "a", "Antwort": None}, {"Frage": "b", "Antwort": "x"}]
    pl.DataFrame(rows[:1], schema={"Frage": pl.String, "Antwort": pl.String}).write_parquet(
        tmp_path / "t.parquet"
    )
    files = {
        "t_jsonl": '{"Frage": "a"}\n{"Frage": "b", "Antwort": "x"}\n',
        "t_csv": "Frage,Antwort\na,\n",
    }
    for file in ("t.jsonl", "t.csv", "t.parquet"):
        suite = load_suite(write(COLUMNS.format(file=file, columns=columns), **files))
        assert suite.tasks[0].target is None


def test_an_empty_input_is_called_empty(write):
    tasks = "[{id: c, input: ' '}, {id: d, input: {query: ''}}, {id: e, target: x}]"
    found = mistakes(write(MINIMAL.format(tasks=tasks)))
    assert found[:2] == [f"suite.yaml, line 2: task {name!r}: the input is empty." for name in "cd"]
    assert "task 'e' has no input; there is target. The input is called input" in found[2]


def test_conversations_as_input(write):
    text = """\
suite: s
tasks:
  - input: [{role: user, content: hi}, {role: assistant, content: yo}, {role: user, content: q}]
  - input: {query: what, context: here, files: [a]}
subjects: [m]
"""
    first, second = load_suite(write(text)).tasks
    assert (first.input, [m.content for m in first.before]) == ("q", ["hi", "yo"])
    assert (second.input, second.context, second.extra) == ("what", "here", {"files": ["a"]})
    wrong = text.replace("{role: user, content: q}", "{role: assistant, content: q}")
    assert "the last role is user" in "\n".join(mistakes(write(wrong)))


def test_a_hundred_thousand_tasks_load(write, tmp_path):
    with (tmp_path / "big.jsonl").open("w") as file:
        for i in range(100_000):
            file.write(f'{{"id": "q{i}", "input": "what is {i} plus {i}?", "target": {2 * i}}}\n')
    suite = load_suite(write(MINIMAL.format(tasks="big.jsonl")))
    assert len(suite.tasks) == 100_000


@pytest.fixture
def load(tmp_path):
    def made(*tasks, **more):
        suite = {"suite": "s", "subjects": ["local/a"], "tasks": list(tasks), **more}
        path = tmp_path / "s.json"
        path.write_text(json.dumps(suite))
        return load_suite(path)

    return made


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("mustnot", "must_not"),
        ("must-not", "must_not"),
        ("Must_Not", "must_not"),
        ("expected_behavors", "expected_behaviors"),
        ("expect_behaviors", "expected_behaviors"),
        ("catgory", "category"),
        ("requird", "required"),
        ("weigth", "weight"),
        ("check", "checks"),
        ("pass-score", "pass_score"),
        ("taget", "target"),
        ("evaluation_critera", "evaluation_criteria"),
        ("tool_result", "tool_results"),
    ],
)
def test_a_misspelt_key_is_a_mistake(load, key, meant):
    with pytest.raises(DocumentError, match=f"Did you mean '{meant}'"):
        load({"id": "a", "input": "q", key: ["x"]})


@pytest.mark.parametrize(
    "key", ["height", "level", "source", "content", "choices", "author", "must_read", "difficulty"]
)
def test_columns_of_ones_own_stay(load, key):
    suite = load({"id": "a", "input": "q", key: "x"})
    assert suite.tasks[0].extra == {key: "x"}


def test_a_legitimate_near_miss_can_be_kept(load, tmp_path):
    (tmp_path / "t.csv").write_text("id,input,categori\na,q,x\n")
    with pytest.raises(DocumentError, match=r"columns: \{categori: categori\}"):
        load(tasks="t.csv")
    suite = load(tasks={"from": "t.csv", "columns": {"categori": "categori"}})
    assert suite.tasks[0].extra == {"categori": "x"}
    below = load({"id": "a", "input": {"query": "q", "categori": "x"}})
    assert below.tasks[0].extra == {"categori": "x"}


@pytest.mark.parametrize("given", ["ja", "maybe", "", 2, "tru"])
def test_required_is_yes_or_no(load, given):
    with pytest.raises(DocumentError, match="required must be true or false"):
        load({"id": "a", "input": "q", "required": given})


@pytest.mark.parametrize(("given", "wanted"), [(True, True), ("Yes", True), ("0", False)])
def test_tables_may_say_it_in_words(load, given, wanted):
    task = {"id": "a", "input": "q", "required": given, "checks": [{"contains": "x"}]}
    assert load(task).tasks[0].scenario.required is wanted


@pytest.mark.parametrize(
    "check", [{"cost": 1}, {"file_exists": "a"}, {"judge_score": 0.5}, {"human": "Fine?"}], ids=str
)
def test_a_turn_depends_only_on_what_is_known_then(load, check):
    turns = [{"say": "Go on.", "if": check}]
    with pytest.raises(DocumentError, match="cannot be decided during the conversation"):
        load({"id": "a", "input": "q", "turns": turns})
