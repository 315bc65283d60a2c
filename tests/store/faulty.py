"""Write to a store while its file system fails; run under LD_PRELOAD with faults.c.

Each line of standard output is a seed and what was wrong with the store afterwards (nothing: "").
Each seed is a forked process, since importing takes longer than writing.
"""

import ctypes
import os
import random
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from sqlalchemy import event

from pennyweight.errors import StoreError
from pennyweight.store.store import Store
from store.samples import RUN, call, record, run

GROUPS, SIZE = 24, 8
KINDS = {"eio once": 1, "eio from here on": 2, "disk full": 3, "short write": 4, "power": 5}
TEXT = "x" * 9_000
UNSAFE = "unsafe" in sys.argv
"""Whether nothing is synced: then the power must not fail, and this must notice it."""
SHIM = ctypes.CDLL(None)
SHIM.fault_seen.restype = ctypes.c_long


def tasks(group):
    return [f"{group:02}-{number}" for number in range(SIZE)]


def write(path, report):
    """Write groups of records, and report each that counted."""
    store = Store(str(path))
    try:
        if UNSAFE:
            event.listen(
                store.engine, "checkout", lambda c, *_: c.execute("PRAGMA synchronous=OFF")
            )
        store.add_run(run(status="running"))
        for group in range(GROUPS):
            names = tasks(group)
            store.write([record(n, response=TEXT) for n in names], [call(n) for n in names])
            os.write(report, bytes([group]))
        store.set_run(RUN, status="done")
    except StoreError:
        return
    store.close()


def counted_by(path, at, kind, seed):
    """Write in a process that is hit by the fault; give the groups that counted."""
    out, report = os.pipe()
    child = os.fork()
    if child == 0:
        SHIM.fault_arm(str(path).encode(), ctypes.c_long(at), kind, ctypes.c_uint(seed))
        write(path, report)
        os.write(report, SHIM.fault_seen().to_bytes(8, "big") if kind == 0 else b"")
        os._exit(0)
    os.close(report)
    with os.fdopen(out, "rb") as stream:
        counted = stream.read()
    os.waitpid(child, 0)
    return counted


def wrong(path, counted):
    """Say what is wrong with a store: what counted must be there, and nothing by halves."""
    for shared in path.parent.glob(f"{path.name}-shm"):
        shared.unlink()  # memory, which no crash survives
    with closing(Store(str(path))) as store:
        runs = store.runs()  # it opens, whatever happened
        found = {row[0] for frame in store.records(RUN, {"task_id"}) for row in frame.rows()}
        calls = store.spent(RUN)["calls"]
        store.add_run(run("next"))
    with closing(sqlite3.connect(path)) as connection:
        check = connection.execute("PRAGMA integrity_check").fetchone()[0]
    missing = {name for group in counted for name in tasks(group)} - found
    if check != "ok":
        return f"integrity: {check}"
    if missing:
        return f"lost: {sorted(missing)}"
    if counted and not runs:
        return "the run is lost"
    whole = [g for g in range(GROUPS) if set(tasks(g)) <= found]
    if len(found) != len(whole) * SIZE or calls != len(found):
        return f"{len(found)} records of {len(whole)} groups, {calls} calls"
    return ""


def main(folder, first, seeds):
    path = Path(folder, "count.db")
    operations = int.from_bytes(counted_by(path, 1 << 60, 0, 0)[GROUPS:], "big")
    print(operations, flush=True)
    for seed in range(first, first + seeds):
        random.seed(seed)
        kind, number = list(KINDS.items())[seed % len(KINDS)]
        at = random.randint(1, operations)
        path = Path(folder, f"{seed}.db")
        found = wrong(path, counted_by(path, at, number, seed))
        print(f"{seed} {kind} at {at}: {found}", flush=True)
        for file in path.parent.glob(f"{path.name}*"):
            file.unlink()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
