"""Memory of a batch of 50,000 requests: it goes out and comes back in pieces."""

import json
import sys
import tempfile
from pathlib import Path

from bench.measure import PENNYWEIGHT, Result, spend

REQUESTS = 50_000
SIZE = 2_000
"""Characters of a prompt; the file of the batch has some 100 MB."""


def run() -> list[Result]:
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from batch_serving import batch_server  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="pennyweight-bench-") as name, batch_server(name) as at:
        folder, words = Path(name), "x" * SIZE
        with (folder / "tasks.jsonl").open("w") as file:  # a child's peak is at least our own
            for i in range(REQUESTS):
                task = {"id": f"t{i}", "input": f"{words} {i}", "target": "4"}
                file.write(json.dumps(task) + "\n")
        subject = {"name": "m", "model": "openai/fake", "base_url": at.base_url("openai")}
        suite = {
            "suite": "large",
            "tasks": "tasks.jsonl",
            "subjects": [{**subject, "max_tokens": 16}],
            "prices": {"m": {"input": 1.0, "output": 10.0}},
        }
        path, store = folder / "suite.yaml", str(folder / "store.db")
        path.write_text(json.dumps(suite))
        read, out, collected = (
            spend([*PENNYWEIGHT, *command]).mebibytes
            for command in (
                ["run", str(path), "--dry-run"],
                ["run", str(path), "--batch", "--store", store],
                ["collect", "--store", store],
            )
        )
        assert at.submissions() == [REQUESTS]
    print(f"reading the suite {read:,.0f} MiB, submitting {out:,.0f}, collecting {collected:,.0f}")
    return [
        Result("batch of 50,000 requests, submitting", out, 400, " MiB"),
        Result("batch of 50,000 requests, collecting", collected, 400, " MiB"),
    ]
