"""`pennyweight` as a process of its own, and what it left in a store."""

import os
import subprocess
import sys
from contextlib import closing

from pennyweight.store.store import Store

PENNYWEIGHT = [sys.executable, "-m", "pennyweight"]


def added(run, store):
    """Add a run to a store."""
    store.add_run(run)
    return run


def start(address, *arguments, **options):
    """Start a command on a store; its standard error can be read."""
    return subprocess.Popen(
        [*PENNYWEIGHT, *map(str, arguments)],
        env={**os.environ, "PENNYWEIGHT_STORE": address, "COLUMNS": "80"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def ended(process):
    """Wait for a command; gives its exit code and what it said on standard error."""
    _, said = process.communicate(timeout=120)
    return process.returncode, said


def run(address, *arguments, **options):
    """Run a command to its end."""
    return ended(start(address, *arguments, **options))


def kept(address):
    """The records and the spending of the latest run, and nothing where there is none."""
    with closing(Store(address)) as store:
        runs = store.runs()
        if not runs:
            return [], {}
        rows = [row for frame in store.records(runs[0].id) for row in frame.to_dicts()]
        return rows, store.spent(runs[0].id)
