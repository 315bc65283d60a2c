"""Trajectories of any tool are shown as steps, with results where they belong."""

import json

import pytest

from pennyweight.render.transcript.trajectory import shown_steps, some_steps, trajectory

TURNS = [
    {"role": "assistant", "content": "I look.", "reasoning": "First the file.", "at": 100.0,
     "cost_usd": 0.01,
     "tool_calls": [{"id": "a", "name": "bash", "arguments": {"command": "ls"}},
                    {"id": "b", "name": "read", "arguments": '{"path": "x"}'}]},
    {"role": "tool", "tool_call_id": "b", "content": "text", "latency_ms": 12},
    {"role": "tool", "tool_call_id": "a", "content": "x", "is_error": True},
    {"role": "user", "content": "Go on."},
    {"role": "assistant", "content": "", "tool_calls": [{"name": "stop", "arguments": ""}],
     "timestamp": "1970-01-01T00:02:00+00:00"},
    {"role": "tool", "content": "stopped"},
    {"role": "tool", "name": "other", "content": "unasked"},
]  # fmt: skip


def test_results_belong_to_their_calls():
    steps = trajectory({"work": json.dumps({"turns": TURNS})})
    assert [(s.number, s.role, len(s.calls)) for s in steps] == [
        (1, "assistant", 2), (2, "user", 0), (3, "assistant", 1), (4, "tool other", 0),
    ]  # fmt: skip
    first, second = steps[0].calls
    assert (first.given, first.language, first.result, first.failed) == ("ls", "bash", "x", True)
    assert (second.given, second.result, second.time) == ("path: x", "text", "12.0 ms")
    assert (steps[0].thought, steps[0].failed) == ("First the file.", True)
    assert steps[0].facts == "+0 s, $0.01"
    assert steps[2].calls[0].result == "stopped"
    assert steps[2].at == 20.0


def test_calls_without_turns_are_steps():
    calls = [
        {"id": "1", "name": "look", "arguments": '{"id": 7}', "latency_ms": 12.3},
        {"id": "2", "name": "pay", "arguments": {}, "result": {"paid": True}},
        {"id": "3", "function": {"name": "wait", "arguments": "{}"}},
        {"id": "4", "name": "list", "result": []},
    ]
    sent = [{"role": "tool", "tool_call_id": "1", "content": "7"}]
    row = {"tool_calls": json.dumps(calls), "messages": json.dumps(sent), "work": None}
    found = [(c.name, c.given, c.result) for s in trajectory(row) for c in s.calls]
    assert found[:2] == [("look", "id: 7", "7"), ("pay", "", '{"paid": true}')]
    assert found[2:] == [("wait", "", None), ("list", "", "[]")]
    assert trajectory(row)[0].facts == "took 12.3 ms"


@pytest.mark.parametrize(
    "turns",
    [
        [{}], [{"role": None, "content": None, "tool_calls": 7}], [{"role": "tool"}],
        [{"role": "assistant", "tool_calls": [{"name": 7, "arguments": [1], "id": {}}, 7, {}]}],
        [{"role": "assistant", "tool_calls": [{}]}, {"role": "tool", "tool_call_id": []}],
        [{"role": ["x"], "content": {"a": [1]}, "reasoning": 7, "at": "never", "cost_usd": "1"}],
        [{"content": [{"type": "text", "text": "a"}], "usage": 7, "tokens": True, "at": 1e300}],
        [{"role": "assistant", "content": "<script>", "tool_calls": [
            {"name": "<b>", "arguments": "<i>", "result": "</pre><script>"}]}],
    ],
)  # fmt: skip
def test_turns_of_any_shape_are_shown(turns):
    for step in shown_steps(trajectory({"work": json.dumps({"turns": turns})})):
        for part in (step.text, step.thought, *(c.given for c in step.calls)):
            assert "<script" not in part.head
        assert step.step.title is not None


def test_many_steps_stay_small():
    turns = [{"role": "assistant", "content": "word " * 1_000,
              "tool_calls": [{"name": "t", "arguments": "x" * 9_000}]}] * 500  # fmt: skip
    steps = shown_steps(trajectory({"work": json.dumps({"turns": turns})}))
    size = sum(len(s.text.head) + sum(len(c.given.head) for c in s.calls) for s in steps)
    assert len(steps) == 500
    assert size < 150_000
    assert all(s.cut for s in steps)


def test_most_of_many_steps_are_stubs_where_they_can_be_fetched():
    turns = [{"role": "assistant", "content": f"word{n} " * 50} for n in range(5_000)]
    steps = trajectory({"work": json.dumps({"turns": turns})})
    shown = shown_steps(steps, fetched=True)
    assert [s.stub for s in shown] == [False] * 24 + [True] * (1_200 - 24)
    assert all(s.cut for s in shown if s.stub)
    assert not any(s.stub for s in shown_steps(steps[:60], fetched=True))
    fetched = some_steps(steps, 30, 4_000)
    assert [s.step.number for s in fetched] == [*range(30, 46)]
    assert not any(s.cut for s in fetched)


def test_a_turn_without_content_shows_none():
    turn = {"role": "assistant", "content": [], "tool_calls": [{"name": "ls"}]}
    (step,) = trajectory({"work": json.dumps({"turns": [turn]})})
    assert (step.text, [call.name for call in step.calls]) == ("", ["ls"])


def test_a_call_takes_as_long_as_its_result_comes_later():
    turns = [
        {"role": "assistant", "timestamp": "2026-01-02T03:04:05Z",
         "tool_calls": [{"id": "a", "name": "bash", "arguments": {"command": "make"}}]},
        {"role": "tool", "tool_call_id": "a", "timestamp": "2026-01-02T03:04:12.500Z",
         "content": [{"type": "image", "source": {"data": "AAAA"}}, {"type": "text", "text": "x"}]},
    ]  # fmt: skip
    (step,) = trajectory({"work": json.dumps({"turns": turns})})
    assert step.calls[0].time == "7,500 ms"
    assert step.calls[0].result == "[image]\nx"
