"""Scorers are found beside the suite, by name, or in installed packages."""

import json
from importlib import metadata

import pytest

from pennyweight.errors import UsageError
from pennyweight.scorers.loader import find_scorers
from web.serving import command

FILE = "from pennyweight import scorer\n\n\n@scorer\ndef words(response):\n    return %s\n"


def test_all_scorers_of_a_file_are_meant(tmp_path):
    tmp_path.joinpath("mine.py").write_text(FILE % "len(response.split())")
    (found,) = find_scorers(["mine.py"], tmp_path)
    assert found.score({"response": "a b"}) == {"words": 2.0}


def test_a_file_that_changed_is_loaded_again(tmp_path):
    tmp_path.joinpath("mine.py").write_text(FILE % "1")
    (old,) = find_scorers(["mine.py"], tmp_path)
    tmp_path.joinpath("mine.py").write_text(FILE % "1 + 1")
    (new,) = find_scorers(["mine.py"], tmp_path)
    assert (old("x"), new("x")) == (1, 2)


@pytest.mark.parametrize(
    ("text", "named", "problem"),
    [
        ("", "mine.py", "has no scorer: write @scorer"),
        ("import nothing_like_it", "mine.py", "cannot be imported"),
        (FILE % 1, "other.py", "there is no such file"),
        (FILE % 1, "wrods", "Scorer 'wrods' is not known"),
    ],
)
def test_what_cannot_be_found_is_told(tmp_path, text, named, problem):
    tmp_path.joinpath("mine.py").write_text(text)
    with pytest.raises(UsageError, match=problem):
        find_scorers([named], tmp_path)


def test_two_scorers_of_one_name_are_refused(tmp_path):
    for name in ("one.py", "two.py"):
        tmp_path.joinpath(name).write_text(FILE % 1)
    with pytest.raises(UsageError, match="two scorers are called 'words'"):
        find_scorers(["one.py", "two.py"], tmp_path)


def test_functions_are_scorers_in_python():
    def length(response):
        return len(response)

    (found,) = find_scorers([length])
    assert found.score({"response": "abc"}) == {"length": 3.0}


def test_installed_packages_offer_scorers(tmp_path, monkeypatch):
    tmp_path.joinpath("their_scorers.py").write_text(FILE % "7")
    folder = tmp_path / "their_scorers-1.0.dist-info"
    folder.mkdir()
    folder.joinpath("METADATA").write_text("Name: their-scorers\nVersion: 1.0\n")
    folder.joinpath("entry_points.txt").write_text(
        "[pennyweight.scorers]\nseven = their_scorers:words\ntheirs = their_scorers\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "seven" in metadata.entry_points(group="pennyweight.scorers").names
    for name in ("seven", "words"):
        (found,) = find_scorers([name])
        assert found.score({"response": "x"}) == {"words": 7.0}


RULES = '''
import polars as pl

from pennyweight import CheckResult, check, measure, metric, scorer


@scorer(better="lower")
def words(response):
    return len(response.split())


@measure(unit="characters")
def reply_chars(response: pl.Expr) -> pl.Expr:
    """How many characters the reply has."""
    return response.str.len_chars()


@metric(formula="max reply_chars", unit="characters", range=(0, None), better="lower")
def longest_reply(reply_chars: pl.Expr, *, most: int = 100) -> pl.Expr:
    """The longest reply."""
    return reply_chars.max().clip(upper_bound=most)


@check()
def shouts(attempt) -> CheckResult:
    """Whether the reply is in capitals.

    >>> shouts("HELLO").holds
    True
    """
    return CheckResult(attempt.text.isupper(), "by its case")
'''
SUITE = """
suite: own
scorers: [rules.py]
tasks:
  - {id: a, input: "Hello there", expected_behaviors: [shouts]}
  - {id: b, input: "HELLO", expected_behaviors: [shouts], must_not: [not_shouts]}
subjects: ["python:builtins:str"]
"""
POLICY = """
gates:
  - {metric: longest_reply, threshold: "<= 11"}
  - {metric: reply_chars, threshold: "<= 100"}
"""


def test_what_a_file_beside_a_suite_declares_is_in_every_command(tmp_path):
    for name, text in (("rules.py", RULES), ("suite.yaml", SUITE), ("policy.yaml", POLICY)):
        tmp_path.joinpath(name).write_text(text)
    gate = ("gate", "latest", "--policy", "policy.yaml")
    own = ("--scorers", "rules.py")

    def metrics(*arguments):
        done = command(*arguments, "--format", "json", folder=tmp_path)
        return json.loads(done.stdout)["groups"][0]["metrics"]

    ran = metrics("run", "suite.yaml")
    values = ("longest_reply", "reply_chars", "words", "pass_rate")
    assert [ran[name] for name in values] == [11.0, 8.0, 1.5, 0.5]
    assert metrics("score", "latest", *own, "--set", "most=7")["longest_reply"] == 7.0
    refused = command(*gate, folder=tmp_path, check=False)
    assert "--scorers FILE.py adds your own" in refused.stderr
    assert "longest_reply" in command(*gate, *own, folder=tmp_path).stdout
    command("report", "latest", *own, "-o", "report.md", folder=tmp_path)
    assert "longest" in tmp_path.joinpath("report.md").read_text()
    command("export", "latest", "-o", "old.jsonl", folder=tmp_path)
    compared = ("compare", "old.jsonl", "latest", *own, "--metric", "longest_reply,words")
    sides = json.loads(command(*compared, "--format", "json", folder=tmp_path).stdout)["sides"]
    assert [side["metrics"]["longest_reply"] for side in sides] == [11.0, 11.0]
    both = command(*gate, *own, "--baseline", "old.jsonl", folder=tmp_path)
    assert both.returncode == 0

    tmp_path.joinpath("rules.py").unlink()  # what the run stored needs no code
    stored = metrics("score", "latest")
    assert "longest_reply" not in stored
    assert [stored[name] for name in values[1:]] == [8.0, 1.5, 0.5]
    shown = command("show", "latest", "a", folder=tmp_path).stdout
    assert "✗ expected: shouts" in shown
    assert "by its case" in shown
    loaded = command("report", "latest", *own, folder=tmp_path, check=False)
    assert (loaded.returncode, "no such file" in loaded.stderr) == (2, True)
