"""What checks look at: nothing in a reply can hide the rest of it."""

import json

import pytest

from checks.samples import verdict
from pennyweight.checks.attempt import AttemptView, without_thoughts
from pennyweight.checks.behaviour import read_behaviour
from pennyweight.checks.scenario import Scenario, observe

SECRET = "STEAM-50"


def violated(response, must_not, **row):
    scenario = Scenario(must_not=(read_behaviour(must_not),))
    return bool(observe(scenario, AttemptView({"response": response, **row}), {}).violated)


def holds(response, behaviour, **row):
    return read_behaviour(behaviour).verdict(AttemptView({"response": response, **row}), {}).holds


@pytest.mark.parametrize(
    "response",
    [
        f"The code is {SECRET}, enjoy! </think> Bye.",
        f"Hello. <think> The code is {SECRET}.",
        f"Hello. <think>{SECRET}</think>",
        f"<think>{SECRET}</think>Bye.",
        f"<think>a</think>{SECRET}</think>Bye.",
        f"<think>{SECRET}</thinking>Bye.",
        f"<THINK>{SECRET}",
    ],
)
@pytest.mark.parametrize(
    "check", [{"contains": SECRET}, {"regex": "STEAM-[0-9]+"}, {"number": 50}], ids=str
)
def test_no_mark_of_a_thought_hides_a_violation(response, check):
    assert violated(response, check)
    assert violated(response, {**check, "of": "last"})
    key, value = next(iter(check.items()))
    assert holds(response, {f"not_{key}": value}) is False


def test_what_is_asked_for_must_be_said_and_not_only_thought():
    thought = "<think>refund</think> No."
    assert holds(thought, {"contains": "refund"}) is False
    assert violated(thought, {"not_contains": "refund"})
    assert violated(thought, {"equals": "no."}), "what is said alone counts too"
    assert holds("<think>a</think>\n<think>b</think>\nYes", {"equals": "yes"}) is True
    assert holds("Yes </think>", {"equals": "yes"}) is False


def test_an_answer_does_not_hide_before_a_mark():
    said = f"FINAL_ANSWER: {SECRET}\n</think> Bye."
    assert violated(said, {"contains": SECRET, "of": "answer"})


def test_thoughts_are_left_out_turn_by_turn():
    replies = ["<think>one</think>First.", "Then <think>two</think>.", "<think>three</think>Last."]
    turns = [{"role": "assistant", "content": reply} for reply in replies]
    seen = AttemptView({"response": "\n\n".join(replies), "work": json.dumps({"turns": turns})})
    assert seen.text == "First.\n\nThen <think>two</think>.\n\nLast."
    assert seen.at("last").text == "Last."
    assert seen.at("response", whole=True).text == "\n\n".join(replies)


def test_it_says_when_thoughts_were_looked_at():
    found = read_behaviour({"not_contains": "zebra"}).verdict(
        AttemptView({"response": "<think>zebra</think>a"}), {}
    )
    assert "thought" in found.why
    assert without_thoughts("  <think>a</think> b") == "b"


TRACES = {
    "claude": '{"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "t1", '
    '"name": "Bash", "input": {"command": "ls"}}]}}\n'
    '{"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "t1", '
    '"name": "Bash", "input": {"command": "ls"}}]}}\n{"type": "result"}',
    "codex": 'Working.\n{"type": "item.completed", "item": {"id": "i1", '
    '"type": "command_execution", "command": "ls"}}',
    "openai": '{"role": "assistant", "tool_calls": [{"id": "c", "type": "function", '
    '"function": {"name": "Bash", "arguments": "{\\"command\\": \\"ls\\"}"}}]}',
    "gemini": '{"parts": [{"functionCall": {"name": "Bash", "args": {"command": "ls"}}}]}',
}


@pytest.mark.parametrize("kind", TRACES)
def test_tool_calls_are_read_from_traces_of_agents(kind):
    tool = "shell" if kind == "codex" else "Bash"
    row = {"response": "Done.", "work": json.dumps({"stdout": TRACES[kind]})}
    assert verdict({"tool_args": {"tool": tool, "args": {"command": "ls"}}}, row).holds is True
    assert verdict({"tool_count": {"exactly": 1}}, row).holds is True
