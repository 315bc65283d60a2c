"""A real `pennyweight serve` as a process of its own, and stores for it to show."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SUMS = ROOT / "examples" / "sums"


def command(*arguments, folder, env=None, check=True):
    """Run `pennyweight` to its end in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "pennyweight", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        check=check,
    )


def replayed(folder, question=""):
    """Fill the store of a folder by a run of the sums from their recording; gives the run's id.

    A question is asked of people about each reply.
    """
    shutil.copytree(SUMS, folder / "sums")
    if question:
        path = folder / "sums" / "tasks.jsonl"
        tasks = map(json.loads, path.read_text("utf-8").splitlines())
        asked = ({**task, "checks": [{"human": question}]} for task in tasks)
        path.write_text("".join(json.dumps(task) + "\n" for task in asked), "utf-8")
    suite = folder / "sums" / "suite.yaml"
    text = suite.read_text()
    tape = "replay:sums/tape.jsonl#local/smollm2-135m"
    suite.write_text(text.replace("local/smollm2-135m", f'"{tape}"'))
    done = command("run", "sums/suite.yaml", "--format", "json", folder=folder)
    return re.search(r"Run (\S+):", done.stderr)[1]


class Server:
    """A server's address, and requests to it without a browser."""

    def __init__(self, address, process=None):
        self.address, self.process = address, process

    def get(self, path, headers=None, method="GET", body=None):
        """Ask; gives status, headers and text."""
        request = urllib.request.Request(
            self.address + path, data=body, headers=headers or {}, method=method
        )
        opener = urllib.request.build_opener(_Stay)
        try:
            with opener.open(request, timeout=60) as reply:
                return reply.status, reply.headers, reply.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, error.read().decode()

    def json(self, path, **more):
        status, _, text = self.get(path, **more)
        return status, json.loads(text)

    def digest(self, run):
        """The scores of a run, waited for while they are being made."""
        for _ in range(600):
            found = self.json(f"/api/runs/{run}/digest")[1]
            if found["current"]:
                return found["digest"]
            time.sleep(0.1)
        raise AssertionError(f"no digest of {run} within a minute")

    def csrf(self):
        return self.json("/api/session")[1]["csrf"]

    def post(self, path, body, **headers):
        """Change something, as a program would."""
        given = {"Content-Type": "application/json", "X-Pennyweight-Csrf": self.csrf(), **headers}
        return self.json(path, method="POST", body=json.dumps(body).encode(), headers=given)


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


@contextmanager
def serving(folder, *arguments, env=None, open_to_all=True):
    """Start a server in a folder, on a port that is free, and end it in good order."""
    arguments = (*arguments, "--no-token") if open_to_all else arguments
    process = subprocess.Popen(
        [sys.executable, "-m", "pennyweight", "serve", "--port", "0", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, **(env or {})},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        line = process.stderr.readline()
        found = re.search(r"http://\S+:(\d+)/", line)
        assert found, line + process.stderr.read()
        yield Server(f"http://127.0.0.1:{found[1]}", process)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stderr.close()
