"""The system calls that a command in bubblewrap may not use, as a filter for the kernel.

The filter is a classic BPF program (see seccomp(2)) in the format that `bwrap --seccomp` reads. It
covers system calls that reach into other processes or into rarely used parts of the kernel. What
else needs privileges fails without it, because bubblewrap drops them.
"""

from __future__ import annotations

import errno
import platform
import struct

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
DENIED = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "setns": (308, 268),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
}
"""System calls that fail with EPERM, with their numbers on each architecture."""
WITH_FLAGS = {"clone": (56, 220), "unshare": (272, 97)}
"""System calls that fail with EPERM if they would create a user namespace."""
CLONE3 = 435
"""Its flags are out of a filter's sight. It fails with ENOSYS, so that programs use clone."""
_NEW_USER = 0x10000000
_X32 = 0x40000000
"""The numbers of another set of system calls on x86_64 begin here."""
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000


def filter_of(machine: str = "") -> bytes | None:
    """Return the filter for an architecture, by default this one; None if there is none for it."""
    names = list(ARCHITECTURES)
    machine = machine or platform.machine()
    if machine not in names:
        return None
    own = names.index(machine)
    flags, denied = ([n[own] for n in table.values()] for table in (WITH_FLAGS, DENIED))
    head = 5 + len(flags)
    allow = head + len(denied)
    look, deny, missing, kill = allow + 1, allow + 4, allow + 5, allow + 6
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 0, kill - 2, ARCHITECTURES[machine]),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, kill - 4, 0, _X32),
        (_EQUAL, missing - 5, 0, CLONE3),
        *((_EQUAL, look - 6 - i, 0, number) for i, number in enumerate(flags)),
        *((_EQUAL, deny - head - 1 - i, 0, number) for i, number in enumerate(denied)),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_ANY_BIT, 1, 0, _NEW_USER),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _ERROR | errno.EPERM),
        (_RETURN, 0, 0, _ERROR | errno.ENOSYS),
        (_RETURN, 0, 0, _KILL),
    ]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
