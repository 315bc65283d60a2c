"""A disk that fails and loses power: a real process writes to a store, and each change is logged.

`python disk.py record FOLDER` writes records and logs each change of the folder. A power failure
is simulated afterwards from that log, at any place in it: what was synced is there; of everything
else each sector is there or not, at random. `python disk.py fail FOLDER SEED…` lets one write or
sync fail for each seed, or all from one on, and goes on as an application would.
"""

import ctypes
import errno
import os
import random
import struct
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
OPEN, WRITE, TRUNCATE, SYNC, UNLINK = range(1, 6)
HEADER = struct.Struct("iiqq")
SECTOR = 512
RECOVERED, UNREACHED, BROKEN = 0, 10, 11
"""How a process with a failing disk ends: all is written, no change failed, the disk stayed bad."""
ACKNOWLEDGED = "acknowledged"
"""The file to which the process appends the tasks that the store confirmed."""


def compiled(folder):
    library = folder / "disk.so"
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", library, HERE / "disk.c", "-ldl", "-lpthread"]
    subprocess.run(command, check=True)
    return library


def start(library, *arguments, folder, **more):
    environment = {**os.environ, "LD_PRELOAD": str(library), "DISK_FOLDER": str(folder), **more}
    environment["PYTHONPATH"] = str(HERE.parent)
    command = [sys.executable, __file__, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@dataclass
class File:
    """A file: its bytes as they were last synced, and the changes since."""

    synced: bytearray = field(default_factory=bytearray)
    changes: list[tuple[int, int, bytes]] = field(default_factory=list)

    def sync(self):
        for change in self.changes:
            _apply(self.synced, change)
        self.changes.clear()

    def after_power_loss(self, rng):
        """Return the file as a disk may hold it: each sector in any of its later states."""
        states = [bytes(self.synced)]
        now = bytearray(self.synced)
        for change in self.changes:
            _apply(now, change)
            states.append(bytes(now))
        content = bytearray(rng.choice(states))
        touched = {
            sector
            for kind, offset, data in self.changes
            if kind == WRITE
            for sector in range(offset // SECTOR, (offset + len(data) - 1) // SECTOR + 1)
        }
        for sector in touched:
            begin = sector * SECTOR
            piece = rng.choice(states)[begin : begin + SECTOR]
            if begin + len(piece) <= len(content):
                content[begin : begin + len(piece)] = piece
        return bytes(content)


def _apply(content, change):
    kind, offset, data = change
    if kind == TRUNCATE:
        del content[offset:]
        content.extend(bytes(offset - len(content)))
    else:
        content.extend(bytes(max(0, offset - len(content))))
        content[offset : offset + len(data)] = data


def changes(log):
    """Yield the kind, path, offset and bytes of each logged change."""
    content, at = log.read_bytes(), 0
    while at < len(content):
        kind, path, offset, length = HEADER.unpack_from(content, at)
        at += HEADER.size
        name, at = content[at : at + path].decode(), at + path
        yield kind, name, offset, content[at : at + length]
        at += length


def lose_power(logged, place, rng, *, lying=False):
    """Return the files after a power failure at a place in the log, and what was acknowledged.

    A `lying` disk confirms a sync and does nothing.
    """
    names, durable, pending, confirmed = {}, {}, [], b""
    for kind, path, offset, data in logged[:place]:
        if Path(path).name == ACKNOWLEDGED:
            confirmed += data
        elif kind == OPEN and path not in names:
            names[path] = File()
            pending.append((path, names[path]))
        elif kind == UNLINK:
            names.pop(path, None)
            pending.append((path, None))
        elif kind == SYNC and not lying:
            if path in names:
                names[path].sync()
            else:  # a folder: its entries
                durable.update(pending)
                pending.clear()
        elif kind in {WRITE, TRUNCATE}:
            names[path].changes.append((kind, offset, data))
    durable.update(pending[: rng.randint(0, len(pending))])
    files = {path: file.after_power_loss(rng) for path, file in durable.items() if file}
    return files, confirmed.decode().split()


def response(task):
    """Return the text that the record of a task must hold, of a size that depends on the task."""
    rng = random.Random(task)
    return rng.randbytes(rng.randint(10, 12_000)).hex()


def _write(store, tasks, acknowledge):
    from store import samples

    rows = [samples.record(task, response=response(task)) for task in tasks]
    store.write(rows, [samples.call(task) for task in tasks])
    acknowledge(tasks)


def workload(folder, rng, batches, *, fails=()):
    """Write batches of records; append each task to a file once the store has confirmed it."""
    from pennyweight.store.store import Store
    from store import samples

    file = os.open(folder / ACKNOWLEDGED, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def acknowledge(tasks):
        os.write(file, "".join(f"{task}\n" for task in tasks).encode())

    store = Store(str(folder / "store.db"))
    for attempt in range(3):  # one change fails; the next try is on a sound disk
        try:
            store.add_run(samples.run())
            break
        except fails:
            if attempt == 2:
                raise
            if store.exists and store.runs():
                break
    number = 0
    for batch in range(batches):
        tasks = [f"t{number + i}" for i in range(rng.randint(1, 12))]
        number += len(tasks)
        try:
            _write(store, tasks, acknowledge)
        except fails:
            _write(store, tasks, acknowledge)
        if batch % 17 == 16:  # the last connection to close moves the log into the database
            store.close()
    store.close()


def fail(folder, seed):
    """Let one change fail in a process that was forked for it; return how it ended."""
    from pennyweight.errors import StoreError

    disk = ctypes.CDLL(None)
    disk.disk_left.restype = ctypes.c_long
    rng = random.Random(seed)
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        forever = rng.random() < 0.3
        place, error = rng.randint(1, 260), rng.choice([errno.EIO, errno.ENOSPC])
        disk.disk_fail(ctypes.c_long(place), error, forever)
        try:
            workload(folder, rng, 40, fails=StoreError)
        except StoreError:
            os._exit(BROKEN if forever else 1)
        os._exit(UNREACHED if disk.disk_left() else RECOVERED)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        os._exit(1)


def main():
    command, folder, *seeds = sys.argv[1:]
    import pennyweight.store.store  # noqa: F401  (loaded once, before the forks)

    if command == "record":
        workload(Path(folder), random.Random(int(seeds[0])), 60)
        return
    for seed in map(int, seeds):
        place = Path(folder) / str(seed)
        place.mkdir()
        print(seed, fail(place, seed), flush=True)


if __name__ == "__main__":
    main()
