"""Seeded files of records, one for each situation that an output must tell the truth about."""

import json
from pathlib import Path
from random import Random

COSTS = (0.004, 0.007, 0.011)


def attempts(sides, tasks, runs=1, rates=(0.5, 0.7, 0.85), seed=1):
    """Give records of sides that differ in how often they are right, what they cost and take."""
    draw = Random(f"{seed}/{len(sides)}/{tasks}/{runs}")
    hardness = [draw.gauss(0, 0.2) for _ in range(tasks)]
    for place, (subject, tier) in enumerate(sides):
        rate = rates[place % len(rates)]
        for task, easier in enumerate(hardness):
            for attempt in range(1, runs + 1):
                right = draw.random() < min(0.97, max(0.03, rate + easier))
                words = draw.randint(3, 9)
                yield {
                    "task_id": f"q{task:03}",
                    "subject": subject,
                    "tier": tier,
                    "attempt": attempt,
                    "input": f"What is {task} plus {task + 1}?",
                    "target": str(2 * task + 1),
                    "answer": str(2 * task + (1 if right else 2)),
                    "cot": " ".join(["step"] * words),
                    "prob_correct": round(draw.betavariate(4, 2), 3),
                    "prompt_tokens": 40,
                    "completion_tokens": 5 + words,
                    "latency_ms": round(draw.lognormvariate(6, 0.4), 1),
                    "cost_usd": round(COSTS[place % 3] * draw.lognormvariate(0, 0.2), 6),
                }


def tiers(count):
    return [("model-a", f"T{number}") for number in range(count)]


def models(count):
    return [(f"model-{number:02}", "T0") for number in range(count)]


def with_errors(records, side, every):
    """Turn each n-th record of a side into an error that cost something."""
    for number, record in enumerate(records):
        if (record["subject"], record["tier"]) == side and number % every == 0:
            kept = {k: record[k] for k in ("task_id", "subject", "tier", "attempt", "input")}
            yield kept | {"status": "error", "error": "503 overloaded", "cost_usd": 0.001}
        else:
            yield record


def equal(records):
    """Give both tiers the same results."""
    first = {}
    for record in records:
        key = record["task_id"], record["attempt"]
        yield {**record, "answer": first.setdefault(key, record["answer"])}


def judged(records):
    draw = Random(3)
    for record in records:
        score = round(draw.random(), 2)
        bare = {k: v for k, v in record.items() if k not in {"target", "answer", "prob_correct"}}
        yield {**bare, "response": "A reply.", "impl_rate": score, "judge_passed": score >= 0.5}


def agents(records):
    draw = Random(4)
    for record in records:
        bare = {k: v for k, v in record.items() if k not in {"target", "answer", "prob_correct"}}
        late = draw.random() < 0.1
        yield {
            **bare,
            "passed": not late and draw.random() < 0.6,
            "status": "timeout" if late else "ok",
            "duration_seconds": round(draw.uniform(10, 60), 1),
        }


def labels(records):
    draw = Random(5)
    for record in records:
        target = draw.choice(["spam", "ham", "ham"])
        answer = target if draw.random() < 0.8 else draw.choice(["spam", "ham"])
        yield {**record, "target": target, "answer": answer}


def write(folder: Path) -> None:
    """Write all files."""
    three = list(attempts(tiers(3), 40, runs=3))
    files = {
        "one_side": attempts(tiers(1), 60),
        "two_sides": attempts(tiers(2), 60, rates=(0.4, 0.8)),
        "close": attempts(tiers(2), 30, rates=(0.6, 0.65)),
        "three_sides": three,
        "nine_sides": attempts(models(9), 30),
        "many_sides": attempts([(m, t) for m, _ in models(9) for t in "ABCD"], 12),
        "few_errors": with_errors(attempts(tiers(2), 60, rates=(0.4, 0.9)), ("model-a", "T1"), 29),
        "many_errors": with_errors(attempts(tiers(2), 60, rates=(0.5, 0.7)), ("model-a", "T1"), 2),
        "only_errors": with_errors(attempts(tiers(1), 5), ("model-a", "T0"), 1),
        "ties": equal(attempts(tiers(2), 20)),
        "one_record": attempts(tiers(1), 1),
        "judged": judged(attempts(tiers(2), 40)),
        "agents": agents(attempts(tiers(2), 30, runs=2)),
        "labels": labels(attempts(tiers(2), 50)),
        "models_and_tiers": attempts([(m, t) for m, _ in models(2) for t in ("T0", "T1")], 25),
    }
    for name, records in files.items():
        text = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(text, "utf-8")
    (folder / "policy.yaml").write_text(
        "thresholds:\n"
        "  blocking: {accuracy: '>= 60%', cost_usd_mean: '< 0.005'}\n"
        "  warning: {latency_p95_ms: '< 600ms'}\n"
        "gates:\n"
        "  - {metric: accuracy, threshold: '>= 60%', on: confident}\n",
        "utf-8",
    )
