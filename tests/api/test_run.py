"""Runs from Python: one function carries them out, and returns what they came to."""

import _thread
import asyncio
import gc
import json
import signal
import threading
from pathlib import Path

import pytest

import pennyweight
from pennyweight.api.run import Until, Watcher, plan, resume, run
from pennyweight.api.runs import delete_run, find_run, list_runs, scores_of_run
from pennyweight.engine.ending import EndKind, Limit, LimitReached
from pennyweight.errors import InputError, UsageError

MODEL = """\
def answer(text):
    if "fail" in text:
        raise RuntimeError("no")
    return "FINAL_ANSWER: 4"

def judge(request):
    return '{"items": {"good": {"evidence": "e", "score": "1"}}, "confidence": "1"}'
"""
SUITE = """\
suite: s
prompt: "{{ input }} End with FINAL_ANSWER:"
subjects: ["python:told_model:answer"]
tasks: [{id: a, input: x, target: "4"}, {id: b, input: y, target: "5"}]
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENNYWEIGHT_STORE", str(tmp_path / "store.db"))
    (tmp_path / "told_model.py").write_text(MODEL)
    path = tmp_path / "s.yaml"
    path.write_text(SUITE)
    return path


class Events(Watcher):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.phases: list[str] = []
        self.started: list[tuple[str, int]] = []

    def note(self, text):  # type: ignore[no-untyped-def]
        self.notes.append(text)

    def start(self, run, attempts):  # type: ignore[no-untyped-def]
        self.started.append((run.id, attempts))

    def begin(self, phase):  # type: ignore[no-untyped-def]
        self.phases.append(phase.kind)


def test_a_run_returns_what_it_came_to(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = Events()
    result = run(suite, watch=events)
    assert (result.attempts, result.made, result.missing, result.exit_code) == (2, 2, 0, 0)
    assert result.ended.kind is EndKind.DONE
    assert events.started == [(result.id, 2)]
    assert events.phases == ["attempts"]
    assert find_run().status == "done"
    scores, _ = scores_of_run(result.stored)
    assert scores is not None
    assert scores.groups[0].estimates["accuracy"].value == 0.5
    assert capsys.readouterr() == ("", "")
    delete_run(result.id)
    assert not list_runs()


def test_the_public_name_is_the_function(suite: Path) -> None:
    assert pennyweight.run is run
    assert pennyweight.run(suite, tasks={"b"}).attempts == 1


def test_it_works_where_a_loop_runs_already(suite: Path) -> None:
    async def main() -> int:
        return run(suite).made

    assert asyncio.run(main()) == 2


def test_judges_work_where_a_loop_runs_already(suite: Path) -> None:
    made = run(suite).id

    async def main() -> int:
        return pennyweight.judge(made, models=["python:told_model:judge"], rubric="r.yaml").valid

    Path("r.yaml").write_text("categories: {c: {items: [{id: good, text: Good., points: 1}]}}")
    assert asyncio.run(main()) == 2


def test_an_interrupt_where_a_loop_runs_already_ends_the_run_in_good_order(suite: Path) -> None:
    Path("told_model.py").write_text(
        "import time\ndef answer(text):\n    time.sleep(0.2)\n    return 'FINAL_ANSWER: 4'\n"
    )
    tasks = ", ".join(f"{{id: t{n}, input: x, target: '4'}}" for n in range(40))
    suite.write_text(
        SUITE.partition("tasks:")[0] + f"limits: {{concurrency: 2}}\ntasks: [{tasks}]\n"
    )

    class Interrupting(Watcher):
        def progress(self, tally, budget, rows):  # type: ignore[no-untyped-def]
            if rows and tally.done <= 2:
                _thread.interrupt_main()

    async def main() -> pennyweight.Run:
        return run(suite, watch=Interrupting())

    handler = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as that of a notebook
    try:
        loop = asyncio.new_event_loop()
        result = loop.run_until_complete(main())
        loop.close()
    finally:
        signal.signal(signal.SIGINT, handler)
    assert (result.ended.kind, result.exit_code) == (EndKind.INTERRUPTED, 130)
    assert 0 < result.made < 40
    assert find_run().status == "stopped"
    assert threading.active_count() < 20


def test_a_run_leaves_the_signals_to_those_who_handled_them(suite: Path) -> None:
    def mine(*_: object) -> None:
        """Handle a signal."""

    before = signal.signal(signal.SIGTERM, mine)
    try:
        run(suite)
        assert signal.getsignal(signal.SIGTERM) is mine
        pennyweight.judge("latest", models=["python:told_model:judge"])
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_recording_is_named_by_its_path_as_text(suite: Path) -> None:
    run(suite, record="tape.jsonl")
    pennyweight.judge("latest", models=["python:told_model:judge"], record="judge.jsonl")
    assert json.loads(Path("tape.jsonl").read_text().splitlines()[0])["model"]
    assert Path("judge.jsonl").is_file()


def test_failures_are_values_and_are_retried(suite: Path) -> None:
    suite.write_text(SUITE.replace("input: y", "input: fail"))
    result = run(suite)
    assert (result.made, result.missing, dict(result.errors)) == (1, 1, {"function": 1})
    assert (result.ended.kind, result.exit_code) == (EndKind.INCOMPLETE, 4)
    assert [(one.kind, one.task) for one in result.error_examples] == [("function", "b")]
    suite.write_text(SUITE)
    again = resume(suite)
    assert (again.id, again.attempts, again.made) == (result.id, 1, 1)


def test_a_limit_is_a_value(suite: Path) -> None:
    suite.write_text(SUITE + "limits: {seconds: 0.000001}\n")
    result = run(suite)
    assert isinstance(result.ended.reason, LimitReached)
    assert result.ended.reason.limit is Limit.SECONDS
    assert (result.ended.is_limit, result.exit_code) == (True, 4)


def test_an_unknown_task_is_refused_before_the_first_call(suite: Path) -> None:
    with pytest.raises(UsageError, match="'c' is not known"):
        run(suite, tasks=["a", "c"])
    assert not list_runs()


def test_no_task_at_all_is_refused(suite: Path) -> None:
    with pytest.raises(UsageError, match="nothing to run"):
        run(suite, tasks=[])
    assert not list_runs()


def test_a_narrowed_run_stays_narrowed_when_it_is_resumed(suite: Path) -> None:
    result = run(suite, tasks=["a"])
    assert (result.attempts, result.missing) == (1, 0)
    again = resume(result.id)
    assert (again.attempts, again.stored.attempts) == (0, 1)
    assert again.stored.settings["narrowing"] == {"tasks": ["a"], "of_tasks": 2, "of_runs": 1}


def test_resuming_with_other_options_is_refused_except_for_limits(suite: Path) -> None:
    first = run(suite, limit=1)
    with pytest.raises(UsageError, match=r"was started with --limit 1, .* --limit 2 makes a new"):
        resume(first.id, limit=2)
    assert resume(first.id, limit=1).missing == 0
    again = resume(first.id, concurrency=3).stored
    assert (again.attempts, again.settings["limits"]["concurrency"]) == (1, 3)
    assert resume(first.id).stored.settings["limits"]["concurrency"] == 3


def test_models_and_settings_of_one_run(suite: Path) -> None:
    suite.write_text(SUITE.replace("subjects:", "#"))
    with pytest.raises(InputError, match="needs 'subjects'"):
        run(suite)
    settings = {"settings.max_tokens": 9}
    chosen = run(suite, models=["python:told_model:answer"], runs=2, temperature=0, set=settings)
    assert (chosen.made, chosen.stored.settings["runs"]) == (4, 2)
    assert chosen.stored.text == suite.read_text(), "the file as it is; the options are beside it"
    assert plan(suite, models=["local/smollm2-135m"], temperature=0.5).settings == {
        "temperature": 0.5
    }


def test_a_policy_is_decided_early_on_the_whole_suite_only(suite: Path) -> None:
    policy = suite.with_name("p.yaml")
    policy.write_text("gates: [{metric: accuracy, threshold: '>= 0.5', on: confident}]")
    with pytest.raises(UsageError, match="excludes --limit"):
        run(suite, limit=1, until=Until(policy))
    assert not list_runs()


def test_a_plan_calls_nothing(suite: Path) -> None:
    assert [task.id for task in plan(suite).tasks] == ["a", "b"]
    assert not list_runs()


def test_judges_are_a_phase(suite: Path) -> None:
    rubric = "{categories: {c: {items: [{id: good, text: Good., points: 1}]}}}"
    suite.write_text(SUITE + f"judge: {{model: 'python:told_model:judge', rubric: {rubric}}}\n")
    events = Events()
    result = run(suite, watch=events)
    assert events.phases == ["attempts", "scores"]
    assert [one.valid for one in result.judgings] == [2]
    assert pennyweight.judge(result.id).valid == 0, "valid judgments are reused"


def test_a_watcher_that_breaks_ends_neither_attempts_nor_judging(suite: Path) -> None:
    class Broken(Watcher):
        def progress(self, tally, budget, rows):  # type: ignore[no-untyped-def]
            raise OSError("the screen is gone")

    rubric = "{categories: {c: {items: [{id: good, text: Good., points: 1}]}}}"
    suite.write_text(SUITE + f"judge: {{model: 'python:told_model:judge', rubric: {rubric}}}\n")
    result = run(suite, watch=Broken())
    assert (result.made, [one.valid for one in result.judgings]) == (2, [2])


def test_a_decided_run_ends(suite: Path) -> None:
    tasks = ", ".join(f"{{id: t{n}, input: x, target: '4'}}" for n in range(60))
    suite.write_text(SUITE.partition("tasks:")[0] + f"tasks: [{tasks}]\n")
    Path("p.yaml").write_text(
        "policy: p\ngates: [{metric: accuracy, threshold: '>= 0.5', on: confident}]\n"
    )
    result = run(suite, until=Until("p.yaml"))
    assert result.verdict is not None
    assert (result.verdict.verdict, result.exit_code) == ("pass", 0)
    assert result.ended.kind is EndKind.DECIDED
    assert result.made < result.attempts == 60
    assert find_run().status == "done"


def test_progress_is_shown_or_handed_to_a_function(
    suite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[tuple[int, int]] = []
    run(suite, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (2, 2)
    run(suite, progress=False)
    assert capsys.readouterr().err == ""
    suite.write_text(f"{SUITE}settings: {{temperature: 0}}\n")
    run(suite, progress=True)
    assert "Note: " in capsys.readouterr().err


def test_a_run_is_awaited_while_the_loop_goes_on(suite: Path) -> None:
    async def main() -> tuple[int, int, int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        made = await pennyweight.run_async(suite)
        judged = await pennyweight.judge_async(made.id, models=["python:told_model:judge"])
        ticking.cancel()
        return made.made, ticks, judged.valid

    made, ticks, _ = asyncio.run(main())
    assert made == 2
    assert ticks > 10


def test_a_cancelled_run_ends_in_good_order(suite: Path) -> None:
    Path("told_model.py").write_text(
        "import time\ndef answer(text):\n    time.sleep(0.1)\n    return 'FINAL_ANSWER: 4'\n"
    )
    tasks = ", ".join(f"{{id: t{n}, input: x, target: '4'}}" for n in range(60))
    suite.write_text(
        SUITE.partition("tasks:")[0] + f"limits: {{concurrency: 2}}\ntasks: [{tasks}]\n"
    )
    begun = threading.Event()

    async def main() -> None:
        running = asyncio.create_task(pennyweight.run_async(suite, progress=lambda *_: begun.set()))
        await asyncio.to_thread(begun.wait, 20)
        running.cancel()
        await running

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    found = pennyweight.load()
    assert found.status == "stopped"
    assert 0 < found.made < 60


def test_garbage_is_collected_as_before_once_a_run_has_ended(suite: Path) -> None:
    seen: list[tuple[int, int, int]] = []
    before = gc.get_threshold()
    run(suite, progress=lambda *_: seen.append(gc.get_threshold()))
    assert seen[-1][0] >= 100_000
    assert gc.get_threshold() == before
