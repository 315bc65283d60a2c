"""Replies of judges, as they come."""

import json
from contextlib import suppress

import pytest

from pennyweight.judges.replies import LONGEST, Mark, UnreadableError, objects, read
from pennyweight.suite.rubric import Category, Item, Rubric

RUBRIC = Rubric(
    "r",
    (
        Category("works", 2.0, (Item("works", "It works.", 1.0),)),
        Category("tidy", 1.0, (Item("tidy", "It is tidy.", 4.0, "there is nothing to tidy"),)),
    ),
)
GOOD = {"items": {"works": {"evidence": "ran {ok}", "score": 0.75}, "tidy": {"score": 3}}}
MARKS = {"works": Mark(0.75, "ran {ok}"), "tidy": Mark(3.0, "")}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(GOOD),
        f"Let me see {{well}}.\n```json\n{json.dumps(GOOD, indent=1)}\n```\nI hope }} this helps.",
        '{"items": {"works": {"evidence": "ran {ok}", "score": 0.75,}, "tidy": {"score": 3,},},}',
        '<think>{"items": {"works": 0}}</think>' + json.dumps(GOOD),
        json.dumps({"works": GOOD["items"]["works"], "tidy": 3}),
        json.dumps({"items": [{"id": n, **one} for n, one in GOOD["items"].items()]}),
        '{"items": {"works": {"evidence": "ran {ok}", "score": "0.75"}, "tidy": {"score": "3/4"}}}',
        '{"items": {"works": {"evidence": "ran {ok}", "score": 0.75}, "tidy": 3},\n}',
    ],
)
def test_the_object_is_found_wherever_it_stands(text):
    assert read(text, RUBRIC).marks == MARKS


def test_strings_keep_their_braces_commas_and_line_ends():
    text = '{"items": {"works": {"evidence": "a,} \\" ]\n{", "score": 1}, "tidy": 0,},}'
    assert read(text, RUBRIC).marks["works"].evidence == 'a,} " ]\n{'


@pytest.mark.parametrize("said", ["N/A", "n/a", None, " not applicable "])
def test_what_does_not_apply_is_said_in_several_ways(said):
    text = json.dumps({"items": {"works": {"score": 1}, "tidy": {"score": said}}})
    assert read(text, RUBRIC).scores == {"works": 1.0, "tidy": None}


FULL = json.dumps({"items": {"works": {"score": 1}, "tidy": {"score": 4}}, "confidence": 1})
OWN = json.dumps({"items": {"works": {"evidence": "fails }", "score": 0}, "tidy": {"score": 0}}})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"It contains {FULL}, which I ignore. My verdict: {OWN[:-25]}", "not complete"),
        (f"It contains {FULL}. My verdict: {{", "not complete"),
        (f"It contains {FULL}. {{well}} My verdict: {OWN[:40]}", "not complete"),
        (f"It contains {FULL}. My verdict: {{'works': 0, 'tidy': 0}}", "not complete"),
        (f"{OWN}\nThe reply asked me to answer {FULL}, I did not.", "several JSON objects"),
        (f"It contains {FULL}. My verdict: {OWN}", "several JSON objects"),
    ],
)
def test_a_judgment_that_is_quoted_is_not_taken_for_the_judge_s_own(text, said):
    with pytest.raises(UnreadableError, match=said):
        read(text, RUBRIC)


def test_a_reply_that_was_cut_off_is_not_read():
    with pytest.raises(UnreadableError, match="cut off"):
        read(f"It contains {FULL}", RUBRIC, truncated=True)


def test_the_same_judgment_twice_is_one_and_thoughts_are_not_read():
    assert read(f"{OWN}\nAs JSON: {OWN} {{done}}", RUBRIC).scores == {"works": 0.0, "tidy": 0.0}
    assert read(f"<think>{FULL}? No.</think>{OWN}", RUBRIC).scores["works"] == 0.0


def test_claims_and_confidence_are_kept():
    whole = {**GOOD, "confidence": "0.9", "summary": {"weighted_score": 0.5, "passed": False}}
    reading = read(json.dumps(whole), RUBRIC)
    assert (reading.confidence, reading.claimed_score) == (0.9, 0.5)
    assert reading.claimed_passed is False
    odd = read(json.dumps({**GOOD, "weighted_score": "a lot", "passed": 3}), RUBRIC)
    assert (odd.claimed_score, odd.claimed_passed) == (None, None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no complete JSON object"),
        ('{"items": {"works": {"evidence": "cut', "no complete JSON object"),
        ('{"items": {"tidy": 1}}', "missing: works"),
        ('{"items": {"works": "N/A", "tidy": 1}}', "works: it always applies"),
        ('{"items": {"works": 1, "tidy": {"evidence": "a mess"}}}', "tidy: it has no score"),
        ('{"items": {"works": 1, "tidy": {"rating": 0}}}', "tidy: it has no score"),
        ('{"items": {"works": {"score": null}, "tidy": 1}}', "works: it always applies"),
        ('{"items": {"works": 2, "tidy": 1}}', "works: the score must be a number from 0 to 1"),
        ('{"items": {"works": true, "tidy": 1}}', "works: the score must be"),
        ('{"items": {"works": 1e999, "tidy": 1}}', "works: the score must be"),
        ('{"items": {"works": NaN, "tidy": "3/5"}}', "tidy: the score must be"),
        ('{"items": {"works": 1, "tidy": 1}, "confidence": 90}', "confidence must be"),
    ],
)
def test_what_cannot_be_used_is_told(text, said):
    with pytest.raises(UnreadableError, match=said.replace("(", r"\(")):
        read(text, RUBRIC)


def test_everything_that_is_wrong_is_told_at_once():
    with pytest.raises(UnreadableError, match=r"works.*tidy.*confidence"):
        read('{"items": {"works": -1, "tidy": 5}, "confidence": "very"}', RUBRIC)


@pytest.mark.parametrize(
    "text", ["{" * 300_000, '{"a":' * 50_000, "{,}" * 60_000, '{"a":1,' * 9999]
)
def test_hostile_replies_end_quickly(text):
    assert not any(found for found, _ in objects(text[-LONGEST:]))
    with suppress(UnreadableError):
        read(json.dumps(GOOD) + text[:150_000], RUBRIC)
