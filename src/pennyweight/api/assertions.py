"""Use any check as an assertion, in a plain test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pennyweight.checks.attempt import AttemptView
from pennyweight.checks.behaviour import read_behaviour
from pennyweight.errors import UsageError
from pennyweight.models.model import Reply
from pennyweight.text.safe import clean

MAX_SHOWN_CHARACTERS = 2_000
_ASKED = {"judge": "a judge", "person": "a person"}


def assert_that(
    reply: str | Mapping[str, Any] | Reply,
    *,
    prompt: str | None = None,
    run: str | None = None,
    of: str = "response",
    **checks: Any,
) -> None:
    """Raise AssertionError unless every check holds of a reply.

    `reply` is a text, what `ask` returned, or a record. The checks are those of suites, also with
    `not_` before them: `contains="refund"`, `json={"path": "$.order"}`, `not_refusal=True`. `of`
    selects the text, as in a suite. A failure shows the prompt, the reply and the id of the run,
    which a record has and which can be given for a text.

    >>> assert_that("We refund you.", contains="refund", not_contains="sorry")
    >>> assert_that("No.", prompt="May I?", starts_with="Yes")
    Traceback (most recent call last):
    AssertionError: starts_with: Yes: Not found: 'Yes'.
    prompt: May I?
    reply: No.
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    row = _row(reply)
    if not checks:
        raise UsageError("Name at least one check, such as contains='refund'.")
    failed = []
    for name, value in checks.items():
        behaviour = read_behaviour({name.rstrip("_"): value, "of": of})
        if asked := _ASKED.get(behaviour.check.by):
            raise UsageError(f"{name}: only {asked} can decide it; use it in a suite.")
        view = AttemptView(row)
        by_code = behaviour.check.by == "code"
        result = behaviour.verdict(view, {behaviour.mark: behaviour.run(view)} if by_code else {})
        if not result.holds:
            failed.append(f"{behaviour.name}: {result.why}")
    if failed:
        told = {
            "prompt": prompt or row.get("input"),
            "reply": "(none)" if row.get("response") is None else row["response"],
            "run": run or row.get("run"),
        }
        shown = [f"{name}: {_shown(text)}" for name, text in told.items() if text]
        raise AssertionError("\n".join([*failed, *shown]))


def _row(reply: str | Mapping[str, Any] | Reply) -> Mapping[str, Any]:
    """Return a reply as the fields of a record."""
    if isinstance(reply, str):
        return {"response": reply}
    if isinstance(reply, Reply):
        reply = reply.plain()
    return {**reply, "response": reply.get("response", reply.get("text"))}


def _shown(text: Any) -> str:
    shown = clean(str(text))
    cut = len(shown) > MAX_SHOWN_CHARACTERS
    return f"{shown[:MAX_SHOWN_CHARACTERS]}…" if cut else shown
