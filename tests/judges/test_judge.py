"""One judge and one attempt: what is set aside, what is held, and what is not read."""

import asyncio
import gc
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import pytest

from models.hostile import in_a_thread, response
from pennyweight.engine import workforce
from pennyweight.engine.budget import Budget
from pennyweight.engine.ending import ClosedBecause
from pennyweight.engine.limiter import ClosedError
from pennyweight.engine.tally import Tally
from pennyweight.engine.workforce import Workforce
from pennyweight.errors import StoreError
from pennyweight.judges.judge import Judge, JudgedAttempt, JudgingContext
from pennyweight.judges.judging import JudgingJob, JudgingSession, case_of
from pennyweight.judges.prompt import JudgedCase, messages, schema
from pennyweight.models import model as models
from pennyweight.models.failure import CallError
from pennyweight.models.model import Reply, Usage
from pennyweight.models.prices import Prices
from pennyweight.models.providers import find
from pennyweight.record import AttemptKey
from pennyweight.store.store import CALL_COLUMNS, JUDGMENT_COLUMNS, RECORD_COLUMNS, Store, StoredRun
from pennyweight.suite.rubric import Category, Item, Rubric
from pennyweight.suite.values import Judging, Limits, Price, Subject

RUBRIC = Rubric("r", (Category("works", 1.0, (Item("works", "It works."),)),), 0.5)
FULL, NONE = (json.dumps({"items": {"works": {"evidence": "e", "score": n}}}) for n in (1, 0))
KNOWN = Usage(100, 50)


class Kept:
    """Keeps what is to be written."""

    def __init__(self):
        self.rows, self.calls = [], []

    def write(self, rows, calls):
        self.rows += [dict(zip(JUDGMENT_COLUMNS, row, strict=True)) for row in rows]
        self.calls += [dict(zip(CALL_COLUMNS, call, strict=True)) for call in calls]


class Model(models.Model):
    """Gives its replies one after the other; a function among them is called first."""

    name = account = "judge"
    limit = None

    def __init__(self, *replies):
        self.replies, self.calls = list(replies), 0

    async def call(self, request):
        self.calls += 1
        reply = self.replies.pop(0)
        if callable(reply):
            reply = reply(request)
        if isinstance(reply, Exception):
            raise reply
        return reply


def ask(model, budget=None, **settings):
    """Let one judge judge; gives its score, what was kept, the budget."""

    async def main():
        kept = Kept()
        limits = Limits(concurrency=1)
        crew = Workforce(
            "run", [model], limits, budget or Budget(limits), Tally(1), kept.write, lambda _: None
        )
        context = JudgingContext(RUBRIC, Prices({"judge": Price(1.0, 2.0)}), crew)
        model.limiter, model.budget = crew.limiters[model.account], crew.budget
        judge = Judge.of(Subject("judge", "python:m:judge", settings=settings), model, context)
        attempt = JudgedAttempt.of(
            AttemptKey("run", "s", "T0", "t", 1), messages(RUBRIC, JudgedCase("t", "r")), {}
        )
        try:
            score = await judge.score(attempt)
        finally:
            await crew.close()
        return score, SimpleNamespace(budget=crew.budget, writer=kept)

    return asyncio.run(main())


def test_a_verdict_that_is_cut_off_is_asked_for_again():
    model = Model(Reply(f"It says {FULL}", usage=KNOWN, truncated=True), Reply(NONE, usage=KNOWN))
    score, desk = ask(model)
    assert (score, model.calls) == (0.0, 2)
    assert desk.writer.rows[0]["tries"] == 2


def test_the_schema_is_part_of_what_is_set_aside():
    held = []

    def look(request):
        held.append(model.budget.held_tokens)
        sent = sum(len(m.content) for m in request.messages)
        held.append(sent + len(json.dumps(schema(RUBRIC))))
        return Reply(FULL, usage=KNOWN)

    model = Model(look)
    ask(model)
    assert held[0] >= held[1]


@pytest.mark.parametrize(
    ("model", "settings", "most"),
    [
        ("anthropic/j", {"thinking": 10_000}, 14_096),
        ("google/j", {"thinking": 10_000}, 14_096),
        ("openai/j", {"extra": {"max_completion_tokens": 9_000}}, 9_000),
        ("openai/j", {"max_tokens": 70}, 70),
        ("openai/j", {}, 4_096),
    ],
)
def test_all_that_may_come_out_is_set_aside(model, settings, most, monkeypatch):
    """The server answers nothing that is of use: what was set aside stays in the ledger."""
    monkeypatch.setattr(workforce, "pause", lambda *_: 0.0)
    with in_a_thread({"judge": response({})}) as at:
        found = find(model, base_url=at["judge"][0])
        _, desk = ask(found, **settings)
    (call, *_) = desk.writer.calls
    assert call["held_tokens"] - most in range(1_000, 4_000), "the prompt and the schema"
    assert call["held_usd"] == pytest.approx((call["held_tokens"] + most) / 1e6)


@pytest.mark.parametrize("usage", [Usage(100, None), Usage(None, 50), Usage()])
def test_what_is_known_by_half_stays_set_aside(usage, tmp_path):
    _, desk = ask(Model(Reply(FULL, usage=usage)))
    (call,) = desk.writer.calls
    assert call["held_tokens"] == desk.budget.held_tokens > 4096
    assert call["held_usd"] == pytest.approx(desk.budget.held_usd)
    assert call["cost_usd"] is None
    with closing(Store(str(tmp_path / "store.db"))) as store:
        store.add_run(StoredRun("run", "x", "x.yaml", "", "", "done", 1, 1.0, 2.0, {}))
        store.write([], [tuple(map(call.get, CALL_COLUMNS))])
        again = Budget.of(Limits(), store, "run")
    assert again.held_tokens == call["held_tokens"]


def test_a_call_that_may_have_been_paid_for_stays_set_aside():
    lost = CallError("timeout", "no answer", sent=True)
    score, desk = ask(Model(lost, Reply(FULL, usage=KNOWN)))
    assert score == 1.0
    assert [bool(call["held_tokens"]) for call in desk.writer.calls] == [True, False]


def test_a_judge_that_rests_does_not_keep_anybody_waiting():
    def fail(_):
        asyncio.get_running_loop().call_later(0.05, model.limiter.close)
        return CallError("server", "busy", retry_after=50.0)

    model = Model(fail, Reply(FULL, usage=KNOWN))
    with pytest.raises(ClosedError):
        ask(model)
    assert model.calls == 1


ROW = {"messages": None, "input": "question", "target": "4", "response": "joined", "work": None}


def test_a_judge_sees_all_turns_of_a_conversation():
    turns = [
        {"role": "user", "content": "question"},
        {"role": "assistant", "content": "Which one?"},
        {"role": "user", "content": "The second."},
        {"role": "assistant", "content": "Then four."},
    ]
    case = case_of({**ROW, "work": json.dumps({"turns": turns})})
    assert case == replace(
        case_of(ROW),
        talk=(("assistant", "Which one?"), ("user", "The second."), ("assistant", "Then four.")),
    )
    asked = messages(RUBRIC, case)[1].content
    assert all(asked.count(turn["content"]) == 1 for turn in turns)
    assert asked.index("Which one?") < asked.index("The second.") < asked.index("Then four.")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("messages", "5"),
        ("messages", '{"a": 1}'),
        ("work", "[1"),
        ("work", "5"),
        ("tool_calls", "5"),
    ],
)
def test_a_damaged_record_is_told_and_not_judged(column, value):
    with pytest.raises(StoreError, match=f"{column} of a record is '"):
        case_of({**ROW, column: value})


def session(tmp_path, models, attempts, first=""):
    """Judge made-up attempts by these models, one call at a time; gives the session.

    `first` is done in the database before.
    """
    store = Store(str(tmp_path / "store.db"))
    run = StoredRun("run", "x", "x.yaml", "", "", "done", attempts, 1.0, 2.0, {})
    store.add_run(run)
    common = {"run": "run", "subject": "s", "tier": "T0", "attempt": 1, "fingerprint": "f"}
    rows = [
        {**common, "task_id": f"t{i}", "status": "ok", "input": "q", "response": f"r{i}"}
        for i in range(attempts)
    ]
    store.write([tuple(map(row.get, RECORD_COLUMNS)) for row in rows], [])
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute(first)
    judging = Judging(tuple(Subject(name, f"python:m:{name}") for name in models), RUBRIC)
    limits = Limits(concurrency=1)
    job = JudgingJob(run, store, limits, {}, lambda *_: None)
    found = JudgingSession(job, judging, models, Prices({}), Budget(limits), lambda: None)
    assert asyncio.run(found.work()) is False
    store.close()
    return found


class Closing(Model):
    """A model for a session, which closes its models."""

    def __init__(self, name, reply):
        super().__init__()
        self.name = self.account = name
        self.reply, self.alive, self.closed = reply, [], 0

    async def call(self, request):
        self.calls += 1
        self.alive.append(sum(isinstance(one, JudgedAttempt) for one in gc.get_objects()))
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply

    async def close(self):
        self.closed += 1


def test_prompts_are_made_when_they_are_wanted(tmp_path):
    model = Closing("good", Reply(FULL, usage=KNOWN))
    found = session(tmp_path, {"good": model}, 30)
    assert (model.calls, found.tally.total, found.tally.done) == (30, 30, 30)
    assert max(model.alive) <= 3


def test_an_account_that_is_closed_keeps_no_other_judge_from_judging(tmp_path):
    good = Closing("good", Reply(FULL, usage=KNOWN))
    refused = Closing("refused", CallError("auth", "The key is wrong.", status=401))
    found = session(tmp_path, {"refused": refused, "good": good}, 30)
    assert good.calls == 30
    assert refused.calls < 30
    assert found.tally.stop_reason.because is ClosedBecause.REFUSED
    assert found.unjudged == 0


def test_models_are_closed_also_where_nothing_can_be_written(tmp_path):
    refuse = "BEGIN SELECT RAISE(ABORT, 'no room'); END"
    first = f"CREATE TRIGGER full BEFORE INSERT ON pennyweight_judgment {refuse}"
    models = {name: Closing(name, Reply(FULL, usage=KNOWN)) for name in ("one", "two")}
    with pytest.raises(StoreError, match="no room"):
        session(tmp_path, models, 1, first)
    assert {name: model.closed for name, model in models.items()} == {"one": 1, "two": 1}
