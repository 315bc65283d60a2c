"""Start the local batch server, tell it what to do, and write suites against it."""

import json
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path

PATHS = {"openai": "/v1", "anthropic": "", "google": "/v1beta"}
DIALECTS = tuple(PATHS)
RUBRIC = {"categories": {"a": {"weight": 1, "items": ["It is right."]}}, "pass_mark": 0.6}
JUDGED = json.dumps({"items": {"a": {"evidence": "seen", "score": 1}}, "confidence": 1})
"""What a judge is asked by, and an answer of it."""


class BatchServer:
    """The server in a process of its own, so that it outlives what is killed."""

    def __init__(self, address):
        self.address = address

    def control(self, **rules):
        data = json.dumps(rules).encode()
        urllib.request.urlopen(f"{self.address}/control", data, timeout=60).close()

    def log(self):
        with urllib.request.urlopen(f"{self.address}/log", timeout=10) as reply:
            return json.load(reply)

    def submissions(self):
        """Return how many requests each submitted batch had."""
        lines = [line.split() for line in self.log()["log"]]
        return [int(words[1]) for words in lines if words[0] == "submitted"]

    def deleted(self):
        return self.log()["log"].count("deleted")

    def base_url(self, dialect):
        return f"{self.address}{PATHS[dialect]}"


@contextmanager
def batch_server(folder):
    folder = Path(folder, "provider")
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("batch_server.py"), folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield BatchServer(f"http://127.0.0.1:{int(process.stdout.readline())}")
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


def batch_suite(folder, server, dialect="openai", tasks=5, **more):
    """Write a suite of sums against the server, in the batch lane."""
    value = {
        "suite": "sums",
        "tasks": [
            {"id": f"t{i}", "input": f"[{i}] 2 + {i} plus {i}?", "target": str(2 + 3 * i)}
            for i in range(tasks)
        ]
        if isinstance(tasks, int)
        else tasks,
        "subjects": [
            {
                "name": "m",
                "model": f"{dialect}/fake",
                "base_url": server.base_url(dialect),
                "max_tokens": 16,
            }
        ],
        "prices": {"m": {"input": 1.0, "output": 10.0}},
        "limits": {"lane": "batch"},
        **more,
    }
    path = Path(folder, "suite.yaml")
    path.write_text(json.dumps(value))
    return path
