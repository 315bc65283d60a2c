"""Every check: what holds, what does not, what cannot be said, and where the evidence stands."""

import doctest
import importlib
import json
import re
from pathlib import Path

import polars as pl
import pytest

from checks.samples import CANNOT_SAY, HOLDS, HOLDS_NOT, opposite, verdict
from pennyweight.checks import CHECKS, FAMILIES
from pennyweight.checks.declaration import check
from pennyweight.errors import DeclarationError


@pytest.mark.parametrize("behaviour", HOLDS, ids=str)
def test_it_holds_and_its_opposite_does_not(behaviour):
    assert verdict(behaviour).holds is True, verdict(behaviour)
    assert verdict(opposite(behaviour)).holds is False


@pytest.mark.parametrize("behaviour", HOLDS_NOT, ids=str)
def test_it_does_not_hold_and_its_opposite_does(behaviour):
    assert verdict(behaviour).holds is False, verdict(behaviour)
    assert verdict(opposite(behaviour)).holds is True


@pytest.mark.parametrize(("behaviour", "row"), CANNOT_SAY, ids=str)
def test_what_cannot_be_said_cannot_be_denied_either(behaviour, row):
    for one in (behaviour, opposite(behaviour)):
        found = verdict(one, row)
        assert (found.holds, found.error) == (None, False)
        assert found.why


@pytest.mark.parametrize("name", CHECKS)
def test_the_example_on_its_page_is_true(name, request):
    one = CHECKS[name]
    if name == "similarity":
        request.getfixturevalue("sentence_model")
    module = vars(importlib.import_module(one.function.__module__))
    test = doctest.DocTestParser().get_doctest(one.example, dict(module), name, None, 0)
    assert test.examples
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0
    assert one.summary.endswith(".")
    assert one.family in FAMILIES


@pytest.mark.parametrize("name", CHECKS)
def test_every_check_is_tried_on_both_sides(name):
    tried = [k for b in (*HOLDS, *HOLDS_NOT, *(b for b, _ in CANNOT_SAY)) for k in b]
    assert name in {*tried, "command", "similarity"}


def test_evidence_says_where_in_characters():
    row = {"response": "Grüße an Ann: the Refund was sent."}
    (found,) = verdict({"contains": "refund"}, row).evidence
    assert row["response"][found.start : found.end] == found.text == "Refund"
    (found,) = verdict({"regex": "s[a-z]+t"}, row).evidence
    assert row["response"][found.start : found.end] == found.text == "sent"
    found = verdict({"number": {"min": 0, "which": "every"}}, {"response": "–5 or 7 or 7"}).evidence
    assert [(f.text, f.start) for f in found] == [("5", 1), ("7", 6), ("7", 11)]


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*a){12}$", "(?:a?){50}a{50}b"])
def test_no_pattern_can_hang_a_run(pattern):
    """By backtracking, this would not end before the universe does."""
    hostile = {"response": "a" * 100_000 + "!"}
    assert verdict({"regex": pattern}, hostile).holds is False
    assert verdict({"not_regex": {"any": [pattern, pattern + "c"]}}, hostile).holds is True
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(a+)+$"}}}
    said = {"response": json.dumps({"a": hostile["response"]})}
    assert verdict({"json": {"schema": schema}}, said).holds is False


@pytest.mark.parametrize(
    ("behaviour", "row", "why"),
    [
        ({"length": 5}, {"response": "Yes."}, "1 word."),
        ({"tokens": 5}, {"prompt_tokens": 1, "completion_tokens": 0}, "1 token (total)."),
        ({"tool_count": 5}, {"tool_calls": '[{"name": "find"}]'}, "1 call of any tool."),
    ],
    ids=str,
)
def test_one_of_something_is_singular(behaviour, row, why):
    assert verdict(behaviour, row).why == why


def test_a_check_is_declared_with_an_example_and_known_kinds():
    with pytest.raises(DeclarationError, match="example"):

        @check()
        def nothing(seen):
            """Without an example."""

    with pytest.raises(DeclarationError, match="kind"):

        @check()
        def odd(seen, value: int):
            """With a kind that is not known.

            >>> 1
            1
            """


def test_checks_see_what_a_whole_frame_shows():
    frame = pl.DataFrame({"response": ["yes", None, "<think>yes</think>no"]})
    found = [verdict({"contains": "yes"}, row).holds for row in frame.iter_rows(named=True)]
    assert found == [True, False, False]


def test_the_guide_lists_every_check_once():
    page = Path(__file__).parents[2] / "docs" / "checks.md"
    rows = [line for line in page.read_text().splitlines() if line.startswith("| ")][2:]
    assert sorted(re.findall(r"`(\w+)`", "\n".join(rows))) == sorted(CHECKS)
