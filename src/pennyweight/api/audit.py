"""Audit: is an exam sound? The right replies pass, and nothing else does."""

from __future__ import annotations

from typing import Unpack

from pennyweight.engine.execution import open_suite
from pennyweight.soundness.audit import Audit
from pennyweight.soundness.examination import Examination
from pennyweight.suite.definition import GivenSuite
from pennyweight.suite.narrowing import Narrowing, NarrowingOptions


def audit(suite: GivenSuite, **options: Unpack[NarrowingOptions]) -> Audit:
    """Examine a suite before any model is called.

    Replies that are known to be right or wrong are scored as those of a run would be: the target of
    each task must pass; an empty reply, the prompt itself, a refusal and the answers of other tasks
    must fail. `suite` and `options` are those of `run`. What was not checked is counted.

    >>> tasks = [{"id": "a", "input": "2 + 2?", "target": "4"}]
    >>> audit({"tasks": tasks, "subjects": ["python:builtins:str"], "answer": "last_line"}).is_sound
    True
    """
    chosen = open_suite(suite, narrowing=Narrowing.of(**options), keyless=True)
    return Examination(chosen, chosen.tasks).audit()
