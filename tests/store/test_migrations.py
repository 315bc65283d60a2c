"""Old stores are upgraded on opening and keep their data; newer ones are left alone."""

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Column, MetaData, PrimaryKeyConstraint, Table

from pennyweight.errors import StoreError, UsageError
from pennyweight.record import AttemptKey
from pennyweight.store import cache as kept
from pennyweight.store import set_aside
from pennyweight.store.migrations import STEPS
from pennyweight.store.store import JUDGMENT_COLUMNS, RECORD_COLUMNS, Store
from pennyweight.store.tables import DECISION, JUDGMENT, META
from store.samples import RUN, call, record, rows

OLD = Path(__file__).with_name("version-1.sql").read_text("utf-8")
WIDTH = 38
"""How many columns a record had."""


def execute(address, text):
    """Run SQL past Pennyweight; gives the rows of the last statement."""
    if "://" in address:
        with psycopg.connect(address) as connection:
            cursor = connection.execute(text.replace("SERIAL_KEY", "BIGSERIAL PRIMARY KEY"))
            while cursor.nextset():
                pass
            return cursor.fetchall() if cursor.description else None
    connection = sqlite3.connect(address)
    try:
        if ";" in text:
            text = text.replace("SERIAL_KEY", "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT")
            return connection.executescript(text.replace("'0'", "0")) and None
        found = connection.execute(text).fetchall()
        connection.commit()
        return found
    finally:
        connection.close()


def test_a_store_of_version_1_is_upgraded_and_keeps_its_data(store_address):
    execute(store_address, OLD)
    store = Store(store_address)
    (run,) = store.runs()
    assert (run.id, run.ended, run.settings) == (RUN, 2.5, {"seed": 7})
    first, second = rows(store)
    assert tuple(first) == RECORD_COLUMNS
    assert (first["response"], first["truncated"], first["cost_usd"]) == ("four — 4", False, 0.25)
    assert first["passed"] is first["work"] is second["response"] is None
    assert store.spent(RUN) | {"calls": 2, "usd": 0.25} == store.spent(RUN)
    store.write([record("b", passed=True, work="{}")], [call("b")])
    assert rows(store)[1]["passed"] is True
    assert store.judgments(RUN).height == 0
    store.close()
    assert execute(store_address, "SELECT version FROM pennyweight_meta") == [(len(STEPS),)]
    again = Store(store_address)
    assert len(rows(again)) == 2
    again.close()


def test_a_store_of_a_later_pennyweight_is_refused_and_stays_as_it_is(store_address):
    execute(store_address, OLD + "UPDATE pennyweight_meta SET version = 99;")
    store = Store(store_address)
    with pytest.raises(
        UsageError, match=r"version 99, but .* supports up to \d+\. Update Pennyweight"
    ):
        store.runs()
    store.close()
    assert execute(store_address, "SELECT version FROM pennyweight_meta") == [(99,)]
    assert execute(store_address, "SELECT count(*) FROM pennyweight_record") == [(2,)]
    assert len(execute(store_address, "SELECT * FROM pennyweight_record")[0]) == WIDTH


def test_an_upgrade_that_fails_leaves_the_old_store(store_address, monkeypatch):
    execute(store_address, OLD)

    def broken(connection):
        connection.exec_driver_sql("ALTER TABLE pennyweight_record ADD COLUMN half TEXT")
        raise UsageError("No further.")

    monkeypatch.setattr("pennyweight.store.migrations.STEPS", (*STEPS, (broken,)))
    store = Store(store_address)
    with pytest.raises(UsageError, match="No further"):
        store.runs()
    monkeypatch.undo()
    assert execute(store_address, "SELECT version FROM pennyweight_meta") == [(1,)]
    assert len(execute(store_address, "SELECT * FROM pennyweight_record")[0]) == WIDTH
    assert len(rows(store)) == 2
    store.close()


def test_judgments_by_one_rubric_stay_beside_those_by_another(store_address):
    key = ("run", "task_id", "subject", "tier", "attempt", "judge")
    columns = [Column(c.name, c.type, nullable=c.nullable) for c in JUDGMENT.c]
    old = Table(JUDGMENT.name, MetaData(), *columns, PrimaryKeyConstraint(*key))
    values = {"run": RUN, "task_id": "t", "subject": "s", "tier": "T0", "attempt": 1, "judge": "j"}
    values |= {"fingerprint": "one", "status": "ok", "score": 0.5, "at": 1.0}
    store = Store(store_address)
    with store.engine.begin() as connection:
        JUDGMENT.drop(connection)
        old.create(connection)
        connection.execute(old.insert().values(values))
        connection.execute(META.update().values(version=6))
    store.close()
    again = Store(store_address)
    other = {**values, "fingerprint": "two", "status": "error", "score": None, "at": 2.0}
    for row in (other, other):
        again.write_judgments([tuple(map(row.get, JUDGMENT_COLUMNS))], [])
    found = again.judgments(RUN, {"fingerprint", "status", "score"})
    assert sorted(found.rows()) == [("one", "ok", 0.5), ("two", "error", None)]
    again.close()


def test_a_verdict_on_one_side_stays_beside_those_on_others(store_address):
    columns = [Column(c.name, c.type, nullable=c.nullable) for c in DECISION.c]
    old = Table(DECISION.name, MetaData(), *columns, PrimaryKeyConstraint("run"))
    values = {"policy": "p", "side": "T0", "verdict": "fail", "stamp": "s"}
    store = Store(store_address)
    with store.engine.begin() as connection:
        DECISION.drop(connection)
        old.create(connection)
        connection.execute(old.insert().values({**values, "run": RUN, "at": 1.0}))
        connection.execute(META.update().values(version=8))
    store.close()
    again = Store(store_address)
    kept.save_decision(again, RUN, **{**values, "side": "T1", "verdict": "pass"})
    found = [(d.side, d.verdict) for d in kept.policy_verdicts(again)]
    assert found == [("T0", "fail"), ("T1", "pass")]
    again.close()


def test_records_get_the_columns_of_cached_input(store_address):
    execute(store_address, OLD)
    with closing(Store(store_address)) as store:
        assert {row["cache_write_tokens"] for row in rows(store)} == {None}
        store.write([record("b", cache_write_tokens=7, cached_input_price=0.5)], [call("b")])
        set_aside.exchange(store, [AttemptKey.of(rows(store)[1])], [])
        ((key, mark),) = set_aside.set_aside(store, RUN)
        set_aside.exchange(store, [], [(key, mark)])
        row = rows(store)[1]
        assert (row["cache_write_tokens"], row["cached_input_price"]) == (7, 0.5)


def test_a_store_is_copied_before_it_is_upgraded(tmp_path):
    path = tmp_path / "old.db"
    execute(str(path), OLD)
    with closing(sqlite3.connect(path)) as old:
        before = list(old.iterdump())
    for _ in range(2):
        with closing(Store(str(path))) as store:
            assert store.runs()
    (copy,) = tmp_path.glob("*.backup")
    assert copy.name == "old.db.v1.backup"
    assert oct(copy.stat().st_mode & 0o777) == "0o600"
    with closing(sqlite3.connect(copy)) as backup:
        assert list(backup.iterdump()) == before


def test_a_file_that_is_not_a_backup_does_not_stand_for_one(tmp_path):
    path = tmp_path / "old.db"
    execute(str(path), OLD)
    (tmp_path / "old.db.v1.backup").write_text("something else")
    with closing(Store(str(path))) as store, pytest.raises(StoreError, match="is not its backup"):
        store.runs()
    (tmp_path / "old.db.v1.backup").unlink()
    with closing(Store(str(path))) as store:
        assert store.runs()


@pytest.mark.parametrize("version", [0, -1, "abc"])
def test_a_version_that_never_was_is_refused(version, tmp_path):
    path = tmp_path / "s.db"
    with closing(Store(str(path))) as store:
        assert store.engine
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE pennyweight_meta SET version = ?", (version,))
        connection.commit()
    with closing(Store(str(path))) as store, pytest.raises(UsageError, match="no Pennyweight has"):
        store.runs()
