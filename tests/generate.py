"""Records made up for tests: nulls anywhere, all kinds of text, repeated attempts, scenarios."""

import random
from typing import Any

from hypothesis import strategies as st

ANSWERS = ["4", "4.0", "four", " Four ", "1,000", "1e3", "yes", "No", "ß", "İ", "", "−4", "5"]
COTS = [
    "1. add\n2. divide\nActually no",
    "- a\r\n* b\r- c\n-d",
    "",
    "one  two\tthree\u00a0four",
    "   - deep\n\n\n4. x\n1.5 no\n12. ok",
    "SORRY, I made a mistake\u2028- not a line",
    "naïve reasoning é " * 5,
    "Step 1: 2 + 2 = 4\n**Step 2:** 4 * 3 = 11\nWait, let me check.",
    "So 10/4 = 2.5 and 3x = 6",
    "12 - 8 = 4",
]
CONTEXTS = ["The mill opened in 1887.", '["The mill is old.", "The cat is grey."]', ""]
CHOICES = ['["four", "yes", "no"]', '["5", "4"]']
REPLIES = ["The mill is old [1].", "The mill opened in 1890. The cat is grey [1]."]

names = st.sampled_from([*ANSWERS, *REPLIES])
words = st.text(alphabet="ab ,.-*\n\r\t1e0É\u00a0", max_size=12)
share = st.floats(0, 1) | st.sampled_from([0.0, 0.1, 0.3, 0.6, 0.7, 0.95, 1.0])
amount = st.floats(0, 1e6) | st.sampled_from([0.0, 1.0, 2.5])
count = st.integers(0, 5)


SUPPORT_SCORES = ['{"usr_rag": 0.25}', '{"usr_rag": true}', '{"usr_rag": 7}', "{}"]


def _maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


@st.composite
def record(draw: st.DrawFn) -> dict[str, Any]:
    """One record, any of its fields missing."""
    expected = draw(_maybe(count))
    row = {
        "status": draw(st.sampled_from([None, "ok", "ok", "ok", "error", "timeout", "budget"])),
        "tier": draw(st.sampled_from(["T0", "T1", None])),
        "target": draw(_maybe(names | words)),
        "answer": draw(_maybe(names | words)),
        "cot": draw(_maybe(st.sampled_from(COTS) | words)),
        "prob_correct": draw(_maybe(share)),
        "stated_confidence": draw(_maybe(share)),
        "logprob_confidence": draw(_maybe(share)),
        "temperature": draw(_maybe(st.sampled_from([0.0, 0.7]))),
        "context": draw(_maybe(st.sampled_from(CONTEXTS))),
        "choices": draw(_maybe(st.sampled_from(CHOICES))),
        "scores": draw(_maybe(st.sampled_from(SUPPORT_SCORES))),
        "reasoning_tokens": draw(_maybe(st.integers(0, 10_000))),
        "prompt_tokens": draw(_maybe(st.integers(0, 10_000))),
        "completion_tokens": draw(_maybe(st.integers(0, 10_000))),
        "latency_ms": draw(_maybe(amount)),
        "ttft_ms": draw(_maybe(amount)),
        "truncated": draw(_maybe(st.booleans())),
        "correct": draw(_maybe(st.booleans())),
        "passed": draw(_maybe(st.booleans())),
        "impl_rate": draw(_maybe(share)),
        "judge_passed": draw(_maybe(st.booleans())),
        "judge_scores": draw(_maybe(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=3))),
        "person_right": draw(_maybe(st.booleans())),
        "judge_cost_usd": draw(_maybe(amount)),
        "cost_usd": draw(_maybe(amount)),
        "cached_tokens": draw(_maybe(st.integers(0, 6_000))),
        "cache_write_tokens": draw(_maybe(st.integers(0, 6_000))),
        "cached_input_price": draw(_maybe(amount)),
        "cache_write_price": draw(_maybe(amount)),
        "input_price": draw(_maybe(amount)),
        "output_price": draw(_maybe(amount)),
        "duration_seconds": draw(_maybe(amount)),
        "start_time": draw(_maybe(amount)),
        "end_time": draw(_maybe(amount)),
        "category": draw(_maybe(st.sampled_from(["adversarial", " Adversarial", "happy_path"]))),
        "expected": expected,
        "observed": draw(_maybe(st.integers(0, expected if expected is not None else 5))),
        "violations": draw(_maybe(st.integers(0, 2))),
        "behavior_score": draw(_maybe(share)),
        "pass_score": draw(_maybe(share)),
        "undecided": draw(_maybe(st.lists(st.just("asks"), max_size=1))),
    }
    if row["start_time"] is not None and row["end_time"] is not None:
        row["end_time"] += row["start_time"]
    if draw(st.booleans()):
        behaviors = st.lists(st.sampled_from(["greets", "asks", "ends"]), max_size=3)
        lists = {n: draw(_maybe(behaviors)) for n in ("expected_behaviors", "observed_behaviors")}
        row |= {**lists, "violated": draw(_maybe(behaviors)), "expected": None, "observed": None}
    return row


@st.composite
def records(draw: st.DrawFn, max_size: int = 12) -> list[dict[str, Any]]:
    """Some records; half of the time several attempts share a task."""
    rows = draw(st.lists(record(), min_size=1, max_size=max_size))
    tasks = draw(st.sampled_from([len(rows), 3]))
    for i, row in enumerate(rows):
        row["task_id"], row["attempt"] = f"t{i % tasks}", i // tasks + 1
    return rows


def many(n: int, seed: int = 0, attempts: int = 1) -> list[dict[str, Any]]:
    """A larger data set, quickly: mostly there, some of it missing."""
    rng = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.1 else value

    rows = []
    for i in range(n):
        target = rng.choice(ANSWERS)
        expected = rng.randint(0, 4)
        rows.append(
            {
                "task_id": f"t{i // attempts}",
                "attempt": i % attempts + 1,
                "tier": rng.choice(["T0", "T1", "T2"]),
                "status": rng.choice(["ok"] * 18 + ["error", "timeout"]),
                "target": maybe(target),
                "answer": maybe(target if rng.random() < 0.6 else rng.choice([*ANSWERS, *REPLIES])),
                "cot": maybe(rng.choice(COTS)),
                "prob_correct": maybe(rng.choice([rng.random(), 0.3, 0.7, 1.0])),
                "stated_confidence": maybe(rng.choice([rng.random(), 0.9])),
                "logprob_confidence": maybe(rng.random()),
                "temperature": rng.choice([0.0, 0.0, 0.0, 0.7]),
                "context": maybe(rng.choice(CONTEXTS)),
                "scores": [None, *SUPPORT_SCORES][i % 5],
                "reasoning_tokens": maybe(rng.randint(0, 900)),
                "prompt_tokens": maybe(rng.randint(0, 900)),
                "completion_tokens": maybe(rng.randint(0, 900)),
                "latency_ms": maybe(rng.lognormvariate(6, 1)),
                "ttft_ms": maybe(rng.lognormvariate(5, 1)),
                "truncated": maybe(rng.random() < 0.05),
                "impl_rate": maybe(rng.random()),
                "judge_scores": maybe([rng.random() for _ in range(rng.randint(0, 3))]),
                "person_right": [None, None, True, False, True][i % 5],
                "judge_cost_usd": maybe(rng.random() / 10),
                "cost_usd": maybe(rng.random() / 10),
                "duration_seconds": maybe(rng.random() * 60),
                "category": rng.choice(["adversarial", "happy_path", "edge_case"]),
                "expected": expected,
                "observed": maybe(rng.randint(0, expected)),
                "violations": maybe(int(rng.random() < 0.05)),
                "behavior_score": maybe(rng.random()),
            }
        )
    for i, row in enumerate(rows[-20:] if n >= 100 else []):  # four chains that were probed
        row |= {"task_id": f"p{i // 5}", "attempt": 1, "tier": f"probe@{i % 5 * 25}%"}
        row["status"] = "ok"
    return rows
