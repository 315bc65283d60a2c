"""Any check is an assertion of a plain test."""

import pytest

from pennyweight import Reply, assert_that
from pennyweight.errors import UsageError

RECORD = {"run": "20260101-a1b2", "input": "Where is my order?", "response": '{"state": "sent"}'}


def test_checks_that_hold_say_nothing():
    assert_that("We refund you.", contains="refund", not_contains="sorry", length={"max": 80})
    assert_that(RECORD, json={"path": "$.state", "equals": "sent"}, python="builtins:bool")
    assert_that({"text": "what ask returns"}, starts_with="what")
    assert_that(Reply("Paris"), contains="Paris")


def test_a_failure_shows_the_prompt_the_reply_and_the_run():
    with pytest.raises(AssertionError) as failure:
        assert_that(RECORD, contains="refund", not_contains="sent", starts_with="{")
    assert str(failure.value).splitlines() == [
        "contains: refund: Not found: 'refund'.",
        "not_contains: sent: 'sent' is in it.",
        "prompt: Where is my order?",
        'reply: {"state": "sent"}',
        "run: 20260101-a1b2",
    ]
    with pytest.raises(AssertionError, match="prompt: Hi\nreply: Ho\nrun: r1"):
        assert_that("Ho", prompt="Hi", run="r1", equals="Hi")


def test_a_reply_that_is_missing_holds_nothing():
    with pytest.raises(AssertionError, match=r"reply: \(none\)"):
        assert_that({"response": None}, contains="x")


def test_what_is_no_check_is_told():
    with pytest.raises(UsageError, match="Did you mean 'contains'"):
        assert_that("x", contians="x")
    with pytest.raises(UsageError, match="only a judge can decide it"):
        assert_that("x", judge="It is polite.")
    with pytest.raises(UsageError, match="at least one check"):
        assert_that("x")
