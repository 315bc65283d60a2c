"""What is written is read again, the same in SQLite and PostgreSQL."""

import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
from sqlalchemy import delete, select

from pennyweight.errors import StoreError, UsageError
from pennyweight.store import store as module
from pennyweight.store.lease import Fence
from pennyweight.store.shared_runs import join, put_up
from pennyweight.store.store import RECORD_COLUMNS, Store
from pennyweight.store.tables import META, METADATA, WORKER
from pennyweight.store.tables import RUN as RUN_TABLE
from store.samples import RUN, call, record, rows, run


def test_a_run_comes_back_as_it_was_added(store):
    first = run(settings={"seed": 7, "tiers": ["T0"], "limits": {"usd": None}}, text="ä: ☃\n")
    store.add_run(first)
    assert store.runs() == [first]
    store.set_run(RUN, status="done", ended=2.5, settings={"seed": 8})
    changed = store.find(RUN)
    assert (changed.status, changed.ended, changed.settings) == ("done", 2.5, {"seed": 8})


def test_a_run_is_found_by_its_id_its_beginning_or_as_the_latest(store):
    with pytest.raises(UsageError, match=r"no run in the store .* yet"):
        store.find("latest")
    for number, name in enumerate(["20260101-a", "20260101-ab", "20260102-c"]):
        store.add_run(run(name, created=10.0 - number))
    assert [r.id for r in store.runs()] == ["20260101-a", "20260101-ab", "20260102-c"]
    assert store.find("latest").id == "20260101-a"
    assert store.find("20260101-a").id == "20260101-a"  # an id, though another begins with it
    assert store.find("20260102").id == "20260102-c"
    with pytest.raises(UsageError, match="ambiguous: it matches 20260101-a, 20260101-ab"):
        store.find("20260101")
    with pytest.raises(UsageError, match="no run '2027'"):
        store.find("2027")


def test_an_error_replaces_nothing_but_an_error(store):
    store.write([record("a", response="4"), record("b", status="error", error="old")], [])
    failed = [record(task, fingerprint="g", status="error", error="new") for task in "ab"]
    store.write(failed, [call("a"), call("b")])
    found = [(r["task_id"], r["fingerprint"], r["status"], r["error"]) for r in rows(store)]
    assert found == [("a", "f", "ok", None), ("b", "g", "error", "new")]
    store.write([record("a", fingerprint="g", response="5")], [])
    assert next((r["fingerprint"], r["response"]) for r in rows(store)) == ("g", "5")
    assert store.spent(RUN)["calls"] == 2


def test_every_type_comes_back_and_missing_stays_missing(store):
    full = {
        "response": "naïve ☃ 🜚 \u202e 'quoted' %s ? {} \\ \r\n\t",
        "truncated": False,
        "refused": True,
        "seed": 2**63 - 1,
        "prompt_tokens": 0,
        "latency_ms": 0.1 + 0.2,
        "cost_usd": 1e-300,
        "extra": '{"a": [1, null]}',
    }
    store.write([record("a"), record("b", **full)], [])
    frames = list(store.records(RUN))
    assert frames[0].columns == list(RECORD_COLUMNS)
    assert {frames[0].schema[n] for n in ("truncated", "refused", "passed")} == {pl.Boolean()}
    empty, filled = frames[0].to_dicts()
    assert {n: filled[n] for n in full} == full
    given = {"run", "subject", "tier", "task_id", "attempt", "fingerprint", "status"}
    assert {n for n, value in empty.items() if value is not None} == given


def test_records_come_in_the_order_of_code_points_in_parts(store, monkeypatch):
    monkeypatch.setattr(module, "READ_BATCH", 4)
    names = ["a", "B", "b", "ä", "Z", "10", "9", "t-1", "t1", "_"]
    store.write([record(n) for n in names] + [record("a", run_id="other")], [])
    parts = list(store.records(RUN))
    assert [p.height for p in parts] == [4, 4, 2]
    assert [t for p in parts for t in p["task_id"]] == sorted(names)


def test_only_the_columns_asked_for_are_read(store):
    store.write([record("a", response="x")], [])
    assert next(store.records(RUN, {"task_id", "response"})).to_dicts() == [
        {"task_id": "a", "response": "x"}
    ]


def test_groups_of_any_size_are_written_whole(store):
    store.write([], [])
    sizes = (1, 2, 3, 255, 256, 257, 700)
    names = [[f"{size}-{i}" for i in range(size)] for size in sizes]
    for group in names:
        store.write([record(n, response=n) for n in group], [call(n) for n in group])
    found = {row["task_id"]: row["response"] for row in rows(store)}
    assert found == {n: n for group in names for n in group}
    assert store.spent(RUN)["calls"] == sum(sizes)


def test_a_record_made_again_replaces_the_old_one_and_the_ledger_keeps_both_calls(store):
    store.write([record("a", status="error", error="x", response=None)], [call("a", cost_usd=0.5)])
    store.write([record("a", fingerprint="g", response="4")], [call("a", cost_usd=0.25)])
    (row,) = rows(store)
    assert (row["status"], row["error"], row["response"]) == ("ok", None, "4")
    assert store.attempts(RUN) == {(RUN, "m", "T0", "a", 1): ("g", "ok")}
    assert store.spent(RUN)["calls"] == 2
    assert store.spent(RUN)["usd"] == 0.75


def test_spending_is_the_sum_of_what_is_known(store):
    names = ("usd", "prompt_tokens", "completion_tokens", "held_usd", "held_tokens")
    nothing = {"calls": 0, "unpriced": 0, **dict.fromkeys(names)}
    assert store.spent(RUN) == nothing
    known = {"cost_usd": 0.5, "prompt_tokens": 2**40, "completion_tokens": 1}
    store.write([], [call("a", **known), call("a", **known), call("a", status="server")])
    spent = {"calls": 3, "usd": 1.0, "prompt_tokens": 2**41, "completion_tokens": 2}
    assert store.spent(RUN) == {**nothing, **spent}
    assert {type(store.spent(RUN)[name]) for name in spent} == {int, float}


def test_calls_of_unknown_cost_are_counted(store):
    store.add_run(run())
    free = call("c", status="connection")
    held = call("d", status="timeout", held_usd=1.0, held_tokens=10)
    store.write([], [call("a", cost_usd=45.0), call("b"), free, held])
    assert (store.spent(RUN)["usd"], store.spent(RUN)["unpriced"]) == (45.0, 2)


def test_statuses_are_counted(store):
    store.write([record("a"), record("b"), record("c", status="error")], [])
    assert store.statuses(RUN) == {"ok": 2, "error": 1}
    assert store.statuses("none") == {}


def test_a_removed_run_leaves_nothing_in_any_table_and_others_stay(store):
    tables = {
        t: t.c.id if t is RUN_TABLE else t.c.run for t in METADATA.sorted_tables if t is not META
    }
    samples = {str: "x", int: 1, float: 1.5, bool: True}
    with store.engine.begin() as connection:
        for table, owner in tables.items():
            for number, name in enumerate([RUN, "other"]):
                kinds = {c.name: c.type.python_type for c in table.c}
                values = {n: samples[kind] for n, kind in kinds.items() if kind in samples}
                values |= {n: number for n in ("id", "place") if n in table.c}
                connection.execute(table.insert().values(values | {owner.name: name}))
    store.remove(RUN)
    with store.engine.connect() as connection:
        left = {t.name: connection.scalars(select(owner)).all() for t, owner in tables.items()}
    assert left == {t.name: ["other"] for t in tables}


def test_a_group_that_cannot_be_written_is_not_written_in_part(store):
    with pytest.raises(StoreError):
        store.write([record("a"), record("b", prompt_tokens=2**70)], [call("a")])
    assert (rows(store), store.spent(RUN)["calls"]) == ([], 0)


def test_a_group_whose_commit_was_not_heard_of_is_not_paid_for_twice(store, monkeypatch):
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    plain, heard = module.insert_fenced, []

    def insert(store, connection, *given, **more):
        plain(store, connection, *given, **more)
        if not heard:
            heard.append(connection.commit())
            raise StoreError("The connection is gone.", transient=True)

    monkeypatch.setattr(module, "insert_fenced", insert)
    store.write([record("a")], [call("a", cost_usd=None, at=2.25)])
    assert (len(rows(store)), store.spent(RUN)["calls"]) == (1, 1)


def test_nor_is_it_if_the_worker_is_given_up_meanwhile(store, monkeypatch):
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    store.add_run(run())
    put_up(store, RUN, "plan", {"a": 10})
    store.fences[RUN] = Fence(join(store, RUN))
    plain, heard = module.insert_fenced, []

    def insert(store, connection, *given, **more):
        plain(store, connection, *given, **more)
        if not heard:
            connection.execute(delete(WORKER))
            heard.append(connection.commit())
            raise StoreError("The connection is gone.", transient=True)

    monkeypatch.setattr(module, "insert_fenced", insert)
    store.write([record("a")], [call("a")])
    assert (len(rows(store)), store.spent(RUN)["calls"]) == (1, 1)


def test_nor_is_it_if_the_commit_is_still_under_way(postgresql, monkeypatch):
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    plain, begun = module.insert_fenced, []
    waiting = (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )

    def insert(store, connection, *given, **more):
        if not begun:
            other = store.engine.connect()
            under_way = other.begin()
            plain(store, other, *given, **more)
            begun.append(under_way)
            raise StoreError("The connection is gone.", transient=True)
        plain(store, connection, *given, **more)

    def commit_late(store):
        with store.engine.connect() as connection:
            while not (begun and connection.exec_driver_sql(waiting).scalar()):
                connection.rollback()
        begun[0].commit()
        begun[0].connection.close()

    monkeypatch.setattr(module, "insert_fenced", insert)
    with closing(Store(postgresql.database())) as store:
        store.add_run(run())
        late = threading.Thread(target=commit_late, args=[store], daemon=True)
        late.start()
        store.write([record("a")], [call("a")])
        late.join()
        assert (len(rows(store)), store.spent(RUN)["calls"]) == (1, 1)


WRITER = """
import sys
from pennyweight.store.store import Store
from pennyweight.store.tables import META, METADATA
from pennyweight.store.tables import RUN as RUN_TABLE
from store.samples import call, record, run
store, name = Store(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
store.add_run(run(name))
for i in range(50):
    own = record(f"{name}-{i}", response=name), record("shared", run_id="both", response=name)
    store.write(list(own), [call("x"), call("x", run_id="both")])
store.close()
"""


def test_processes_make_and_write_a_new_store_at_the_same_time(store_address):
    names = ["one", "two", "three"]
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, store_address, name],
            cwd=Path(__file__).parent.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    for process in writers:
        assert process.stdout.readline() == "ready\n"
    for process in writers:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in writers:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
    store = Store(store_address)
    assert {r.id for r in store.runs()} == set(names)
    assert {r["task_id"] for r in rows(store)} == {f"{n}-{i}" for n in names for i in range(50)}
    assert len(rows(store, "both")) == 1
    assert store.spent(RUN)["calls"] == store.spent("both")["calls"] == 150
    store.close()


def test_a_store_that_is_not_there_is_not_made_by_looking(tmp_path):
    store = Store(str(tmp_path / "none" / "store.db"))
    assert store.runs() == []
    assert not (tmp_path / "none").exists()
