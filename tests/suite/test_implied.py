"""Runs without a suite: a question, or a file of tasks, and the models to ask."""

import csv
import io
import itertools
import json

import polars as pl
import pytest

from cli.command import pennyweight, refused
from pennyweight.api.run import plan, resume, run
from pennyweight.api.runs import load
from pennyweight.errors import PennyweightError
from pennyweight.suite.loader import load_suite
from pennyweight.suite.narrowing import Narrowing
from pennyweight.text.extraction import answer
from pennyweight.text.matching import matches

ECHO = Narrowing.of(models=["python:echo:say"])
MODEL = """
import json, pathlib
def say(text):
    return f'You said {text} 4'
def tell(text):
    return json.loads(pathlib.Path('replies.json').read_text())[text.split('\\n')[0]]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENNYWEIGHT_STORE", str(tmp_path / "store.db"))
    (tmp_path / "echo.py").write_text(MODEL)
    return tmp_path


def table(*targets):
    """A file of questions a, b, c … with these targets."""
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(["question", "answer"])
    rows.writerows((f"q{i}", target) for i, target in enumerate(targets))
    return text.getvalue()


def right(folder, targets, replies, name="q.csv", text=None):
    """Which replies are right, as the records of a run have it; None if one is not scored."""
    (folder / name).write_text(text or table(*targets))
    (folder / "replies.json").write_text(json.dumps({f"q{i}": r for i, r in enumerate(replies)}))
    said = pennyweight("run", name, "-m", "python:echo:tell")
    assert said.code == 0, said.err
    return load().records().sort("task_id")["correct"].to_list(), said


def note(folder, *targets, options=()):
    (folder / "q.csv").write_text(table(*targets))
    said = pennyweight("run", "q.csv", "-m", "python:echo:say", "--dry-run", *options)
    assert said.code == 0, said.err
    (line,) = (one for one in said.err.splitlines() if "Answers:" in one)
    return line.removeprefix("Note: ")


def test_a_question_gets_its_reply_and_nothing_else_on_standard_output():
    said = pennyweight("run", "-m", "python:echo:say", "What is {{ 2 }}?")
    assert (said.code, said.out) == (0, "You said What is {{ 2 }}? 4\n")
    assert "1 attempt of prompt (model python:echo:say)" in said.err
    answer = pennyweight("run", "-m", "python:echo:say", "--ask", "Hi", "--format", "json")
    (one,) = json.loads(answer.out)["replies"]
    assert (one["input"], one["response"], one["error"]) == ("Hi", "You said Hi 4", None)


def test_questions_without_targets_show_their_replies_and_nothing_is_scored(folder):
    (folder / "q.csv").write_text("question,hint\nOne?,a\nTwo?,b\n")
    said = pennyweight("run", "q.csv", "-m", "python:echo:say")
    assert said.out == (
        "1 · python:echo:say: One?\nYou said One? 4\n\n2 · python:echo:say: Two?\nYou said Two? 4\n"
    )
    assert (
        "No column of q.csv is a target, so nothing is scored. Other columns: hint. "
        "--map target=COLUMN names one." in said.err
    )


@pytest.mark.parametrize(
    ("targets", "says"),
    [
        (("4", "$5", "1,000"), "compared as numbers (from 3 targets)"),
        (("yes", "No"), "compared as whole words with 'no' and 'yes' (from 2 targets)"),
        (("true", "true"), "compared as whole words with 'false' and 'true' (from 2 targets)"),
        (("A", "b", "(C)"), "compared as letters (from 3 targets)"),
        (("up", "down", "Up", "down"), "compared as whole words with 'down' and 'Up'"),
        (("Paris", "Rome"), "compared as texts; case and outer spaces do not count"),
        (("4", "none", "5"), "compared as numbers, or as text where a target is no number"),
    ],
)
def test_the_rule_follows_from_the_targets_and_is_told_in_one_line(targets, says, folder):
    line = note(folder, *targets)
    assert line.startswith('Answers: the text after "ANSWER:", ' + says)
    assert line.endswith("Change with --match, --answer.")
    suite = load_suite("q.csv", narrowing=ECHO)
    again = load_suite("q.csv", suite.text, narrowing=ECHO)
    assert (again.answer, again.match) == (suite.answer, suite.match), "the text says all of it"
    assert again.tiers == suite.tiers
    limited = note(folder, *targets, options=("--limit", "1"))
    assert limited == line, "the rule follows from all targets, also where few are tried"


HONEST = (
    "I do not know, honestly. Maybe 9999955?",
    "I cannot answer this. ANSWER: I do not know, honestly. Maybe 9999955?",
    "ANSWER: no idea",
    "ANSWER: not sure, yes or no",
    "ANSWER: yes and no",
    "ANSWER: A, B, C, D",
    "ANSWER: (A) or (B)",
    "ANSWER: A. yes B. no",
    "ANSWER: 1415",
    "ANSWER: unknown",
    "ANSWER: <answer>",
    "ANSWER:",
    "",
    "yes no 9 5 99 41 A B C D true false",
    "Finish with one line that begins with ANSWER: and then has only one of these words: no, yes.",
)
TARGETS = {
    "mixed": ("no", "no", "9", "5", "99"),
    "numbers": ("9", "5", "99", "41", "999995"),
    "yes and no": ("no", "yes", "no", "yes"),
    "letters": ("A", "B", "C", "D"),
    "labels": ("know", "honest", "know", "honest"),
    "texts": ("know", "honestly", "maybe", "I", "do not know"),
    "flags": ("true", "false"),
}


@pytest.mark.parametrize("kind", TARGETS)
def test_no_reply_is_right_because_a_target_occurs_in_it(kind, folder):
    """Every target with every reply that does not answer: none is scored right."""
    pairs = list(itertools.product(TARGETS[kind], HONEST))
    (folder / "q.csv").write_text(table(*(target for target, _ in pairs)))
    suite = load_suite("q.csv", narrowing=ECHO)
    frame = pl.DataFrame(pairs, schema=["target", "reply"], orient="row")
    scored = frame.with_columns(
        correct=matches(answer(pl.col("reply"), suite.answer), pl.col("target"), suite.match)
    )
    assert scored.filter(pl.col("correct") | pl.col("correct").is_null()).rows() == []


@pytest.mark.parametrize(
    ("targets", "replies"),
    [
        (("41", "1000", "-3"), ("ANSWER: 41", "**ANSWER:** $1,000.", "ANSWER: −3")),
        (("yes", "no", "no"), ("ANSWER: Yes.", "Well.\n**ANSWER: No**", "answer: no, it is not")),
        (("A", "B"), ("ANSWER: (A)", "A or B?\nANSWER: b")),
        (("Paris", "New York"), ("ANSWER: paris", "ANSWER:  New York.")),
    ],
)  # fmt: skip
def test_right_answers_are_right(targets, replies, folder):
    assert right(folder, targets, replies)[0] == [True] * len(targets)


def test_a_reply_without_the_line_is_wrong_and_has_no_answer(folder):
    correct, said = right(folder, ("4", "5"), ("It is 4.", "ANSWER: 5"))
    assert correct == [False, True]
    assert load().records().sort("task_id")["answer"].to_list() == [None, "5"]
    assert "50.0 %" in said.out
    lost = right(folder, ("4", "5"), ("It is 4.", "It is 5."))[1]
    assert "found no answer in 2 of 2 responses" in lost.err
    assert "The prompt asked for it." in lost.err


ROWS = {
    "an index": {"choices": ["Rome", "Paris", "Oslo"], "answer": 1},
    "a letter": {"choices": ["Rome", "Paris", "Oslo"], "answer": "B"},
    "the text": {"choices": ["Rome", "Paris", "Oslo"], "answer": "Paris"},
    "a cell of JSON": {"choices": '["Rome", "Paris", "Oslo"]', "answer": "1"},
    "a list of Python": {"options": "['Rome', 'Paris', 'Oslo']", "answer": "1"},
    "a mapping": {"options": {"A": "Rome", "B": "Paris", "C": "Oslo"}, "answer_idx": "B"},
    "labels": {"choices": {"text": ["Rome", "Paris"], "label": ["1", "2"]}, "answerKey": "2"},
    "columns": {"A": "Rome", "B": "Paris", "C": "Oslo", "D": "Bonn", "answer": "B"},
    "named columns": {"option_a": "Rome", "option_b": "Paris", "correct_option": "B"},
    "numbered columns": {"choice1": "Rome", "choice2": "Paris", "label": 1},
    "endings": {"endings": ["Rome", "Paris", "Oslo"], "label": "1"},
}


@pytest.mark.parametrize("shape", ROWS)
@pytest.mark.parametrize(
    "reply", ["ANSWER: B", "It is (B).\n**ANSWER: B. Paris**", "ANSWER: paris"]
)
def test_choices_are_shown_and_right_answers_are_right(shape, reply, folder):
    text = json.dumps({"question": "q0", **ROWS[shape]}) + "\n"
    correct, said = right(folder, (), (reply,), "q.jsonl", text)
    assert correct == [True]
    assert "compared as choices, by letter or text (from 1 target)" in said.err
    suite = load_suite("q.jsonl", narrowing=ECHO)
    assert "choices | lettered" in suite.tiers[0].prompt
    shown = pennyweight("run", "q.jsonl", "-m", "python:echo:say", "--dry-run").out
    assert "A. Rome\nB. Paris" in shown
    assert right(folder, (), ("ANSWER: A. Rome",), "q.jsonl", text)[0] == [False]


def test_columns_of_choices_in_a_table(folder):
    text = "question,A,B,C,D,answer\nq0,Rome,Paris,Oslo,Bonn,B\nq1,Rome,Paris,Oslo,,C\n"
    replies = ("ANSWER: B", "ANSWER: Oslo")
    assert right(folder, (), replies, text=text)[0] == [True, True]


def test_what_fits_none_of_the_choices_is_told_before_the_first_call(folder):
    rows = [{"question": f"q{i}", "choices": ["a", "b", "c", "d"], "answer": i} for i in range(5)]
    (folder / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
    said = refused("run", "q.jsonl", "-m", "python:echo:say")
    assert "q.jsonl, line 5: the target '4' of task '5' is none of its 4 choices." in said
    (folder / "q.csv").write_text("question,choices,answer\nq0,['a' 'b'],1\n")
    said = refused("run", "q.csv", "-m", "python:echo:say")
    assert "q.csv, line 2: the choices of task '1' (['a' 'b']) cannot be read" in said


@pytest.mark.parametrize(
    ("target", "says"),
    [
        (["red", "blue"], "is a list. --match any_of"),
        ({"text": ["a"], "start": [1]}, "is a mapping. --map target=COLUMN"),
        ("First 2 + 2.\n#### 4", "is a worked solution."),
        ("one\ntwo", "has several lines, but an answer is one line."),
    ],
)
def test_targets_that_no_line_can_equal_are_a_mistake(target, says, folder):
    (folder / "q.jsonl").write_text(json.dumps({"question": "q0", "answer": target}) + "\n")
    said = refused("run", "q.jsonl", "-m", "python:echo:say")
    assert "q.jsonl, line 1: the target of task '1' " + says in said


def test_a_worked_solution_is_cut_as_the_mistake_says(folder):
    (folder / "q.jsonl").write_text(json.dumps({"question": "q0", "answer": "2+2\n#### 4"}) + "\n")
    cut = "tasks.make.target={{ answer.split('####')[-1] | trim }}"
    said = pennyweight("run", "q.jsonl", "-m", "python:echo:say", "--dry-run", "--set", cut)
    assert "compared as numbers (from 1 target)" in said.err


def test_a_list_of_one_value_is_that_value(folder):
    rows = "".join(
        json.dumps({"question": f"q{i}", "answer": [t]}) + "\n" for i, t in enumerate("4ab")
    )
    assert right(folder, (), ("ANSWER: 4", "ANSWER: a", "ANSWER: c"), "q.jsonl", rows)[0] == [
        True, True, False,
    ]  # fmt: skip


def test_empty_targets_are_not_scored(folder):
    correct, said = right(folder, ("4", "  ", ""), ("ANSWER: 4", "ANSWER:", "ANSWER: 1"))
    assert correct == [True, None, None]
    assert "2 of 3 tasks have no target: not scored." in said.err


def test_a_context_is_shown(folder):
    (folder / "q.csv").write_text("question,passage,answer\nWho?,Ann came.,Ann\n")
    suite = load_suite("q.csv", narrowing=ECHO)
    assert suite.tiers[0].prompt.startswith("{{ context }}\n\n{{ input }}\n\nFinish with one line")


@pytest.mark.parametrize(
    ("options", "answer", "match", "asks"),
    [
        (("--answer", "last_line"), "last_line", "numeric", False),
        (("--match", "contains"), "marker", "contains", True),
        (("--answer", "marker=X:"), "marker", "numeric", True),
        (("--answer", "last_number", "--match", "numeric=0.1"), "last_number", "numeric", False),
    ],
)
def test_rules_can_be_chosen(options, answer, match, asks, folder):
    line = note(folder, "4", "5", options=options)
    assert "Change with" in line
    flags = {n.removeprefix("--"): v for n, v in zip(options[::2], options[1::2], strict=True)}
    suite = plan("q.csv", models=["python:echo:say"], **flags)
    assert (suite.answer.kind, suite.match.kind) == (answer, match)
    assert ("Finish with one line that begins with" in suite.tiers[0].prompt) is asks
    again = pennyweight("run", "q.csv", "-m", "python:echo:say", *options)
    assert again.code == 0, again.err
    again = pennyweight("run", "--resume", "-m", "python:echo:say", *options)
    assert (again.code, "Nothing was left to do" in again.err) == (0, True)


def test_rules_of_a_suite_can_be_chosen_for_one_run(folder):
    (folder / "s.yaml").write_text(
        "suite: s\ntasks: [{input: a, target: '4'}]\nsubjects: ['python:echo:say']\n"
    )
    said = pennyweight("run", "s.yaml", "--answer", "last_number", "--format", "json")
    assert said.json["groups"][0]["metrics"]["accuracy"] == 1.0
    assert (
        "changed: answer=last_number"
        in pennyweight("run", "s.yaml", "--answer", "last_number", "--dry-run").out
    )


def test_a_column_can_be_named(folder):
    (folder / "q.csv").write_text("frage,hint,loesung\nq0,a,4\n")
    columns = ("--map", "input=frage", "--map", "target=loesung")
    said = pennyweight("run", "q.csv", "-m", "python:echo:say", "--dry-run", *columns)
    assert "compared as numbers (from 1 target)" in said.err
    assert "q0\n\nFinish with" in said.out


def test_a_file_of_tasks_is_scored_and_resumed(folder):
    (folder / "q.csv").write_text("question,answer\nq0,4\nq1,5\n")
    (folder / "replies.json").write_text(json.dumps({"q0": "ANSWER: 4", "q1": "ANSWER: 4"}))
    result = run("q.csv", models=["python:echo:tell"])
    assert result.made == 2
    again = resume("q.csv", models=["python:echo:tell"])
    assert again.id == result.id
    assert "50.0 %" in pennyweight("score", "latest").out


def test_what_is_missing_is_told(folder):
    (folder / "q.csv").write_text("question\na\n")
    assert "pennyweight run q.csv -m PROVIDER/NAME" in refused("run", "q.csv")
    assert "name it: -m PROVIDER/NAME" in refused("run", "What is this?")
    assert "sute.yaml: no such file" in refused("run", "sute.yaml", "-m", "python:echo:say")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gsm8k", "gsm8k: no such file or folder."),
        ("mmlu", "pennyweight init"),
        ("hf:owner/name", "Write 'tasks: hf:owner/name' in a suite"),
        ("hf:owner/name test", "is a data set"),
        ("https://example.com/a b", "is an address"),
        ("questions.cvs", "Did you mean questions.csv?"),
        ("quetsions.csv", "Did you mean questions.csv?"),
        ("./my questions", "no such file or folder"),
        ("my questions.csv", "no such file or folder"),
        ("data/questions", "no such file or folder"),
        ("Warum?", "--ask 'Warum?'"),
        ("inner", "inner is a folder. Name its suite: inner/suite.yaml"),
    ],
)
def test_what_looks_like_a_name_a_path_or_an_address_is_never_sent(name, says, folder):
    (folder / "questions.csv").write_text("question\na\n")
    (folder / "inner").mkdir()
    (folder / "inner" / "suite.yaml").touch()
    assert says in refused("run", name, "-m", "python:echo:say")
    assert says in refused("run", name, "-m", "python:echo:say", "--dry-run")
    with pytest.raises(PennyweightError):
        run(name, models=["python:echo:say"])
    assert pennyweight("runs", "--format", "json").json["runs"] == []


def test_any_question_can_be_asked():
    assert pennyweight("run", "--ask", "gsm8k", "-m", "python:echo:say").out == "You said gsm8k 4\n"
    (reply,) = run(ask="Warum?", models=["python:echo:say"]).stored.settings["subjects"]
    assert reply == "python:echo:say"
    assert "--ask takes the place of a SUITE" in refused("run", "q.csv", "--ask", "a")
    assert "--ask needs a question and a model" in refused("run", "--ask", "a")
