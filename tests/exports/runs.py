"""A run with every kind of attempt, to export."""

import json

from pennyweight.store.store import Store
from store.samples import record, run

RULES = {
    "answer": {"kind": "last_line", "value": ""},
    "match": {"kind": "contains", "absolute": "0", "relative": "0", "separator": "",
              "each": "exact"},
    "subjects": ["lab/m", "n"], "tiers": ["T0", "T1"],
}  # fmt: skip
TURNS = [
    {"role": "user", "content": "Where is Lima?"},
    {"role": "assistant", "content": "I look.",
     "tool_calls": [{"name": "find", "arguments": '{"q": "Lima"}'}]},
    {"role": "tool", "name": "find", "content": "Peru"},
    {"role": "assistant", "content": "I think:\nIn Peru"},
]  # fmt: skip
USED = {
    "prompt_tokens": 120, "completion_tokens": 30, "cached_tokens": 100, "cache_write_tokens": 5,
    "reasoning_tokens": 11, "latency_ms": 1234.567, "duration_seconds": 1.234567,
    "cost_usd": 0.000123, "started": 1000.25, "ended": 1001.5, "input": "Which city?",
}  # fmt: skip


def filled(path) -> Store:
    """Return a store with one run: passes, failures, an error, a timeout, repeats, two sides."""
    store = Store(str(path))
    store.add_run(run(settings=RULES, status="done", ended=2.0))
    rows = []
    for subject, tier in (("lab/m", "T0"), ("lab/m", "T1"), ("n", "T0")):
        side = {"subject": subject, "tier": tier, **USED}
        rows += [
            record("a", response="So\nIt is Lima.", target="Lima", reasoning="Hm.", truncated=False,
                   logprobs='[["Lima", -0.25]]', **side),
            record("a", attempt=2, response="Hm\nRome", target="Lima", truncated=True, **side),
            record("b/ü", passed=True, response="I think:\nIn Peru", tool_calls=json.dumps(
                   TURNS[1]["tool_calls"]), work=json.dumps({"turns": TURNS}),
                   messages=json.dumps([{"role": "system", "content": "Be brief."}, TURNS[0]]),
                   category="edge_case", extra='{"level": 3}', **side),
            record("c", status="timeout", target="x", response="Not\nyet", **side),
            record("d", **side | {"status": "error", "error": "HTTP 500", "error_kind": "server",
                   "prompt_tokens": None, "completion_tokens": None, "cost_usd": None,
                   "cached_tokens": None, "cache_write_tokens": None, "reasoning_tokens": None,
                   "latency_ms": None, "duration_seconds": None}, target="x"),
            record("e", response="", **side | {"completion_tokens": None, "cost_usd": None}),
        ]  # fmt: skip
    store.write(rows, [])
    return store
