"""Scenarios: which behaviours cannot be observed, and replies that do what is forbidden."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pennyweight.checks.behaviour import NOT, Behaviour
from pennyweight.checks.scenario import Scenario
from pennyweight.checks.search import find_refusal
from pennyweight.soundness.replies import REFUSAL
from pennyweight.soundness.trial import Trial
from pennyweight.suite.values import LoadedSuite, Task
from pennyweight.text.pattern_example import example

LONG_WORDS = 5_000
"""Words of a reply that is longer than any limit is meant to allow."""
_LONG = " ".join(f"word{n % 97}" for n in range(LONG_WORDS))
MANY_CALLS = 50
REFUSED = re.compile(
    r"(?i)\b(?:sorry|can ?not|can['’]?t|unable|not able|declin|refus|(?:do not|don['’]?t|not) know"
    r"|not allowed|unknown|unanswerable|no answer|not enough)"
)
"""Words that ask for a refusal, in a target or in what is expected."""
OPEN = frozenset({"adversarial", "edge_case", "error_case", "regression"})
"""Categories of scenarios in which a refusal may be right."""
_TEXTS = ("contains", "equals", "starts_with", "ends_with", "word")
_PATTERNS = ("regex", "matches")


def literals(behaviour: Behaviour) -> Iterator[str]:
    """Yield texts that a behaviour looks for, such as that of `contains`."""
    name, value = behaviour.check.name, behaviour.value
    table = value if isinstance(value, Mapping) else {"text": value}
    for key in ("text", "any", "all", "pattern"):
        given = table.get(key)
        for one in given if isinstance(given, list) else [given]:
            if isinstance(one, str):
                written = example(one) if name in _PATTERNS or key == "pattern" else one
                if written:
                    yield written


def may_be_refused(task: Task) -> bool:
    """Whether a refusal may be the right reply to a task."""
    if task.target is not None:
        return bool(REFUSED.search(task.target) or find_refusal(task.target))
    if task.category in OPEN:
        return True
    scenario = task.scenario or Scenario()
    leaves = [b for role, b in scenario.leaves() if role != "must_not" and not b.problem]
    return any(
        b.check.name == "refusal" or any(REFUSED.search(text) for text in literals(b))
        for b in leaves
        if not b.key.startswith(NOT)
    )


def forbidden(scenario: Scenario) -> list[Behaviour]:
    """Return the behaviours that an attempt must not show."""
    return [b for role, b in scenario.leaves() if (role == "must_not") != b.key.startswith(NOT)]


def violations(task: Task) -> list[Trial]:
    """Return replies that do what a scenario forbids, as far as that can be written."""
    scenario = task.scenario or Scenario()
    texts = ["", REFUSAL]
    calls: list[Mapping[str, Any]] = []
    for one in forbidden(scenario):
        if one.problem or one.check.by != "record":
            continue
        texts += literals(one)
        calls += _calls(one)
    calls += [{"name": "audit", "arguments": "{}"}] * MANY_CALLS
    words = " ".join([*texts, _LONG])
    several = [Trial(task, "scenario", text) for text in dict.fromkeys(texts)]
    return [*several, Trial(task, "scenario", words, tuple(calls), is_costly=True)]


def _calls(behaviour: Behaviour) -> Iterator[Mapping[str, Any]]:
    """Yield calls of the tools that a behaviour names."""
    value = behaviour.value
    if not behaviour.check.name.startswith("tool"):
        return
    table = value if isinstance(value, Mapping) else {"tool": value}
    arguments = table.get("args") if isinstance(table.get("args"), Mapping) else {}
    for key in ("tool", "any", "all"):
        given = table.get(key)
        for name in given if isinstance(given, list) else [given]:
            if isinstance(name, str):
                yield {"name": name, "arguments": json.dumps(arguments)}


def unobservable(suite: LoadedSuite, task: Task) -> Iterator[str]:
    """Yield why something that is expected of a task can never be observed."""
    scenario = task.scenario
    if scenario is None:
        return
    for one in scenario.expected:
        for leaf in one.leaves():
            why = _cannot(suite, leaf)
            if why:
                yield f"{one.name!r} cannot be observed: {why}"
        for other in scenario.must_not:
            if _contradicts(one, other):
                yield f"{one.name!r} is expected, and {other.name!r} is forbidden"


def _cannot(suite: LoadedSuite, behaviour: Behaviour) -> str:
    if behaviour.problem or behaviour.key.startswith(NOT) or not suite.subjects:
        return ""
    family = behaviour.check.family
    if family == "files" and not any(subject.agent for subject in suite.subjects):
        return "only agents have files, and the suite has none."
    if family != "tools" or behaviour.check.name == "tool_count" or task_has_tools(suite):
        return ""
    return "no subject has tools."


def task_has_tools(suite: LoadedSuite) -> bool:
    """Whether a subject may call tools: functions and agents may bring their own."""
    own = ("python:", "replay:")
    if any(s.agent or s.model.startswith(own) for s in suite.subjects):
        return True
    of_sides = [*(s.settings for s in suite.subjects), *(t.settings for t in suite.tiers)]
    names = ("tools", "extra", "mcp_servers")
    return any(one.get(name) for one in (suite.settings, *of_sides) for name in names)


def _contradicts(expected: Behaviour, other: Behaviour) -> bool:
    """Whether what is expected cannot be shown without what is forbidden."""
    if expected.mark == other.mark:
        return expected.key == other.key
    names = (expected.key, other.key)
    if names != ("contains", "contains") or expected.of != other.of:
        return False
    table = expected.value if isinstance(expected.value, Mapping) else {"text": expected.value}
    needed = [table["text"]] if isinstance(table.get("text"), str) else table.get("all") or []
    banned = other.value if isinstance(other.value, Mapping) else {"text": other.value}
    if banned.get("case") or banned.get("all"):
        return False
    found = [banned["text"]] if isinstance(banned.get("text"), str) else banned.get("any") or []
    return any(
        isinstance(n, str) and isinstance(b, str) and b.casefold() in n.casefold()
        for n in needed
        for b in found
    )
