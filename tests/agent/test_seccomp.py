"""The filter of system calls: what it refuses, in real sandboxes and in a reference interpreter."""

import errno
import re
import struct
from pathlib import Path

import pytest

from agent.trying import attempt, script
from pennyweight.agent.seccomp import (
    ARCHITECTURES,
    CLONE3,
    DENIED,
    WITH_FLAGS,
    filter_of,
)

ALLOWED, KILLED = "allowed", "killed"
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


def decided(program, architecture, number, argument=0):
    """Interpret a filter, as the kernel does."""
    data = struct.pack("=IIQ6Q", number, architecture, 0, argument, *[0] * 5)
    steps = list(struct.iter_unpack("=HBBI", program))
    at, held = 0, 0
    while True:
        code, yes, no, value = steps[at]
        at += 1
        if code == 0x20:
            held = struct.unpack_from("=I", data, value)[0]
        elif code == 0x06:
            action = value & 0xFFFF0000
            return {0x7FFF0000: ALLOWED, 0x80000000: KILLED}.get(action, value & 0xFFFF)
        else:
            holds = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[code]
            at += yes if holds else no


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_each_system_call_is_allowed_or_refused(machine):
    program, architecture = filter_of(machine), ARCHITECTURES[machine]
    own = list(ARCHITECTURES).index(machine)
    refused = {numbers[own] for numbers in DENIED.values()}
    for number in range(600):
        expected = errno.EPERM if number in refused else ALLOWED
        expected = errno.ENOSYS if number == CLONE3 else expected
        assert decided(program, architecture, number) == expected, number
    for numbers in WITH_FLAGS.values():
        assert decided(program, architecture, numbers[own], 0x10000011) == errno.EPERM
        assert decided(program, architecture, numbers[own], 0x00000011) == ALLOWED
    assert decided(program, architecture, 0x40000000) == KILLED
    assert decided(program, 0x40000003, 1) == KILLED  # 32-bit x86


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_numbers_are_those_of_the_kernel(machine):
    if not HEADERS[machine].exists():
        pytest.skip(f"{HEADERS[machine]} is not installed")
    text = HEADERS[machine].read_text()
    found = {m[1]: int(m[2]) for m in re.finditer(r"#define __NR_(\w+)\s+(\d+)\n", text)}
    own = list(ARCHITECTURES).index(machine)
    named = {**DENIED, **WITH_FLAGS, "clone3": (CLONE3, CLONE3)}
    assert {name: found[name] for name in named} == {n: k[own] for n, k in named.items()}


def test_an_unknown_architecture_has_no_filter():
    assert filter_of("s390x") is None


REACH = """
    import ctypes, os
    libc = ctypes.CDLL(None, use_errno=True)
    for request in (16, 0x4206):  # attach, seize
        print(libc.ptrace(request, 1, 0, 0), os.strerror(ctypes.get_errno()))
    for path in ("/proc/1/mem", "/proc/1/task/1/mem"):
        try:
            os.open(path, os.O_RDWR)
            print("opened")
        except PermissionError:
            print("refused")
"""


@pytest.mark.usefixtures("_bubblewrap")
def test_an_agent_cannot_reach_into_the_init_process_of_its_sandbox(tmp_path):
    reply = attempt(script(tmp_path, REACH, timeout=20))
    assert reply.status == "ok"
    refused = ["-1 Operation not permitted"] * 2 + ["refused"] * 2
    assert reply.text.splitlines() == refused


@pytest.mark.usefixtures("_bubblewrap")
def test_rarely_used_parts_of_the_kernel_are_closed(tmp_path):
    code = """
        import ctypes, os, platform, subprocess, sys, threading
        libc = ctypes.CDLL(None, use_errno=True)
        own = ["x86_64", "aarch64"].index(platform.machine())
        for name, numbers in NUMBERS.items():
            libc.syscall(numbers[own], 0, 0, 0, 0, 0, 0)
            print(name, ctypes.get_errno(), flush=True)
        thread = threading.Thread(target=print, args=["threads"], kwargs={"flush": True})
        thread.start()
        thread.join()
        subprocess.run([sys.executable, "-c", "print('processes')"], check=True)
    """
    code = code.replace("NUMBERS", repr({**DENIED, "clone3": (CLONE3, CLONE3)}))
    reply = attempt(script(tmp_path, code, timeout=20))
    refused = [f"{name} {errno.EPERM}" for name in DENIED]
    expected = [*refused, f"clone3 {errno.ENOSYS}", "threads", "processes"]
    assert reply.text.splitlines() == expected, reply.work["stderr"]
