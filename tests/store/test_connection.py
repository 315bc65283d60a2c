"""A store that cannot be opened: one message that says what to do and hides the password."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from socket import socket

import pytest
from click.testing import CliRunner
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from cli.command import pennyweight
from pennyweight.cli.group import cli
from pennyweight.errors import StoreError, UsageError
from pennyweight.store import connection
from pennyweight.store.connection import again, shown
from pennyweight.store.store import Store
from store.samples import RUN, record, run

SECRET = "c0rrect-horse"


def message(*arguments, code):
    result = pennyweight(*arguments)
    assert result.code == code, result
    assert result.out == ""
    assert "Traceback" not in result.err
    assert SECRET not in result.err
    return result.err


@pytest.mark.parametrize(
    "address",
    [
        f"mysql://me:{SECRET}@127.0.0.1/db",
        f"postgresql+nothing://me:{SECRET}@127.0.0.1/db",
        f"postgresql://me:{SECRET}@127.0.0.1:port/db",
        f"postgresql://me:{SECRET}@[::1/db",
        f"://me:{SECRET}@host",
        "sqlite://",
    ],
)
def test_a_wrong_address_is_refused(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = message("rm", "x", "--store", address, code=2)
    assert "give a path for SQLite or postgresql://" in said


def test_a_wrong_password_is_told_without_any_password(postgresql):
    address = postgresql.url("postgres", password=SECRET)
    said = message("runs", "--store", address, code=4)
    assert "password authentication failed" in said
    assert "pennyweight:***@127.0.0.1" in said


def test_a_database_that_is_not_there_is_told(postgresql):
    assert 'database "none" does not exist' in message(
        "runs", "--store", postgresql.url("none"), code=4
    )


def test_a_server_that_is_down_is_told_at_once():
    with closing(socket()) as one:
        one.bind(("127.0.0.1", 0))  # bound, not listening: nobody answers here
        port = one.getsockname()[1]
        for host in ("127.0.0.1", "localhost"):
            address = f"postgresql://me:{SECRET}@{host}:{port}/db"
            assert "refused" in message("runs", "--store", address, code=4)


def test_a_password_is_hidden_wherever_it_stands():
    places = [
        f"postgresql://me:{SECRET}@host/db",
        f"postgresql://host/db?user=me&password={SECRET}",
        f"postgresql://me:{SECRET}@host:x/db",
    ]
    assert all(SECRET not in shown(address) for address in places)
    assert shown("some/store.db") == "some/store.db"


def test_what_is_no_store_is_told_and_kept(tmp_path):
    other = tmp_path / "notes.txt"
    other.write_text("Not a database. " * 100)
    assert "file is not a database" in message("runs", "--store", other, code=4)
    assert other.read_text() == "Not a database. " * 100


def test_a_store_in_a_file_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be created"):
        Store(str(tmp_path / "file" / "store.db")).add_run(run())


def test_a_store_that_may_only_be_read_is_read_and_not_written(store_address):
    full = Store(store_address)
    full.add_run(run())
    full.write([record("a")], [])
    if "://" in store_address:
        store = Store(f"{store_address}?options=-cdefault_transaction_read_only%3Don")
    else:
        store = Store(f"sqlite:///file:{store_address}?mode=ro&uri=true")
    assert [r.id for r in store.runs()] == [run().id]
    with pytest.raises(StoreError, match=r"read-?only"):
        store.write([record("b")], [])
    assert len(full.attempts(run().id)) == 1
    store.close()
    full.close()


def test_without_the_extra_the_message_names_it(tmp_path):
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from pennyweight.cli import main\n"
        f"sys.argv = ['pennyweight', 'runs', '--store', 'postgresql://me:{SECRET}@127.0.0.1/db']\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert "extra 'postgresql'" in done.stderr
    assert SECRET not in done.stderr


def test_a_wrong_address_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for address in ("mysql://host/db", "sqlite://", ":memory:"):
        with pytest.raises(UsageError, match="give a path"):
            Store(address).add_run(run())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("address", "command"),
    [
        (".pennyweight/pennyweight.db", "pennyweight run --resume R"),
        ("our db", "pennyweight run --resume R --store 'our db'"),
        ("postgresql://me@host/db", "pennyweight run --resume R --store postgresql://me@host/db"),
        (f"postgresql://me:{SECRET}@host/db", "PENNYWEIGHT_STORE=… pennyweight run --resume R"),
    ],
)
def test_the_command_that_resumes_has_the_store_and_no_password(address, command, monkeypatch):
    monkeypatch.delenv("PENNYWEIGHT_STORE", raising=False)
    assert again(address, "R") == command
    monkeypatch.setenv("PENNYWEIGHT_STORE", address)
    assert again(address, "R") == "pennyweight run --resume R"


def test_a_medium_that_cannot_be_written_can_be_read(tmp_path):
    if subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode:
        pytest.skip("this user may not mount file systems")
    store = Store(str(tmp_path / "s.db"))
    store.add_run(run())
    store.write([record("a", response="4", target="4")], [])
    store.close()
    mount = f"mount --bind {tmp_path} {tmp_path} && mount -o remount,bind,ro {tmp_path}"
    for arguments, code in (("runs", 0), ("rm latest --yes", 4)):
        command = (
            f"{mount} && exec {sys.executable} -m pennyweight {arguments} --store {tmp_path}/s.db"
        )
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-c", command], capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stderr
        assert run().id in done.stdout if not code else "readonly" in done.stderr


def test_who_may_only_read_sees_what_the_owner_adds(tmp_path, monkeypatch):
    may = os.access
    with closing(Store(str(tmp_path / "s.db"))) as owner:
        owner.add_run(run())
    with monkeypatch.context() as other, closing(Store(str(tmp_path / "s.db"))) as reader:
        other.setattr(os, "access", lambda path, mode: mode != os.W_OK and may(path, mode))
        assert len(reader.runs()) == 1
        other.undo()
        with closing(Store(str(tmp_path / "s.db"))) as owner:
            for number in range(300):
                owner.add_run(replace(run(), id=f"later-{number}"))
            assert len(reader.runs()) == 301
        assert len(reader.runs()) == 301


def modes(*paths):
    return [oct(path.stat().st_mode & 0o777) for path in paths]


def test_a_new_store_can_be_read_only_by_its_owner(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with closing(Store(".pennyweight/pennyweight.db")) as store:
        store.add_run(run())
        folder = tmp_path / ".pennyweight"
        files = sorted(folder.glob("*.db*"))
        assert [file.name.partition("-")[2] for file in files] == ["", "shm", "wal"]
        assert modes(folder, *files) == ["0o700", *["0o600"] * 3]


def test_folders_and_files_that_exist_keep_their_modes(tmp_path):
    folder, file = tmp_path / "team", tmp_path / "team" / "store.db"
    folder.mkdir(mode=0o755)
    file.touch(0o644)
    folder.chmod(0o755)
    file.chmod(0o644)
    with closing(Store(str(file))) as store:
        store.add_run(run())
        assert modes(folder, file) == ["0o755", "0o644"]


def test_a_lock_is_waited_for_once(tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "BUSY_TIMEOUT", 0.3)
    waits = []
    with closing(Store(str(tmp_path / "s.db"))) as store:
        store.add_run(run())
        with closing(sqlite3.connect(store.address)) as other:
            other.execute("BEGIN IMMEDIATE")
            for _ in range(4):
                with pytest.raises(StoreError, match="locked"):
                    store.set_run(RUN, status="failed")
                monkeypatch.setattr(connection, "BUSY_TIMEOUT", 60.0)
                with store.engine.connect() as asked:
                    waits.append(asked.exec_driver_sql("PRAGMA busy_timeout").scalar())
            other.rollback()
        store.set_run(RUN, status="done")
    assert waits == [connection.SHORT_WAIT * 1000] * 4


@pytest.mark.parametrize("words", [("runs",), ("score", "latest"), ("rm", "latest", "--yes")])
def test_a_lock_on_a_server_ends_every_command(postgresql, monkeypatch, words):
    import psycopg

    address = postgresql.database()
    with closing(Store(address)) as store:
        store.add_run(run())
    monkeypatch.setattr(connection, "BUSY_TIMEOUT", 0.2)
    with psycopg.connect(address) as other:
        other.execute("LOCK TABLE pennyweight_run IN ACCESS EXCLUSIVE MODE")
        done = CliRunner().invoke(cli, [*words, "--store", address], standalone_mode=False)
        other.rollback()
    assert isinstance(done.exception, StoreError)
    assert "lock timeout" in str(done.exception)


@pytest.mark.parametrize("words", [("runs",), ("score", "latest"), ("rm", "latest", "--yes")])
def test_a_lock_on_the_whole_store_ends_every_command(tmp_path, monkeypatch, words):
    address = str(tmp_path / "store.db")
    with closing(Store(address)) as store:
        store.add_run(run())
    monkeypatch.setattr(connection, "BUSY_TIMEOUT", 0.2)
    with closing(sqlite3.connect(address, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        done = CliRunner().invoke(cli, [*words, "--store", address], standalone_mode=False)
    assert isinstance(done.exception, StoreError)
    assert "locked" in str(done.exception)


def test_a_file_that_is_no_database_holds_nothing_that_is_safe(tmp_path):
    path = tmp_path / "junk.db"
    path.write_text("This is a letter, and not a database. " * 9)
    said = message("runs", "--store", str(path), code=StoreError.exit_code)
    assert "file is not a database. Name another file with --store" in said
    assert "safe" not in said


def test_a_transaction_of_a_stopped_process_ends(postgresql, monkeypatch):
    """Others get the lock that it holds, and what it does next can be tried again."""
    monkeypatch.setattr(connection, "BUSY_TIMEOUT", 3.0)
    address = postgresql.database()
    with closing(Store(address)) as stopped, closing(Store(address)) as other:
        connection.limit_idle(stopped.engine)
        lock = text("LOCK TABLE pennyweight_run IN ACCESS EXCLUSIVE MODE")
        with stopped.engine.connect() as holding:
            holding.execute(lock)
            with other.engine.begin() as waiting:
                waiting.execute(lock)
            with pytest.raises(DBAPIError) as gone:
                holding.execute(text("SELECT 1"))
        assert gone.value.connection_invalidated or (
            gone.value.orig.sqlstate in connection.TRANSIENT_STATES
        )
        assert stopped.runs() == []


LOST = """
import sys
from contextlib import closing, suppress
import psycopg
from pennyweight.errors import StoreError
from pennyweight.store import store as module
from pennyweight.store.store import Store
from store.samples import call, record, run
plain = module.insert_fenced

def insert(store, connection, *given, **more):
    own = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
    with psycopg.connect(sys.argv[1]) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [own])
    module.insert_fenced = plain
    plain(store, connection, *given, **more)

with closing(Store(sys.argv[1])) as store:
    store.add_run(run())
    module.insert_fenced = insert
    store.write([record("a")], [call("a")])
    print(len(store.attempts(run().id)))
"""


def test_a_connection_that_is_lost_within_a_group_is_not_written_about(postgresql):
    done = subprocess.run(
        [sys.executable, "-c", LOST, postgresql.database()],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("1\n", "")
