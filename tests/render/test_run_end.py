"""How runs end, in sentences."""

import pytest

from pennyweight.engine.ending import (
    AccountClosed,
    CallTooLarge,
    ClosedBecause,
    EndKind,
    GivenUp,
    Limit,
    LimitReached,
    RunEnd,
    StopReason,
    TakenOver,
)
from pennyweight.engine.resume import ResumePlan
from pennyweight.render.run_end import (
    difference_sentences,
    end_sentences,
    retry_sentence,
    stop_sentence,
)


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        (LimitReached(Limit.SECONDS, 60, 61.5), "Time limit reached (60 s)."),
        (LimitReached(Limit.USD, 0.5, 0.6), "Cost limit reached: $0.60 of $0.50 spent."),
        (
            LimitReached(Limit.TOKENS, 5000, 7000),
            "Token limit reached: 7,000 of 5,000 tokens used.",
        ),
        (
            LimitReached(Limit.USD, 1, 0.9, next_call=0.2),
            "Cost limit reached: $0.90 of $1.00 spent, and the next call may cost up to $0.20. A "
            "smaller max_tokens makes calls smaller.",
        ),
        (
            LimitReached(Limit.TOKENS, 900, 0, 600, 400),
            "Token limit reached: 0 of 900 tokens used, and 600 tokens reserved for calls that "
            "reported no usage and may be charged (timeouts, for example).",
        ),
        (
            CallTooLarge(Limit.TOKENS, 10, 4118, "t1"),
            "Task t1 may use 4,118 tokens, more than limits.tokens (10).",
        ),
        (
            CallTooLarge(Limit.USD, 0.01, 0.5, "t1", judging=True),
            "Judging task t1 may cost $0.50, more than limits.usd ($0.01).",
        ),
        (
            AccountClosed("KEY at example.org", ClosedBecause.LONG_WAIT, 86_400),
            "KEY at example.org asks to wait 24 h 0 min.",
        ),
        (
            AccountClosed("KEY", ClosedBecause.SILENT, 600, "Cannot connect."),
            "KEY has not answered any call for 10 min. Cannot connect.",
        ),
        (
            AccountClosed("KEY", ClosedBecause.REFUSED, 10, "No such model.", "wrong"),
            "wrong: KEY refused 10 calls in a row. No such model.",
        ),
        (TakenOver(), "Another process continued this run."),
        (
            GivenUp(),
            "This worker was silent for too long, so others have its attempts; start it again.",
        ),
    ],
)
def test_every_reason_has_its_sentence(reason: StopReason, sentence: str) -> None:
    assert stop_sentence(reason) == sentence


LIMIT = LimitReached(Limit.USD, 0.5, 0.6)
CLOSED = AccountClosed("KEY", ClosedBecause.REFUSED, 10, "The key is wrong.")


@pytest.mark.parametrize(
    ("ended", "answered", "last_error", "step"),
    [
        (RunEnd(EndKind.INTERRUPTED), 1, "", "Interrupted. Continue with: again"),
        (RunEnd(EndKind.STOPPED, LIMIT), 1, "", "Raise the limits in the suite, then: again --yes"),
        (RunEnd(EndKind.STOPPED, LIMIT), 0, "No route.", "continue with: again"),
        (RunEnd(EndKind.STOPPED, CLOSED), 1, "", "Continue later with: again"),
        (RunEnd(EndKind.INCOMPLETE), 1, "", "Retry them with: again"),
    ],
)
def test_the_next_step_follows_from_the_reason(
    ended: RunEnd, answered: int, last_error: str, step: str
) -> None:
    (sentence,) = end_sentences(ended, "again", missing=1, answered=answered, last_error=last_error)
    assert sentence.endswith(step)
    assert ("--yes" in sentence) == ("Raise" in sentence)  # a changed suite is asked about


def test_a_complete_run_has_no_next_step() -> None:
    assert not list(end_sentences(RunEnd(EndKind.DONE), "again", missing=0, answered=3))


def test_a_decided_run_has_nothing_to_continue():
    assert not list(end_sentences(RunEnd(EndKind.DECIDED), "again", missing=2, answered=3))
    ended = RunEnd(EndKind.DECIDED, LimitReached(Limit.SECONDS, 1))
    (sentence,) = end_sentences(ended, "again", missing=2, answered=3)
    assert sentence == "Time limit reached (1 s)."


def test_an_error_is_told_once() -> None:
    ended = RunEnd(EndKind.STOPPED, CLOSED)
    assert retry_sentence(ended, 2, CLOSED.error) == ""
    assert retry_sentence(ended, 1, "Down.") == (
        "1 call failed and was retried. The last error: Down."
    )


def test_a_resumed_run_says_what_it_reuses() -> None:
    found = ResumePlan(192, 0, 1, 0, 1, ("the suite's text (s.yaml)",))
    assert list(difference_sentences("r", found)) == [
        "Changed since run r began: the suite's text (s.yaml).",
        "192 attempts reused, 0 to retry, 0 still to make, 1 invalidated by changes to the suite.",
        "1 record is no longer part of the suite.",
        "Records that no longer belong to the suite are set aside: no score counts them. They "
        "count again if you restore the suite that made them.",
    ]
