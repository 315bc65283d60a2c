"""Hold a file system in memory that cannot grow beyond its size.

This file runs as a script, with the standard library alone:

    disk_holder.py FOLDER SIZE FILES

It mounts the file system on FOLDER in a mount namespace of its own, so that only processes that
enter the namespace see it, and no privileges are needed. It prints "ready" or why that failed, and
ends when its standard input does, which also happens if its parent is killed. The memory is
released with the last process in the namespace.
"""

from __future__ import annotations

import ctypes
import os
import sys

NEW_USER, NEW_MOUNTS = 0x10000000, 0x00020000
_NO_SUID, _NO_DEVICES, _RECURSIVE, _PRIVATE = 2, 4, 0x4000, 0x40000
_DUMPABLE = 4


def main(folder: str, size: int, files: int) -> None:
    """Mount the file system and wait."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    _done(libc.unshare(NEW_MOUNTS | (NEW_USER if user else 0)))
    if user:
        _write("setgroups", "deny")
        _write("uid_map", f"{user} {user} 1")
        _write("gid_map", f"{group} {group} 1")
    _done(libc.mount(None, b"/", None, _RECURSIVE | _PRIVATE, None))
    options = f"size={size},nr_inodes={files},mode=0700".encode()
    _done(libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", _NO_SUID | _NO_DEVICES, options))
    _done(libc.prctl(_DUMPABLE, 1, 0, 0, 0))  # a new user namespace hides a process from its user
    print("ready", flush=True)
    sys.stdin.read()


def _write(name: str, text: str) -> None:
    with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123 - pathlib takes long to load
        file.write(text)


def _done(returned: int) -> None:
    if returned != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    try:
        main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    except OSError as error:
        print(error.strerror, flush=True)
