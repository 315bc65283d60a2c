"""`pennyweight serve`: the addresses that it prints are those that it answers to."""

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

TOKEN = "write-0123456789abcdef"


def answer(address, host=None):
    headers = {"Authorization": f"Bearer {TOKEN}"} | ({"Host": host} if host else {})
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers)) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.parametrize("allowed", [(), ("--allow-host", "measures.example")])
def test_bound_everywhere_it_says_who_reaches_it(tmp_path, allowed):
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "pennyweight",
            "serve",
            "--port",
            "0",
            "--host",
            "0.0.0.0",
            *allowed,
        ],
        cwd=tmp_path,
        env={**os.environ, "PENNYWEIGHT_TOKEN": TOKEN},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        first, second = (process.stderr.readline() for _ in range(2))
        address = re.search(r"http://\S+/", first)[0]
        port = re.search(r":(\d+)/", address)[1]
        assert answer(address) == 200
        named = answer(address, f"measures.example:{port}")
        if allowed:
            assert f"http://measures.example:{port}/" in second
            assert named == 200
        else:
            assert "--allow-host" in second
            assert named == 421
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)
        process.stderr.close()


def test_a_log_is_kept_as_a_run_before_the_page_is_served(tmp_path):
    log = Path(__file__).parents[2] / "examples" / "logs" / "inspect.json"
    command = [sys.executable, "-m", "pennyweight", "serve", str(log), "--port", "0", "--no-token"]
    for told in ("9 records imported.", "imported before."):
        process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        try:
            run, address = (process.stderr.readline() for _ in range(2))
            name = re.fullmatch(rf"Run (inspect-\w{{8}}): {told}\n", run)[1]
            page = re.search(r"http://\S+/", address)[0]
            assert answer(f"{page}runs/{name}") == 200
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)
            process.stderr.close()
