"""A local server for runs, in a process of its own, that counts calls and can misbehave."""

import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


@contextmanager
def server(delay=0.0):
    """Start bench/server.py; gives its address and ends it in the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.server", str(delay)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        port = int(process.stdout.readline())
        yield f"http://127.0.0.1:{port}"
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


def calls(address):
    with urllib.request.urlopen(f"{address}/calls", timeout=10) as reply:
        return int(reply.read())


def suite(folder, address, tasks=50, **more):
    """Write a suite of arithmetic tasks against a server."""
    lines = ["suite: counting", "tasks:"]
    lines += [f'  - {{id: t{i}, input: "2 + {i}?", target: "4"}}' for i in range(tasks)]
    lines += [
        "subjects:",
        f'  - {{name: m, model: openai/instant, base_url: "{address}/v1"}}',
        "prices: {m: {input: 1.0, output: 10.0}}",
    ]
    settings = {"limits": "{concurrency: 8}", "runs": "1", **more}
    lines += [f"{key}: {value}" for key, value in settings.items()]
    path = Path(folder, "suite.yaml")
    path.write_text("\n".join(lines) + "\n")
    return path
