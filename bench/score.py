"""`pennyweight score` on large files: speed relative to a plain loop, scaling, memory."""

import json
import random
import sys
import tempfile
from pathlib import Path

from bench.measure import PENNYWEIGHT, Result, spend

WORDS = (
    "the sum of both numbers is taken first and then divided by what remains so we check each "
    "part again carefully before the result is written down next to its unit"
).split()
KINDS = 20_000


def generate(path: Path, records: int) -> None:
    """Write records of about 600 bytes, with about 500 characters of reasoning each."""
    rng = random.Random(7)
    tails = [tail(rng) for _ in range(min(KINDS, records))]
    with path.open("w", encoding="utf-8") as file:
        for i in range(records):
            file.write(f'{{"task_id": "task-{i}", "tier": "T{i % 3}", {tails[i % len(tails)]}')


def tail(rng: random.Random) -> str:
    steps = []
    for k in range(rng.randint(4, 7)):
        words = " ".join(rng.choices(WORDS, k=rng.randint(12, 20)))
        steps.append(f"{k + 1}. {words}" if rng.random() < 0.8 else words)
    target = str(rng.randint(0, 3000))
    record = {
        "target": target,
        "answer": target if rng.random() < 0.7 else rng.choice(["12", "unknown", "1,204"]),
        "cot": "\n".join(steps) + (" Actually, no." if rng.random() < 0.2 else ""),
        "prob_correct": round(rng.random(), 3),
        "prompt_tokens": rng.randint(20, 400),
        "completion_tokens": rng.randint(20, 400),
        "latency_ms": round(rng.lognormvariate(6, 0.7), 2),
        "cost_usd": round(rng.random() / 100, 6),
    }
    return json.dumps(record)[1:] + "\n"


def run() -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="pennyweight-bench-") as folder:
        spent = {}
        for records in (50_000, 500_000, 5_000_000):
            path = Path(folder, f"{records}.jsonl")
            generate(path, records)
            table = [*PENNYWEIGHT, "score", str(path)]
            runs, tables, loops = [], [], []
            for _ in range(5 if records < 5_000_000 else 1):
                runs.append(spend([*table, "--format", "json"]))
                if records == 500_000:  # alternating, so that all see the machine in the same state
                    tables.append(spend(table))
                    loops.append(spend([sys.executable, "-m", "bench.plain_loop", str(path)]))
            spent[records] = best = min(runs, key=lambda s: s.seconds)
            print(
                f"{records:>9,} records, {path.stat().st_size / 1e6:,.0f} MB: "
                f"{best.seconds:.2f} s, {best.mebibytes:,.0f} MiB"
            )
            if records == 500_000:
                plain, shown = (min(s.seconds for s in each) for each in (loops, tables))
                print(f"{records:>9,} records in a plain loop: {plain:.2f} s")
                print(f"{records:>9,} records, the metrics of the table alone: {shown:.2f} s")
            path.unlink()
    small, middle, large = (s.seconds / n * 1e6 for n, s in spent.items())
    return [
        Result("score, speed relative to a plain loop", plain / shown, 2.5, " ×", True),
        Result(
            "score of every metric, speed relative to a plain loop",
            plain / spent[500_000].seconds,
            2,
            " ×",
            True,
        ),
        Result("score, memory for 500,000 records", spent[500_000].mebibytes, 1024, " MiB"),
        Result("score, memory for 5,000,000 records", spent[5_000_000].mebibytes, 2048, " MiB"),
        Result(
            "score, time per record, 500,000 relative to 50,000 records", middle / small, 1.0, " ×"
        ),
        Result(
            "score, time per record, 5,000,000 relative to 500,000 records",
            large / middle,
            1.1,
            " ×",
        ),
    ]
