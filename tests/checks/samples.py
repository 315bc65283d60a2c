"""Behaviours and a record to check them on."""

import json

from pennyweight.checks.attempt import AttemptView
from pennyweight.checks.behaviour import NOT, read_behaviour

CALLS = json.dumps(
    [
        {"id": "1", "name": "lookup_order", "arguments": '{"order_id": "A-1", "n": 2}'},
        {"id": "2", "name": "refund", "arguments": "not JSON: A-1"},
    ]
)


DIFF = "\n".join(
    [
        "--- /dev/null",
        "+++ b/src/new.py",
        "@@ -0,0 +1,2 @@",
        "+import os",
        "+--- a/looks like a header",
        "--- a/old.txt",
        "+++ b/old.txt",
        "@@ -3,2 +3,2 @@",
        " kept",
        "-before",
        "+after",
        "--- a/gone.txt",
        "+++ /dev/null",
        "@@ -1 +0,0 @@",
        "-x",
    ]
)


ROW = {
    "response": "<think>zebra</think>Your REFUND of 1,019.50 € is on its way.\n",
    "reasoning": "The customer is angry.",
    "tool_calls": CALLS,
    "prompt_tokens": 40,
    "completion_tokens": 12,
    "latency_ms": 1500.0,
    "cost_usd": 0.01,
    "work": json.dumps({"diff": DIFF}),
}


HOLDS = [
    {"at_least": {"share": 0.5, "parts": [{"contains": "way"}, {"contains": "giraffe"}]}},
    {"at_least": {"share": 0.6, "parts": [{"regex": "way", "weight": 2}, {"length": {"min": 99}}]}},
    {"equals": {"text": "Your REFUND of 1,019.50 € is on its way.\n", "exact": True}},
    {"starts_with": {"text": "Your R", "exact": True}},
    {"contains": "refund"},
    {"contains": {"any": ["zebra", "way"]}},
    {"contains": {"all": ["refund", "WAY"]}},
    {"contains": {"text": "REFUND", "case": True}},
    {"contains": "angry", "of": "reasoning"},
    {"starts_with": "your refund"},
    {"ends_with": {"any": ["way", "way."]}},
    {"regex": r"\bis on\b"},
    {"regex": {"all": ["^Your", r"way\.\s*$"]}},
    {"number": 1019.5},
    {"number": {"value": 1000, "tolerance": "2%"}},
    {"number": {"min": 1000, "max": 2000, "which": "every"}},
    {"length": 9},
    {"length": {"min": 20, "unit": "characters"}},
    {"latency": "1.5s"},
    {"cost": 0.01},
    {"tokens": 52},
    {"tokens": {"max": 12, "of": "completion"}},
    {"tool_called": "refund"},
    {"tool_called": {"any": ["nothing", "refund"]}},
    {"tool_called": {"all": ["lookup_order", "refund"]}},
    {"tool_args": {"tool": "lookup_order", "args": {"order_id": "A-1"}}},
    {"tool_args": {"tool": "lookup_order", "args": {"n": "2"}}},
    {"tool_args": {"tool": "refund", "contains": "a-1"}},
    {"tool_args": {"tool": "refund", "pattern": "^not"}},
    {"tool_sequence": ["lookup_order", "refund"]},
    {"tool_sequence": {"tools": ["lookup_order", "refund"], "order": "exact"}},
    {"tool_count": {"exactly": 2}},
    {"tool_count": {"max": 1, "tool": "refund"}},
    {"file_exists": "src/*.py"},
    {"file_exists": "old.txt"},
    {"file_contains": {"path": "src/new.py", "text": "import os"}},
    {"file_contains": {"path": "old.txt", "pattern": "^after$|after"}},
]


HOLDS_NOT = [
    {"at_least": {"share": 0.6, "parts": [{"contains": "way"}, {"contains": "giraffe"}]}},
    {"equals": {"text": "Your REFUND of 1,019.50 € is on its way.", "exact": True}},
    {"starts_with": {"text": "your r", "exact": True}},
    {"equals": "refund"},
    {"contains": "giraffe"},
    {"contains": {"text": "refund", "case": True}},
    {"contains": {"all": ["refund", "giraffe"]}},
    {"starts_with": "refund"},
    {"ends_with": "is"},
    {"regex": "^refund"},
    {"number": 1019},
    {"number": {"value": 1000, "tolerance": 10}},
    {"length": 5},
    {"latency": 1499},
    {"cost": 0.001},
    {"tokens": 51},
    {"json": None},
    {"choice": "B"},
    {"refusal": None},
    {"tool_called": "Refund"},
    {"tool_called": {"all": ["refund", "other"]}},
    {"tool_args": {"tool": "lookup_order", "args": {"order_id": "A-1"}, "exact": True}},
    {"tool_args": {"tool": "refund", "args": {"order_id": "A-1"}}},
    {"tool_args": {"tool": "other", "args": {}}},
    {"tool_sequence": ["refund", "lookup_order"]},
    {"tool_sequence": {"tools": ["refund"], "order": "exact"}},
    {"tool_count": 1},
    {"file_exists": "gone.txt"},
    {"file_exists": "a/looks like a header"},
    {"file_contains": {"path": "src/new.py", "text": "import sys"}},
]


CANNOT_SAY = [
    ({"latency": 5}, {"response": "x"}),
    ({"cost": 5}, {"response": "x"}),
    ({"tokens": 5}, {"response": "x", "prompt_tokens": 1}),
    ({"file_exists": "a"}, {"response": "x"}),
    ({"file_contains": {"path": "old.txt", "text": "elsewhere"}}, ROW),
    ({"judge_score": 0.5}, {"response": "x"}),
    ({"judge": "It is kind."}, {"response": "x"}),
    ({"human": "Is it kind?"}, {"response": "x"}),
    ({"undecided": "python: file://check.py"}, {"response": "x"}),
    ({"python": "builtins:bool"}, {"response": "x"}),
]


def verdict(behaviour, row=ROW):
    return read_behaviour(behaviour).verdict(AttemptView(row), {})


def opposite(behaviour):
    (key, value) = next((k, v) for k, v in behaviour.items() if k not in {"of", "name"})
    return {**{k: v for k, v in behaviour.items() if k != key}, NOT + key: value}
