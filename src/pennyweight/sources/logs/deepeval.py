"""DeepEval."""

from __future__ import annotations

from pennyweight.sources.log_format import LogFormat
from pennyweight.sources.peek import Peek


def recognise(peek: Peek) -> bool:
    """Whether a file is a test run."""
    run = peek.inside("testRunData") if peek.has("testRunData") else peek.inside()
    if not isinstance(run, dict) or not isinstance(run.get("testCases"), list):
        return False
    case = next(iter(run["testCases"]), None)
    return "testPassed" in run or (isinstance(case, dict) and "actualOutput" in case)


FORMAT = LogFormat("deepeval", "DeepEval", recognise)
