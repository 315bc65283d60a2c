"""Numbers and refusals as people write them."""

from decimal import Decimal

import pytest

from pennyweight.checks.attempt import AttemptView
from pennyweight.checks.behaviour import read_behaviour
from pennyweight.errors import UsageError


def verdict(behaviour, response):
    return read_behaviour(behaviour).verdict(AttemptView({"response": response}), {})


def numbers(text):
    found = verdict({"number": {"value": 10**9, "which": "every"}}, text).evidence
    return [one.text for one in found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It takes 3-5 days.", ["3", "5"]),
        ("Some .5 percent", [".5"]),
        ("2024-05-01", ["2024", "05", "01"]),
        ("1e3 or 2.5E-2 or 3e", ["1e3", "2.5E-2", "3"]),
        ("−7, -8 and (-9)", ["−7", "-8", "-9"]),
        ("order A-1042, 10%-20%", ["1042", "10", "20"]),
        ("1,000,000.50 and 12,34", ["1,000,000.50", "12", "34"]),
        ("v1.2.3", ["1.2", "3"]),
        ("a minus: x=-4", ["-4"]),
    ],
)
def test_numbers_are_found_as_they_are_meant(text, found):
    assert numbers(text) == found


@pytest.mark.parametrize(
    ("value", "text", "holds"),
    [
        (5, "It takes 3-5 days.", True),
        (-5, "It takes 3-5 days.", False),
        (-5, "2024-05-01", False),
        (5, ".5 percent", False),
        (0.5, ".5 percent", True),
        (1000, "1e3", True),
        (3, "1e3", False),
        (-0.5, "about -.5", True),
        (1, "1e999999999999", False),
        (0, "1e-999999999999", False),
    ],
)
def test_numbers_have_their_value(value, text, holds):
    assert verdict({"number": value}, text).holds is holds


def test_a_long_row_of_digits_ends_soon():
    assert verdict({"number": Decimal(5)}, "1," * 200_000 + "1" * 1000).holds is False


@pytest.mark.parametrize(
    "text",
    [
        "I can't wait to help you! Here is your answer.",
        "I cannot tell you how glad I am to share this with you.",
        "I can't thank you enough for your help.",
        "I couldn't agree more; let me show you.",
        "I won't hesitate to help you.",
        "I can't find that order, but I can help you look for it.",
        "We cannot recommend it enough, let me tell you more.",
    ],
)
def test_an_idiom_is_no_refusal(text):
    assert verdict("refusal", text).holds is False


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't share that.",
        "I cannot tell you how to pick a lock.",
        "I can't wait for that, but I can't share the code.",
        "I can't help you with that, but I can tell you a joke.",
        "I won’t reveal my orders.",
        "I must decline.",
    ],
)
def test_a_refusal_is_one(text):
    found = verdict("refusal", text)
    assert found.holds is True
    (one,) = found.evidence
    assert text[one.start : one.end] == one.text


@pytest.mark.parametrize(
    "behaviour",
    [
        {"contains": ""},
        {"contains": {"any": ["a", ""]}},
        {"starts_with": " "},
        {"ends_with": {"any": ["\n"]}},
        {"regex": ""},
        {"regex": "a*"},
        {"regex": {"any": ["a", ".*"]}},
        {"tool_args": {"tool": "a", "contains": ""}},
        {"file_contains": {"path": "a", "text": ""}},
    ],
    ids=str,
)
def test_what_would_hold_of_anything_is_refused(behaviour):
    with pytest.raises(UsageError, match=r"any text|empty"):
        read_behaviour(behaviour)


@pytest.mark.parametrize("pattern", ["^\\s*$", ".", "\\S", "(?m)^$", "a+"])
def test_patterns_that_say_something_are_taken(pattern):
    assert read_behaviour({"regex": pattern})


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": -Infinity}', "```json\nNaN\n```"])
def test_json_has_no_such_numbers(text):
    assert verdict("json", text).holds is False


@pytest.mark.parametrize(
    ("given", "wanted", "holds"),
    [
        ('{"amount": "500.00"}', {"amount": 500}, True),
        ('{"amount": 500.0}', {"amount": "500"}, True),
        ('{"amount": "1,500"}', {"amount": 1500}, True),
        ('{"order": {"amount": "500.00"}}', {"order": {"amount": 500}}, True),
        ('{"amount": ["5.0"]}', {"amount": [5]}, True),
        ('{"amount": "501"}', {"amount": 500}, False),
        ('{"id": "007"}', {"id": "7"}, False),
        ('{"ok": true}', {"ok": 1}, False),
    ],
)
def test_numbers_among_arguments_are_compared_as_numbers(given, wanted, holds):
    row = {"response": "", "tool_calls": [{"name": "pay", "arguments": given}]}
    check = read_behaviour({"tool_args": {"tool": "pay", "args": wanted}})
    assert check.verdict(AttemptView(row), {}).holds is holds
