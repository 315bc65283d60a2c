"""What checks look at: nothing in a reply can hide the rest of it."""

import json

import pytest

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
