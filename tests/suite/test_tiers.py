"""Tiers and what they extend."""

from pennyweight.suite.loader import load_suite
from suite.problems import MINIMAL


def test_tiers_take_over_and_take_away(write):
    text = MINIMAL.format(tasks="[q]") + (
        "system: S\nprompt: 'P {{ input }}'\n"
        "tiers:\n  T0:\n  T1: {system: null}\n  T2: {extends: T1, prompt: Q}\n"
        "  T3: {messages: [{role: user, content: M}]}\n  T4: {extends: T3, prompt: R}\n"
    )
    tiers = load_suite(write(text)).tiers
    assert [(t.system, t.prompt if not t.messages else "") for t in tiers] == [
        ("S", "P {{ input }}"), (None, "P {{ input }}"), (None, "Q"), ("S", ""), ("S", "R"),
    ]  # fmt: skip
