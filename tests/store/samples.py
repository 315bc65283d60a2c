"""Runs, records and calls to put into a store."""

from pennyweight.store.store import CALL_COLUMNS, RECORD_COLUMNS, StoredRun

RUN = "20260101-000000-0001"


def run(run_id=RUN, created=1.0, **more):
    values = {"suite": "s", "path": "suite.yaml", "text": "suite: s", "data_hash": "h"}
    values |= {"status": "running", "attempts": 3, "ended": None, "settings": {"seed": None}}
    return StoredRun(id=run_id, created=created, **{**values, **more})


def record(task, run_id=RUN, **more):
    values = {"run": run_id, "subject": "m", "tier": "T0", "task_id": task, "attempt": 1}
    values |= {"fingerprint": "f", "status": "ok", **more}
    return tuple(map(values.get, RECORD_COLUMNS))


def call(task, run_id=RUN, **more):
    values = {"run": run_id, "kind": "attempt", "subject": "m", "tier": "T0", "task_id": task}
    values |= {"attempt": 1, "status": "ok", "at": 1.5, **more}
    return tuple(map(values.get, CALL_COLUMNS))


def rows(store, run_id=RUN):
    return [row for frame in store.records(run_id) for row in frame.to_dicts()]
