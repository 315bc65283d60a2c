"""`pennyweight show`: the tasks of a run, and why an attempt did not pass."""

import json
import re
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from cli.command import pennyweight, refused
from engine.judges import judge, judged_suite
from engine.judges import pennyweight as judging
from pennyweight.api.show import TaskFilter, attempts_at_tasks, show_run
from pennyweight.render import attempts
from pennyweight.store.store import Store
from store.samples import RUN, record, run

SUITE = """
suite: s
tasks: [{id: t1, input: "2 + 2?", target: "4"}, {id: t2, input: "3 + 3?"}]
subjects: ["python:shown_model:answer"]
system: Be short.
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("PENNYWEIGHT_STORE", raising=False)
    Path("shown_model.py").write_text("def answer(request):\n    return 'FINAL_ANSWER: 5'\n")
    Path("s.yaml").write_text(SUITE)
    assert pennyweight("run", "s.yaml").code == 0


@pytest.mark.usefixtures("made")
def test_a_task_without_checks_is_shown_in_full() -> None:
    shown = pennyweight("show", "latest", "t1").out
    assert shown.startswith("t1 (python:shown_model:answer, T0, attempt 1): wrong\n")
    assert "Asked:\nsystem: Be short.\nuser: 2 + 2?\n" in shown
    assert "Replied:\nFINAL_ANSWER: 5\n" in shown
    assert "Answer: 5\nTarget: 4\n" in shown
    assert "no target" in pennyweight("show", "latest", "t2").out


@pytest.mark.usefixtures("made")
def test_it_comes_as_json_too() -> None:
    (one,) = pennyweight("show", "latest", "t1", "--format", "json").json["attempts"]
    assert (one["answer"], one["correct"], one["error"], one["checks"]) == ("5", False, None, [])


@pytest.mark.usefixtures("made")
def test_a_task_that_is_not_there_is_told() -> None:
    assert "Task 't11' is not known. Did you mean 't1'?" in refused("show", "latest", "t11")


@pytest.mark.usefixtures("made")
def test_settings_are_readable() -> None:
    shown = " ".join(pennyweight("show", "latest").out.split())
    assert "subjects python:shown_model:answer; tiers T0;" in shown
    assert "{" not in shown


RULES = {
    "answer": {"kind": "last_line", "value": ""},
    "match": {"kind": "exact", "absolute": "0", "relative": "0", "separator": "", "each": "exact"},
}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr("pennyweight.store.store.READ_BATCH", 10)
    monkeypatch.setenv("PENNYWEIGHT_STORE", str(tmp_path / "s.db"))
    made = Store(str(tmp_path / "s.db"))
    made.add_run(run(settings={**RULES, "subjects": ["a", "b"], "tiers": ["T0", "T1"]}))
    yield made
    made.close()


def fill(store: Store, tasks: int) -> None:
    """Have b fail at every third task; a reaches nothing in T1 at the first task."""
    down = {"status": "error", "error": "no route to host", "response": None}
    rows = [
        record(f"t{i:02}", **{
            "subject": subject, "tier": tier, "target": "4",
            "response": "4" if subject == "a" or i % 3 else f"{i}\n5",
            **(down if (i, subject, tier) == (0, "a", "T1") else {}),
        })
        for i in range(tasks) for subject in "ab" for tier in ("T0", "T1")
    ]  # fmt: skip
    store.write(rows, [])


def listed(*options: str) -> list[str]:
    """Give the rows of the table of tasks, without the facts about the run."""
    out = pennyweight("show", RUN, *options).out
    return out.partition("\n\n")[2].splitlines()[1:]


def test_tasks_are_listed_with_what_did_not_pass_first_and_why(store: Store) -> None:
    fill(store, 9)
    rows = listed("--all")
    assert len(rows) == 36
    assert rows[0].split() == ["t00", "a", "T1", "—", "could", "not", "be", "made:", "no", "route",
                               "to", "host"]  # fmt: skip
    assert rows[1].split() == ["t00", "b", "T0", "0/1", "answer", "5,", "target", "4"]
    assert all(row.split()[3:] == ["1/1", "—"] for row in rows[7:])
    assert listed("--failed", "--all") == [re.sub(" +$", "", row) for row in rows[:7]]
    short = listed()
    assert (len(short), short[20]) == (
        21,
        "16 more results: --all lists them, --failed what did not pass.",
    )


def test_a_list_without_tasks_says_so(store: Store) -> None:
    assert pennyweight("show", RUN).out.endswith("\n\nNo attempt has a record yet.\n")
    assert "The run has no such records yet." in refused("show", RUN, "t00")
    fill(store, 1)
    only = ("--subject", "a", "--tier", "T0", "--failed")
    assert pennyweight("show", RUN, *only).out.endswith("\n\nNo such attempt failed.\n")
    assert pennyweight("show", RUN, "--tier", "T9").out.endswith("No such attempt was made.\n")
    assert "The run has 1 task;" in refused("show", RUN, "--task", "x*")


def test_failed_tasks_are_not_told_to_be_asked_for_again(store: Store) -> None:
    fill(store, 60)
    assert listed("--failed")[-1] == "21 more results: --all lists them."


def test_no_text_of_a_table_is_lost(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    down = {"status": "error", "error": "the server has no such model", "response": None}
    sides = [("provider/a-model-with-a-long-name", "adversarial"), ("provider/b", "edge_case")]
    rows = [
        record("a-task-with-a-long-name", subject=subject, category=category, target="4", **down)
        for subject, category in sides
    ]
    store.write(rows, [])
    words = " ".join(listed()).split()
    assert [w for w in words if w in {"server", "has", "no", "such", "model"}] == [
        *("server", "has", "no", "such", "model"),
    ] * 2


def test_tasks_are_filtered_by_side_and_by_name(store: Store) -> None:
    fill(store, 12)
    assert {
        row.split()[0] for row in listed("--subject", "a", "--tier", "T0", "--task", "t1*")
    } == {*("t10", "t11")}
    rows = listed("--task", "t01", "--task", "t0[23]", "--subject", "b", "--failed")
    assert [row.split()[:2] for row in rows] == [["t03", "T0"], ["t03", "T1"]]
    assert "Task 'u*' is not known" in refused("show", RUN, "--task", "u*")
    assert "Did you mean 't03'?" in refused("show", RUN, "--task", "to3")
    one = pennyweight("show", RUN, "t03", "--subject", "b", "--tier", "T1").out
    assert one.count("t03 (") == 1
    assert "t03 (b, T1, attempt 1): wrong\n" in one
    assert "no such attempts at t01" in refused("show", RUN, "t01", "--failed")
    assert "Name the task once" in refused("show", RUN, "t01", "--task", "t02")


def test_json_has_every_task_and_why_an_attempt_failed(store: Store) -> None:
    fill(store, 9)
    data = pennyweight("show", RUN, "--format", "json").json
    assert len(data["tasks"]) == 36
    assert data["tasks"][0] == {
        "task_id": "t00", "subject": "a", "tier": "T0", "category": None, "attempts": 1,
        "passed": 1, "failed": 0, "errors": 0, "undecided": 0,
    }  # fmt: skip
    (one,) = pennyweight("show", RUN, "t03", "--tier", "T0", "--failed", "--format", "json").json[
        "attempts"
    ]
    assert one["why"] == "answer 5, target 4"
    for format_ in ("csv", "markdown"):
        assert "answer 5, target 4" in pennyweight("show", RUN, "--format", format_).out


def test_no_more_than_a_part_of_the_records_is_in_memory(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, 100)
    alive, most, read = 0, 0, Store.records

    def freed() -> None:
        nonlocal alive
        alive -= 1

    def watched(*given: Any, **named: Any) -> Iterator[pl.DataFrame]:
        nonlocal alive, most
        for frame in read(*given, **named):
            weakref.finalize(frame, freed)
            alive += 1
            most = max(most, alive)
            yield frame

    monkeypatch.setattr(Store, "records", watched)
    assert len(show_run(RUN, store=store).tasks) == 400
    many = TaskFilter(("t*",), failed=True)
    assert sum(frame.height for frame in attempts_at_tasks(RUN, many, store)) == 69
    assert most < 20, "of 40 parts"


WORK = {
    "exit_code": 0, "ended": "exit", "left_out": [],
    "checks": [{"check": "verify", "command": "pytest -q", "before": 1, "after": 2,
                "ended": "exit", "holds": False,
                "output": "".join(f"line {i}\n" for i in range(40)) + "\x1b[31mAssertionError"}],
    "diff": "--- a/x.py\n+++ b/x.py\n@@ -1,1 +1,1 @@\n-old\n+new" + "\n+more" * 200,
    "files": {"added": 0, "changed": 1, "removed": 0},
}  # fmt: skip


def test_the_work_of_an_agent_is_shown_with_the_output_of_its_checks(store: Store) -> None:
    row = record("fix", subject="a", tier="T0", passed=False, work=json.dumps(WORK))
    store.write([row], [])
    assert listed()[0].split() == ["fix", "0/1", "verify", "pytest", "-q:", "exit", "code", "2"]
    out = pennyweight("show", RUN, "fix").out
    assert "✗ verify: pytest -q: exit code 2 (before: 1)\n    … 26 earlier lines\n" in out
    assert "    line 39\n    AssertionError\n" in out
    assert "line 25\n" not in out
    assert "Files: 1 changed.\n--- a/x.py\n+++ b/x.py\n@@ -1,1 +1,1 @@\n-old\n+new\n" in out
    assert "… 85 more lines; --format json has the whole diff." in out
    assert "\x1b" not in out
    data = pennyweight("show", RUN, "fix", "--format", "json").json["attempts"][0]
    assert data["workspace"] == WORK


def test_a_terminal_gets_colours(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    reply = "\x1b[5mDone."
    row = record("fix", subject="a", passed=False, response=reply, work=json.dumps(WORK))
    store.write([row], [])

    class Screen:
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("pennyweight.render.terminal.sys.stdout", Screen())
    monkeypatch.setenv("TERM", "xterm")
    found = attempts.attempts_of(attempts_at_tasks(RUN, TaskFilter(("fix",)), store))
    text = attempts.render(found, "table")
    assert "\x1b[31m-old\x1b[0m\n\x1b[32m+new\x1b[0m\n" in text
    assert "\x1b[5m" not in text


def judged(verb, *words, cwd):
    more = ("suite.yaml",) if verb == "run" else ()
    return judging(cwd, verb, *more, *words)


def test_what_the_judge_decided_stands_first_with_its_evidence(tmp_path):
    path = judged_suite(tmp_path, judge("good", consensus="mean"), tasks=1)
    path.write_text(path.read_text().replace('"question 0"', '"question 0", target: "4"'))
    assert judged("run", cwd=tmp_path).returncode == 0
    shown = judged("show", "latest", "t0", cwd=tmp_path).stdout
    first, _, rest = shown.partition("\n")
    assert "passed, decided by the judge" in first
    assert "wrong" not in first
    assert "no answer was found" not in shown
    assert rest.index("a: 1") < rest.index("Asked:")
    assert "seen" in rest


def test_a_judged_failure_does_not_blame_the_answer(tmp_path):
    path = judged_suite(tmp_path, judge("poor"), tasks=1)
    path.write_text(path.read_text().replace('"question 0"', '"question 0", target: "4"'))
    assert judged("run", cwd=tmp_path).returncode == 0
    assert "no answer" not in judged("show", "latest", "--failed", cwd=tmp_path).stdout
    (attempt,) = json.loads(
        judged("show", "latest", "t0", "--failed", "--format", "json", cwd=tmp_path).stdout
    )["attempts"]
    assert "poor: 0.00 of 1" in attempt["why"]


def test_every_view_of_a_judged_run_says_what_the_judge_decided(tmp_path):
    path = judged_suite(tmp_path, judge("poor"), tasks=2)
    path.write_text(path.read_text().replace('"question 0"', '"question 0", target: "4"'))
    assert judged("run", cwd=tmp_path).returncode == 0
    listed = judged("show", "latest", "--failed", cwd=tmp_path).stdout
    assert "poor: 0.00 of 1" in listed
    assert "no answer" not in listed
    assert judged("report", "latest", "-o", "r.md", cwd=tmp_path).returncode == 0
    assert judged("report", "latest", "-o", "r.html", cwd=tmp_path).returncode == 0
    assert judged("report", "--site", "site", cwd=tmp_path).returncode == 0
    text = (tmp_path / "r.md").read_text()
    assert "**Pass rate: 0.0 %" in text
    assert "**Not passed**" in text
    assert text.index("poor: 0.00 of 1") < text.index("input:")
    assert "final answer" not in text
    for page in (tmp_path / "r.html", *(tmp_path / "site").rglob("*.html")):
        assert "✗ wrong" not in page.read_text(), page
    assert "poor: 0.00 of 1" in (tmp_path / "r.html").read_text()


def test_what_the_judge_of_a_log_decided_stands_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    logged = [
        {"task_id": "a", "target": "4", "answer": "5", "impl_rate": 1.0, "judge_passed": True},
        {"task_id": "b", "target": "4", "answer": "4", "impl_rate": 0.2, "judge_passed": False},
    ]
    Path("log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in logged), "utf-8")
    assert pennyweight("import", "log.jsonl", "--as", "judged").code == 0
    assert (
        "passed, decided by the judge\n\njudge: 1.00 of 1" in pennyweight("show", "judged", "a").out
    )
    failed = pennyweight("show", "judged", "--failed").out
    assert "0/1  judge: 0.20 of 1" in failed
    assert "answer 5" not in failed
