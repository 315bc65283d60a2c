"""Suites as tests, in a pytest of their own."""

import json
import sys

import pytest

from pennyweight.store.store import Store

pytest_plugins = ["pytester"]

MODEL = """\
def answer(prompt):
    if "break" in prompt:
        raise RuntimeError("no route")
    return "FINAL_ANSWER: 5" if "wrong" in prompt else "FINAL_ANSWER: 4"
"""
SUITE = """\
suite: sums
tasks:
  - {id: plain, input: "2 + 2?", target: "4"}
  - {id: again, input: "again: 2 + 2?", target: "4"}
  - {id: hard, input: "wrong", target: "4", category: hard}
subjects: ["python:answers:answer"]
"""
TEST = """\
import pytest

@pytest.mark.pennyweight(suite="suite.yaml")
def test_sums(pennyweight):
    pennyweight.check()
"""


@pytest.fixture
def folder(pytester, monkeypatch):
    monkeypatch.delenv("PENNYWEIGHT_STORE", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    pytester.makefile(".yaml", suite=SUITE)
    pytester.makepyfile(answers=MODEL, test_it=TEST)
    return pytester


def made(folder):
    store = Store(str(folder.path / ".pennyweight" / "pennyweight.db"))
    found = [sum(store.statuses(run.id).values()) for run in store.runs()]
    store.close()
    return found


def test_one_test_for_each_scenario(folder):
    done = folder.runpytest_subprocess("-v")
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.fnmatch_lines(
        [
            "*test_sums?plain? PASSED*",
            "*test_sums?hard? FAILED*",
            "*hard: attempt 1: the answer is '5', not '4'*",
        ]
    )
    assert made(folder) == [3]


def test_only_what_is_selected_is_run(folder):
    folder.runpytest_subprocess("-k", "plain or again").assert_outcomes(passed=2, deselected=1)
    assert made(folder) == [2]
    folder.runpytest_subprocess("test_it.py::test_sums[plain]").assert_outcomes(passed=1)
    assert made(folder) == [1, 2]


def test_x_stops_at_the_first_failure(folder):
    folder.makefile(".yaml", suite=SUITE.replace("2 + 2?", "wrong", 1))
    folder.runpytest_subprocess("-x").assert_outcomes(failed=1)


def test_workers_share_one_run(folder):
    folder.runpytest_subprocess("-n2", "--dist=load").assert_outcomes(passed=2, failed=1)
    assert made(folder) == [3]


def test_a_test_that_does_not_ask_is_checked_all_the_same(folder):
    folder.makepyfile(
        test_it=TEST.replace("(pennyweight)", "()").replace("pennyweight.check()", "pass")
    )
    folder.runpytest_subprocess().assert_outcomes(passed=2, failed=1)


def test_test_cases_in_a_marked_module_leave_the_scenarios_alone(folder):
    folder.makepyfile(
        test_it="import unittest\nimport pytest\n"
        "pytestmark = pytest.mark.pennyweight(suite='suite.yaml')\n"
        "class TestOld(unittest.TestCase):\n    def test_old(self):\n        pass\n"
        "def test_sums(pennyweight):\n    pennyweight.check()\n"
    )
    assert folder.runpytest_subprocess().parseoutcomes()["passed"] == 2


def test_the_outcome_can_be_looked_at(folder):
    body = (
        "assert pennyweight or pennyweight.records[0]['answer'] == '5'; "
        "assert len(pennyweight.records) == 1"
    )
    folder.makepyfile(test_it=TEST.replace("pennyweight.check()", body))
    folder.runpytest_subprocess().assert_outcomes(passed=3)


def test_an_attempt_that_could_not_be_made_is_an_error_and_no_failure(folder):
    folder.makefile(".yaml", suite=SUITE.replace("again: 2 + 2?", "break"))
    done = folder.runpytest_subprocess()
    done.assert_outcomes(passed=1, failed=1, errors=1)
    done.stdout.fnmatch_lines(["inconclusive: attempt 1: could not be made:*no route*"])
    assert "pytest_plugin.py" not in done.stdout.str(), "one line, and none of our source"


def test_gates_are_tests_too(folder):
    policy = {
        "thresholds": {
            "blocking": {"accuracy": 60, "pass_rate": 90},
            "warning": {"usr": "1%"},
        },
        "gates": [{"metric": "accuracy", "threshold": 66, "on": "confident", "name": "sure"}],
    }
    (folder.path / "policy.json").write_text(json.dumps(policy))
    marked = TEST.replace('"suite.yaml"', '"suite.yaml", policy="policy.json"')
    folder.makepyfile(test_it=marked)
    done = folder.runpytest_subprocess("-v")
    done.assert_outcomes(passed=2, failed=2, errors=1, warnings=1)
    done.stdout.fnmatch_lines_random(
        [
            "*test_sums?gate:accuracy? PASSED*",
            "*test_sums?gate:pass_rate? FAILED*",
            "*test_sums?gate:usr? PASSED*",
            "*test_sums?gate:sure? ERROR*",
            "*test_sums?gate:verdict? FAILED*",
            "*pass_rate: 66.7 % misses ≥ 90.0 % by 23.3 points, on the value alone*",
            "*PytestWarning: usr:*",
        ]
    )
    assert made(folder) == [3]


def test_with_a_policy_the_policy_is_the_test(folder):
    """One of three tasks fails, and at least 60 % have to pass."""
    folder.makefile(".yaml", policy="thresholds: {blocking: {pass_rate: 60}}\n")
    folder.makepyfile(test_it=TEST.replace('"suite.yaml"', '"suite.yaml", policy="policy.yaml"'))
    done = folder.runpytest_subprocess("-v")
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines_random(
        ["*test_sums?gate:pass_rate? PASSED*", "*test_sums?gate:verdict? PASSED*"]
    )
    each = folder.runpytest_subprocess("-v", "--pennyweight-each-task")
    each.assert_outcomes(passed=4, failed=1)
    each.stdout.fnmatch_lines(["*test_sums?hard? FAILED*"])
    assert made(folder) == [3, 3]


def test_mistakes_are_errors_of_the_collection(folder):
    folder.makefile(".yaml", suite=SUITE.replace("tasks:", "task:"))
    done = folder.runpytest_subprocess()
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*suite.yaml, line 2: Key 'task' is not known. Did you mean*"])
    folder.makepyfile(test_it=TEST.replace("suite=", "sweet="))
    folder.runpytest_subprocess().assert_outcomes(errors=1)
    folder.makepyfile(test_it=TEST.replace("suite.yaml", "gone.yaml"))
    done = folder.runpytest_subprocess()
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["test_sums: *gone.yaml: no such file*"])
    assert "Traceback" not in (said := done.stdout.str() + done.stderr.str())
    assert "Warning" not in said
    folder.makepyfile(test_it="def test_it(pennyweight): pass")
    folder.runpytest_subprocess().stdout.fnmatch_lines(["*'pennyweight' requires the mark*"])


def test_suites_of_two_folders_have_their_own_code(folder):
    for name in ("a", "b"):
        folder.mkdir(name).joinpath("suite.yaml").write_text(
            "suite: s\nsubjects: ['python:own:answer']\n"
            f"tasks: [{{id: x-{name}, input: q, checks: [{{python: 'own:ok'}}, "
            f"{{equals: {name}}}]}}]\n"
        )
        folder.path.joinpath(name, "own.py").write_text(
            f"def answer(t): return {name!r}\ndef ok(record): return {name == 'a'}\n"
        )
    both = TEST.replace("suite.yaml", "a/suite.yaml") + TEST.partition("\n\n")[2].replace(
        "suite.yaml", "b/suite.yaml"
    ).replace("test_sums", "test_b")
    folder.makepyfile(test_it=both)
    done = folder.runpytest_subprocess()
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*x-b: attempt 1:*"])


def test_a_run_of_pytest_that_does_not_use_it_loads_nothing_heavy(folder):
    folder.makepyfile(
        test_it="import sys\ndef test_it():\n"
        "    assert not {'polars', 'numpy', 'sqlalchemy', 'yaml', 'click'} & set(sys.modules)"
    )
    done = folder.runpytest_subprocess("-p", "no:hypothesispytest", "-p", "no:anyio")
    done.assert_outcomes(passed=1)
    assert sys.modules["pennyweight.pytest_plugin"]


def test_what_the_budget_left_undone_has_not_passed(folder):
    short = SUITE.replace(
        '["python:answers:answer"]', '[{model: "python:answers:answer", max_tokens: 5}]'
    )
    limits = "limits: {concurrency: 1, tokens: 60}\nruns: 2\n"
    folder.makefile(".yaml", suite=short + limits, policy="thresholds: {accuracy: 50}\n")
    marked = TEST.replace('"suite.yaml"', '"suite.yaml", policy="policy.yaml"')
    folder.makepyfile(test_it=marked)
    done = folder.runpytest_subprocess("-v", "--pennyweight-each-task")
    assert made(folder) == [1]
    done.assert_outcomes(passed=1, errors=4)
    done.stdout.fnmatch_lines_random(
        [
            "*test_sums?gate:accuracy? PASSED*",
            "*test_sums?gate:verdict? ERROR*",
            "*1 of 2 attempts were made: Token limit reached: 0 of *",
            "*attempts: 5 of 6 attempts have not been made yet.*",
        ]
    )
