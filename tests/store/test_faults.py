"""Failing writes and syncs, full disks, torn pages and power failures lose nothing confirmed."""

import random
import shutil
import sqlite3
from contextlib import closing

import pytest

import services
from pennyweight.store.store import Store
from store import disk, samples

POWER_FAILURES = range(250)
FAILING_CHANGES = range(250)
PARTS = 5
"""Each kind is divided among so many tests, which run side by side."""


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    if shutil.which("cc") is None:
        services.missing("compiler")
    return disk.compiled(tmp_path_factory.mktemp("disk"))


@pytest.fixture(scope="session")
def logged(library, tmp_path_factory):
    """Every change of a folder in which a process wrote records, in order."""
    folder = tmp_path_factory.mktemp("written")
    log = tmp_path_factory.mktemp("log") / "changes"
    done = disk.start(library, "record", folder, 1, folder=folder, DISK_LOG=str(log))
    assert done.returncode == 0, done.stderr
    found = list(disk.changes(log))
    assert sum(kind == disk.SYNC for kind, *_ in found) > 60
    return found


def state(folder):
    """Return the response of each task in the store, after checking that the store is sound."""
    path = folder / "store.db"
    with closing(Store(str(path))) as store:
        if not store.runs():
            return {}
        rows, spent = samples.rows(store), store.spent(samples.RUN)
    assert spent["calls"] == len(rows), "a record and its call are written together"
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    return {row["task_id"]: row["response"] for row in rows}


def after_power_loss(logged, seed, folder, **more):
    """Return what a store holds after a power failure, and what the process was told it holds."""
    rng = random.Random(seed)
    files, confirmed = disk.lose_power(logged, rng.randint(1, len(logged)), rng, **more)
    for path, content in files.items():
        if not path.endswith("-shm"):  # memory that processes share
            (folder / path.rsplit("/", 1)[1]).write_bytes(content)
    return state(folder), confirmed


@pytest.mark.parametrize("part", range(PARTS))
def test_a_power_failure_loses_nothing_confirmed(logged, part, tmp_path):
    for seed in POWER_FAILURES[part::PARTS]:
        folder = tmp_path / str(seed)
        folder.mkdir()
        found, confirmed = after_power_loss(logged, seed, folder)
        assert found.items() >= {task: disk.response(task) for task in confirmed}.items(), seed
        assert all(text == disk.response(task) for task, text in found.items()), seed
        shutil.rmtree(folder)


def test_a_disk_that_lies_about_syncs_is_noticed(logged, tmp_path):
    """The simulation can tell: without syncs, confirmed records are lost."""
    lost = 0
    for seed in range(10):
        folder = tmp_path / str(seed)
        folder.mkdir()
        try:
            found, confirmed = after_power_loss(logged, seed, folder, lying=True)
            lost += not set(confirmed) <= set(found)
        except Exception:
            lost += 1
    assert lost > 5


@pytest.mark.parametrize("part", range(PARTS))
def test_a_failing_write_or_sync_loses_nothing_confirmed(library, part, tmp_path):
    seeds = FAILING_CHANGES[part::PARTS]
    done = disk.start(library, "fail", tmp_path, *seeds, folder=tmp_path)
    ends = dict(map(int, line.split()) for line in done.stdout.splitlines())
    assert set(ends) == set(seeds), done.stderr
    assert set(ends.values()) <= {disk.RECOVERED, disk.UNREACHED, disk.BROKEN}, done.stderr
    assert {disk.RECOVERED, disk.BROKEN} <= set(ends.values()), "faults of both kinds were reached"
    for seed, end in ends.items():
        confirmed = (tmp_path / str(seed) / disk.ACKNOWLEDGED).read_text().split()
        found, written = state(tmp_path / str(seed)), {t: disk.response(t) for t in confirmed}
        if end == disk.BROKEN:
            assert found.items() >= written.items(), seed
        else:
            assert found == written, seed
            assert len(confirmed) > 100
