"""Queries by the driver alone: values stay values, lost connections are made again."""

import psycopg
import pytest

from pennyweight.errors import StoreError
from pennyweight.store import cache as kept
from pennyweight.store.read_connection import fetch
from pennyweight.store.store import Store
from store.samples import RUN, run


@pytest.mark.parametrize("name", ["a:b", "50%", "%(name)s", ":name", "it's", "é"])
def test_values_are_never_part_of_the_query(store, name):
    store.add_run(run(name))
    store.add_run(run())
    query = "SELECT id FROM pennyweight_run WHERE id = :name"
    assert fetch(store, query, {"name": name}) == [(name,)]
    assert kept.state(store, name).run.id == name


def test_a_wrong_query_is_told_and_the_next_one_answered(store):
    store.add_run(run())
    with pytest.raises(StoreError, match="nowhere"):
        fetch(store, "SELECT id FROM nowhere")
    assert fetch(store, "SELECT id FROM pennyweight_run") == [(RUN,)]


def test_what_was_written_is_read_at_once(store):
    assert kept.listed(store) == ()
    store.add_run(run())
    assert kept.state(store, RUN).run.status == "running"
    store.set_run(RUN, status="done")
    assert kept.state(store, RUN).run.status == "done"


def test_a_lost_connection_is_made_again(postgresql):
    address = postgresql.database()
    store = Store(address)
    store.add_run(run())
    assert kept.state(store, RUN).run.id == RUN
    with psycopg.connect(address, autocommit=True) as other:
        others = "datname = current_database() AND pid <> pg_backend_pid()"
        query = f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {others}"
        assert other.execute(query).fetchone()[0] >= 1
    assert kept.state(store, RUN).run.id == RUN
    store.close()


def test_a_database_that_went_away_is_told(postgresql):
    address = postgresql.database()
    store = Store(address)
    store.add_run(run())
    assert kept.state(store, RUN) is not None
    name = address.rpartition("/")[2]
    with psycopg.connect(postgresql.url("postgres"), autocommit=True) as other:
        other.execute(f"DROP DATABASE {name} WITH (FORCE)")
    with pytest.raises(StoreError, match="does not exist"):
        kept.state(store, RUN)
    store.close()
