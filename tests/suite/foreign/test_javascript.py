"""Assertions in JavaScript as checks."""

from __future__ import annotations

from pennyweight.suite.foreign.javascript import as_checks


def test_capitals_in_a_text_without_any_are_no_check() -> None:
    assert as_checks("output.toLowerCase().includes('sorry')") == [{"contains": "sorry"}]
    assert as_checks("output.toLowerCase().includes('Sorry')") is None
    assert as_checks("!output.toLowerCase().includes('Sorry')") is None
