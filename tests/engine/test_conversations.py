"""A scripted user: several calls make one attempt, and no line of the script reaches the model."""

import asyncio
import json
from contextlib import closing

import pytest

from engine.command import added
from models.hostile import in_a_thread, response
from pennyweight.engine.conversations import Conversation
from pennyweight.engine.execution import execute, new_run, open_suite
from pennyweight.judges.judging import case_of
from pennyweight.judges.prompt import messages
from pennyweight.models import model as models
from pennyweight.models.failure import CallError
from pennyweight.models.model import Message, Reply, Request, ToolCall, Usage
from pennyweight.models.replay import Recorder, RecordError, Recording
from pennyweight.schema.problems import DocumentError
from pennyweight.store.store import Store
from pennyweight.suite.loader import load_suite
from pennyweight.suite.plan import (
    ROUNDS,
    Attempt,
    conversation,
    estimates,
    fingerprint,
    most_calls,
    tokens_of,
)
from pennyweight.suite.rubric import DEFAULT
from stored_runs.test_observations import here, pennyweight


class Model(models.Model):
    """Answers by the last message, and keeps what it was asked."""

    name = account = "test/model"
    limit = None
    ignores = frozenset({"seed"})

    def __init__(self):
        self.asked = []

    async def call(self, request):
        self.asked.append([(m.role, m.content) for m in request.messages])
        last = request.messages[-1]
        used = {"usage": Usage(10, 2), "latency_ms": 5.0}
        if last.role == "user" and "order" in last.content:
            return Reply("", tool_calls=(ToolCall("c1", "lookup", '{"id": 1}'),), **used)
        return Reply(f"You said {last.content!r}.", **used)

    async def close(self):
        self.closed = True


def script(*lines, first="Hi"):
    later = [Message("later", json.dumps(line)) for line in lines]
    return Request((Message("system", "Be kind."), Message("user", first), *later))


def talk(request):
    model = Model()
    return asyncio.run(Conversation(model, request).call()), model


def test_the_lines_are_said_one_after_the_other():
    reply, model = talk(script({"say": "And?"}, {"say": "Bye."}))
    assert reply.text == "You said 'Hi'.\n\nYou said 'And?'.\n\nYou said 'Bye.'."
    assert [turns[-1] for turns in model.asked] == [
        ("user", "Hi"), ("user", "And?"), ("user", "Bye."),
    ]  # fmt: skip
    assert model.asked[-1][:3] == [
        ("system", "Be kind."), ("user", "Hi"), ("assistant", "You said 'Hi'."),
    ]  # fmt: skip
    assert not any(role == "later" for turns in model.asked for role, _ in turns)
    assert reply.usage == Usage(30, 6, None, None)
    assert reply.latency_ms == 15.0
    assert [t["role"] for t in reply.work["turns"]] == ["user", "assistant"] * 3


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"say": "Yes!", "if": {"contains": "you said"}}, "Yes!"),
        ({"say": "Yes!", "if": {"not_contains": "you said"}}, None),
        ({"say": "Yes!", "if": {"contains": "zebra"}, "else": "No!"}, "No!"),
        ({"say": "Yes!", "if": {"latency": 6}}, "Yes!"),
        ({"say": "Yes!", "if": {"cost": 6}, "else": "Not known."}, "Not known."),
    ],
)
def test_a_line_may_depend_on_the_reply(line, said):
    reply, model = talk(script(line))
    assert len(model.asked) == (1 if said is None else 2)
    assert said is None or model.asked[1][-1] == ("user", said)
    assert said is None or f"You said {said!r}." in reply.text


def test_tools_give_what_the_script_says():
    results = {"results": {"lookup": "It was sent."}}
    reply, model = talk(script(results, {"say": "Thanks."}, first="My order?"))
    assert model.asked[1][-1] == ("tool", "It was sent.")
    assert reply.text == "You said 'It was sent.'.\n\nYou said 'Thanks.'."
    assert [c.name for c in reply.tool_calls] == ["lookup"]


def test_turns_say_which_tools_were_called():
    results = {"results": {"lookup": "It was sent."}}
    reply, _ = talk(script(results, first="My order?"))
    asked, called, gave, _ = reply.work["turns"]
    assert asked == {"role": "user", "content": "My order?"}
    assert called["tool_calls"] == [{"name": "lookup", "arguments": '{"id": 1}'}]
    assert (gave["role"], gave["name"]) == ("tool", "lookup")
    row = {"work": json.dumps(reply.work), "messages": None, "input": "My order?"}
    case = case_of({**row, "response": reply.text, "target": None, "tool_calls": None})
    assert ("assistant", '[calls lookup({"id": 1})]') in case.talk
    shown = messages(DEFAULT, case)[1].content
    assert 'lookup({"id": 1})' in shown
    assert "by the tool lookup:" in shown
    assert "(nothing)" not in shown


def test_a_judge_sees_the_tools_of_a_single_reply():
    row = {"work": None, "messages": None, "input": "q", "response": "", "target": None}
    calls = json.dumps([{"id": "1", "name": "pay", "arguments": '{"sum": 5}'}])
    shown = messages(DEFAULT, case_of({**row, "tool_calls": calls}))[1].content
    assert 'pay({"sum": 5})' in shown


def test_a_try_goes_on_where_the_last_one_failed():
    class Failing(Model):
        failures = 2

        async def call(self, request):
            if len(self.asked) == 2 and self.failures:
                self.failures -= 1
                raise CallError("server", "down")
            return await super().call(request)

    model, paid = Failing(), []
    talk = Conversation(model, script({"say": "And?"}, {"say": "Bye."}), paid.append)
    for _ in range(2):
        with pytest.raises(CallError):
            asyncio.run(talk.call())
        assert (len(paid), talk.ended) == (2, False)
    reply = asyncio.run(talk.call())
    assert [turns[-1][1] for turns in model.asked] == ["Hi", "And?", "Bye."]
    assert (len(paid), talk.ended) == (3, True)
    assert reply.text == "You said 'Hi'.\n\nYou said 'And?'.\n\nYou said 'Bye.'."
    assert reply.usage == Usage(30, 6, None, None)


class Flaky:
    """Answers, but fails for a while at the third call, as a server that restarts."""

    def __init__(self, failures):
        self.calls, self.failures = 0, failures

    async def __call__(self, writer):
        self.calls += 1
        if self.calls > 2 and self.failures:
            self.failures -= 1
            await response(b"", 503)(writer)
        else:
            await response()(writer)


@pytest.mark.parametrize(("failures", "code"), [(1, 0), (99, 4)])
def test_each_call_of_a_conversation_has_its_row_and_none_is_paid_twice(tmp_path, failures, code):
    flaky = Flaky(failures)
    with in_a_thread({"m": flaky}) as served:
        (tmp_path / "suite.yaml").write_text(
            "suite: s\n"
            f"subjects: [{{name: m, model: openai/m, base_url: '{served['m'][0]}/v1'}}]\n"
            "prices: {m: {input: 1000000, output: 1000000}}\n"
            "limits: {usd: 1000000}\nsettings: {max_tokens: 10}\n"
            "tasks: [{id: a, input: Hi, turns: ['And?', 'Bye.']}]\n"
        )
        pennyweight(tmp_path, "run", "suite.yaml", code=code)
    store = Store(str(tmp_path / "store.db"))
    run_id = store.find("latest").id
    (row,) = next(store.records(run_id)).to_dicts()
    spent = store.spent(run_id)
    with store.engine.connect() as connection:
        found = connection.exec_driver_sql(
            "SELECT status, cost_usd FROM pennyweight_call WHERE kind = 'attempt' ORDER BY id"
        )
        calls = [tuple(one) for one in found]
    store.close()
    good = ("ok", 6.0)
    assert spent["calls"] == len(calls) == flaky.calls
    if failures == 1:
        assert calls == [good, good, ("server", None), good]
        assert (row["status"], row["cost_usd"], row["tries"]) == ("ok", 18.0, 2)
        assert (row["prompt_tokens"], row["completion_tokens"]) == (15, 3)
    else:
        assert calls == [good, good] + [("server", None)] * (len(calls) - 2)
        assert (row["status"], row["cost_usd"], spent["usd"]) == ("error", 12.0, 12.0)


def test_the_ledger_has_what_a_broken_conversation_took(tmp_path):
    (tmp_path / "bot.py").write_text(
        "def answer(text):\n"
        "    if text == 'Bye.': raise RuntimeError('down')\n"
        "    return {'text': 'yes', 'usage': {'prompt_tokens': 10, 'completion_tokens': 2}}\n"
    )
    (tmp_path / "suite.yaml").write_text(
        "suite: s\nsubjects: ['python:bot:answer']\n"
        "prices: {'python:bot:answer': {input: 1000, output: 1000}}\n"
        "tasks: [{id: a, input: Hi, turns: ['And?', 'Bye.'], checks: [{contains: yes}]}]\n"
    )
    done = pennyweight(tmp_path, "run", "suite.yaml", code=4)
    assert "0 of 1 attempt made, 1 failed, $0.024" in done.stderr
    shown = " ".join(here(tmp_path, "show").out.split())
    assert "could not be made: python:bot:answer failed with RuntimeError: down" in shown
    store = Store(str(tmp_path / "store.db"))
    assert store.spent(store.find("latest").id)["usd"] == pytest.approx(0.024)
    store.close()
    assert "user, later: Bye." in here(tmp_path, "show", "latest", "a").out


def test_people_see_every_turn_and_which_branch_was_taken(tmp_path):
    (tmp_path / "bot.py").write_text("def answer(text):\n    return 'You said ' + text\n")
    (tmp_path / "suite.yaml").write_text(
        "suite: s\nsubjects: ['python:bot:answer']\ntasks:\n"
        "  - {id: a, input: Hi, checks: [{human: Kind?}], turns: [{say: 'Fine.', "
        "if: {contains: zebra}, else: 'No zebra?'}, 'Bye.']}\n"
    )
    pennyweight(tmp_path, "run", "suite.yaml")
    shown = here(tmp_path, "show", "latest", "a").out
    assert "user: No zebra?" in shown
    assert "Fine." not in shown
    assert '"say"' not in shown
    asked = pennyweight(tmp_path, "review", "--as", "Ann", given="", code=130)
    assert "User:\nNo zebra?" in asked.stdout
    assert "Assistant:\nYou said Bye." in asked.stdout
    assert "0 verdicts saved" in asked.stderr
    assert "pennyweight review" in asked.stderr


def test_a_model_that_calls_for_ever_is_stopped():
    class Endless(Model):
        async def call(self, request):
            self.asked.append(request)
            return Reply("", tool_calls=(ToolCall("c", "lookup", "{}"),))

    model = Endless()
    reply = asyncio.run(Conversation(model, script({"results": {"lookup": "again"}})).call())
    assert len(model.asked) == len(reply.tool_calls) == ROUNDS


class Busy(Model):
    """Calls a tool so many times in each of its first replies."""

    def __init__(self, times, replies):
        super().__init__()
        self.times, self.replies = times, replies

    async def call(self, request):
        self.asked.append(request)
        calls = (ToolCall("c", "lookup", "{}"),) * self.times if self.replies else ()
        self.replies -= 1
        return Reply("so", tool_calls=calls, usage=Usage(10, 2))


@pytest.mark.parametrize(("room", "asked"), [(None, 4), (4 * 1016 + 500, 4), (2 * 1016 + 500, 3)])
def test_a_talk_stays_within_what_was_set_aside_for_it(room, asked):
    model = Busy(1, 3)
    lines = script({"results": {"lookup": "x" * 1000}})
    made = Conversation(model, lines, room=room, output=50)
    if asked == 4:
        assert asyncio.run(made.call()).text == "\n\n".join(["so"] * 4)
    else:
        with pytest.raises(CallError, match=r"about 3,0.. tokens, but only 2,532 are") as told:
            asyncio.run(made.call())
        assert (told.value.retryable, told.value.perhaps_paid) == (False, False)
    assert len(model.asked) == asked


def test_nobody_means_thousands_of_tools_at_once():
    model = Busy(40_000, 1)
    with pytest.raises(CallError, match="called 40,000 tools at once, over 128"):
        asyncio.run(Conversation(model, script({"results": {"lookup": "x"}})).call())
    assert len(model.asked) == 1


def test_what_a_talk_took_is_in_the_ledger_when_its_recording_fails(tmp_path, monkeypatch):
    def full(self, *_):
        self._fail(OSError(28, "No space left on device"))

    (tmp_path / "paid.py").write_text("def answer(text): return {'text': 'hi'}\n")
    path = tmp_path / "suite.yaml"
    path.write_text(
        "suite: s\ntasks: [{id: a, input: hi, turns: [more, again]}]\n"
        "subjects: ['python:paid:answer']\n"
    )
    monkeypatch.setattr(Recorder, "add", full)
    loaded = open_suite(path)
    run = new_run(loaded)
    with closing(Store(str(tmp_path / "store.db"))) as store:
        with pytest.raises(RecordError, match="No space left"):
            execute(
                loaded,
                added(run, store),
                store,
                watch=lambda *_: None,
                record=tmp_path / "tape.jsonl",
            )
        assert (store.spent(run.id)["calls"], store.statuses(run.id)) == (1, {})


@pytest.mark.parametrize(
    ("lines", "most"),
    [((), 1), (({"say": "a"}, {"say": "b"}), 3), (({"results": {}}, {"say": "a"}), 2 * ROUNDS)],
)
def test_the_most_calls_are_known_before(lines, most):
    assert most_calls([json.dumps(line) for line in lines]) == most
    _, model = talk(script(*lines)) if lines else (None, None)
    assert model is None or len(model.asked) <= most


def test_an_estimate_counts_every_call_of_a_script(tmp_path):
    (tmp_path / "suite.yaml").write_text(
        "suite: s\nsubjects: [openai/x]\nsettings: {max_tokens: 100}\n"
        "tasks: [{id: a, input: Hi, turns: ['And then?', 'Bye.']}]\nruns: 2\n"
    )
    (found,) = estimates(load_suite(tmp_path / "suite.yaml"))
    first, second, third = (tokens_of([{"content": text}]) for text in ("Hi", "And then?", "Bye."))
    sent = first + (first + 100 + second) + (first + 200 + second + third)
    assert (found.prompt_tokens, found.output_tokens) == (2 * sent, 2 * 3 * 100)


def test_a_recording_holds_each_reply_and_plays_the_same_talk(tmp_path):
    request = script({"say": "Yes!", "if": {"contains": "said"}}, {"say": "Bye."})
    recorder = Recorder(tmp_path / "tape.jsonl")
    first = asyncio.run(Conversation(recorder.wrap(Model()), request).call())
    recorder.close()
    assert len((tmp_path / "tape.jsonl").read_text().splitlines()) == 3
    again = Conversation(Recording.read(tmp_path / "tape.jsonl").model("test/model"), request)
    assert asyncio.run(again.call()) == first


AGENT = """\
def answer(request):
    assert all(m.role != "later" for m in request.messages)
    last = request.messages[-1]
    if last.role == "user" and "order" in last.content:
        call = {"id": "1", "name": "lookup", "arguments": "{}"}
        return {"text": "", "tool_calls": [call]}
    return f"{last.role} said {last.content}"
"""
TALK = """\
suite: talk
subjects: [{name: me, model: "python:agent:answer"}]
tasks:
  - id: a
    input: Hi
    turns: [My order?, {say: Thanks!, if: {contains: Monday}}, {say: never, if: {contains: zebra}}]
    tool_results: {lookup: It was sent on Monday.}
    expected_behaviors: [{tool_called: lookup}, {contains: Monday}, {contains: Thanks, of: last}]
    must_not: [{contains: never}, {contains: Monday, of: last}]
"""


def test_a_talk_end_to_end_and_from_its_recording(tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "suite.yaml").write_text(TALK)
    pennyweight(tmp_path, "run", "suite.yaml", "--record", "tape.jsonl")
    told = here(tmp_path, "show", "latest", "a").out
    assert ": passed" in told
    tape = TALK.replace("python:agent", "replay:tape.jsonl#python:agent")
    (tmp_path / "suite.yaml").write_text(tape)
    pennyweight(tmp_path, "run", "suite.yaml")
    assert here(tmp_path, "show", "latest", "a").out == told


SUITE = """\
suite: talk
subjects: [local/m]
tasks:
  - id: a
    input: Hi
    turns:
      - Where is it?
      - {say: Thanks., if: {contains: sent}, else: Hm.}
    tool_results: {lookup: It was sent.}
"""


def test_a_changed_script_is_a_changed_attempt(tmp_path):
    def attempt(text):
        (tmp_path / "s.yaml").write_text(text)
        suite = load_suite(tmp_path / "s.yaml")
        return suite, Attempt(suite.tasks[0], suite.subjects[0], suite.tiers[0], 1)

    suite, one = attempt(SUITE)
    roles = [turn["role"] for turn in conversation(one.tier, one.task)]
    assert roles == ["user", "later", "later", "later"]
    other = attempt(SUITE.replace("contains: sent", "contains: send"))
    assert fingerprint(suite, one) != fingerprint(*other)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{contains: sent}", "{contians: sent}", "turns[2].if: Check 'contians'"),
        ("{contains: sent}", "It was sent.", "looks at the reply alone"),
        ("Thanks., if: {contains: sent}", "Thanks.", "which requires 'if'"),
        ("say: Thanks.", "tell: Thanks.", "needs 'say'"),
        ("It was sent.", "[1]", "tool_results"),
        ("[local/m]", "[{command: [cat]}]", "a command is called once"),
    ],
)
def test_mistakes_in_a_script_are_told_with_their_line(tmp_path, old, new, said):
    assert SUITE.count(old) >= 1
    (tmp_path / "s.yaml").write_text(SUITE.replace(old, new, 1))
    with pytest.raises(DocumentError) as caught:
        load_suite(tmp_path / "s.yaml")
    assert said in str(caught.value)
    assert "s.yaml, line " in str(caught.value)
