"""The sandbox of a command: bubblewrap, a container, or none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from pennyweight.agent.disk import MemoryDisk
from pennyweight.agent.folders import CONTAINER, AttemptFolders, end_container
from pennyweight.agent.process import SUPERVISOR, ProcessResult
from pennyweight.agent.seccomp import filter_of
from pennyweight.agent.supervisor import Orders
from pennyweight.errors import UsageError
from pennyweight.suite.values import Agent

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
WORK, HOME, TMP = "/workspace", "/home/agent", "/tmp"  # noqa: S108
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix")
_ETC = (
    *("alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies"),
    *("debian_version", "fonts", "gitconfig", "hosts", "ld.so.cache", "ld.so.conf"),
    *("ld.so.conf.d", "localtime"),
    *("magic", "mime.types", "nsswitch.conf", "os-release", "pki", "profile", "protocols"),
    *("python3", "python3.11", "python3.12", "python3.13", "resolv.conf", "services", "ssl"),
    *("terminfo", "timezone"),
)
"""The parts of /etc that programs need; the rest may contain secrets."""
_PEOPLE = "root:x:0:0::/root:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\n"
_SHARED_MEMORY = 64_000_000
_NO_NAMESPACES = ["--unshare-user", "--disable-userns"]
_NO_INIT = ["--ro-bind", "/dev/null", "/proc/1/mem", "--ro-bind", "/dev/null", "/proc/1/task/1/mem"]
"""Hides the memory of the sandbox's init process, which runs as the same user as the agent."""
STATUS = 198
"""The descriptor on which bubblewrap reports the status of its command."""
FILTER = 197
"""The descriptor from which bubblewrap reads the filter of system calls."""
_NOT_RUN = (125, 126, 127)
"""Exit codes of podman and docker if the image or its command cannot be run. The command itself
may also return them, so the engine is asked whether the container started."""
_CREATED = "container-id"
"""The file that an engine writes when it has created a container."""


def home_and_tmp(agent: Agent, folders: AttemptFolders) -> tuple[str, str]:
    """Return where a command finds its home and its temporary files."""
    return (str(folders.home), str(folders.tmp)) if agent.sandbox == "none" else (HOME, TMP)


def find_command(name: str) -> str | None:
    """Find a command, on the system's PATH first and then on the user's."""
    if "/" in name:
        return name if os.access(name, os.X_OK) else None
    return shutil.which(name, path=PATH) or shutil.which(name)


def path_of(agent: Agent) -> str:
    """Return the PATH of a command: the system's, and the folder of the command itself."""
    first = "sh" if agent.shell else agent.command[0]
    found = None if agent.sandbox == "container" else find_command(first)
    if not found or str(Path(found).parent) in PATH.split(":"):
        return PATH
    return f"{Path(found).absolute().parent}:{PATH}"


def described(agent: Agent) -> str:
    """Describe the sandbox of a command."""
    network = "with network" if agent.network else "no network"
    if agent.sandbox == "none":
        return "none (the agent can read and write everything you can)"
    if agent.sandbox == "container":
        return f"{Path(container_engine() or CONTAINER).name}, image {agent.image}, {network}"
    return f"{bubblewrap_version()}, {network}"


def check(agent: Agent) -> None:
    """Raise UsageError if something that the command needs is missing."""
    if agent.sandbox == "bubblewrap":
        wrong = bubblewrap_problem()
        if wrong:
            raise UsageError(
                f"{wrong} Without it an agent can read and write everything you can: set "
                "'sandbox: none' to allow that, or 'sandbox: container' with an image."
            )
    if agent.sandbox == "container":
        if container_engine() is None:
            raise UsageError("'sandbox: container' needs podman or docker; neither is installed.")
        return
    if not agent.shell and find_command(agent.command[0]) is None:
        raise UsageError(f"The command {agent.command[0]!r} is not installed or not executable.")
    if agent.serves and agent.sandbox != "none" and not agent.network:
        raise UsageError(f"{agent.serves} is served on this machine; set 'network: true'.")


@lru_cache(maxsize=1)
def bubblewrap_problem() -> str | None:
    """Return why bubblewrap cannot be used here, or None if it can."""
    found = shutil.which("bwrap")
    if found is None:
        return "bubblewrap is not installed (in Debian and Ubuntu: apt-get install bubblewrap)."
    tried = [found, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc"]
    done = subprocess.run([*tried, "true"], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode == 0:
        return None
    said = (done.stderr.strip().splitlines() or ["no reason was given"])[-1]
    return (
        "bubblewrap is installed but does not work here; often user namespaces are disabled "
        f"({said})."
    )


@lru_cache(maxsize=1)
def can_disable_namespaces() -> bool:
    """Return whether bubblewrap can forbid new user namespaces in its sandbox, as 0.8 and later."""
    return _works(_NO_NAMESPACES)


@lru_cache(maxsize=1)
def can_hide_init() -> bool:
    """Return whether the memory of the sandbox's init process can be hidden."""
    return _works(_NO_INIT)


def can_limit_disk(agent: Agent) -> bool:
    """Return whether the sandbox of a command can have a disk of limited size."""
    return sys.platform == "linux" and agent.sandbox == "bubblewrap" and _starts_on_a_disk()


@lru_cache(maxsize=1)
def _starts_on_a_disk() -> bool:
    """Try it: some systems allow bubblewrap to create namespaces, but not in a namespace."""
    reading, writing = os.pipe()
    with tempfile.TemporaryDirectory() as folder, os.fdopen(reading, "rb") as report:
        try:
            disk = MemoryDisk(Path(folder), 4096, 16, {})
        except OSError:
            os.close(writing)
            return False
        orders = Orders(writing, os.getpid(), 1.0, -1, 1 << 30, 1024, disk=disk.holder)
        words = [sys.executable, "-I", "-S", SUPERVISOR, json.dumps(orders._asdict())]
        words += [*_tried(_NO_NAMESPACES * can_disable_namespaces()), "true"]
        subprocess.run(words, pass_fds=[writing], capture_output=True, check=False)  # noqa: S603
        os.close(writing)
        disk.close()
        return bool(json.loads(report.read() or b"{}").get("exit_code") == 0)


def _tried(options: Sequence[str]) -> list[str]:
    words = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc"]
    return [*words, *options]


def _works(options: Sequence[str]) -> bool:
    words = [*_tried(options), "true"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0  # noqa: S603


@lru_cache(maxsize=1)
def bubblewrap_version() -> str:
    """Return bubblewrap's name and version."""
    done = subprocess.run(["bwrap", "--version"], capture_output=True, text=True, check=False)  # noqa: S607
    return done.stdout.strip() or "bubblewrap"


def container_engine() -> str | None:
    """Find podman or docker."""
    return shutil.which("podman") or shutil.which("docker")


def wrapped(
    agent: Agent, words: Sequence[str], folders: AttemptFolders, names: Sequence[str]
) -> list[str]:
    """Return the command that runs another one in its sandbox; `names` are variables to pass in."""
    if agent.sandbox == "none":
        return list(words)
    if agent.sandbox == "container":
        return [*_container(agent, folders, names), *words]
    return [*_bubblewrap(agent, words[0], folders), "--", *words]


def status_of(agent: Agent) -> int:
    """Return the descriptor on which a sandbox reports the status of its command; 0 for none."""
    return STATUS if agent.sandbox == "bubblewrap" else 0


def files_of(agent: Agent, folders: AttemptFolders) -> dict[int, str]:
    """Write the files that a sandbox reads from descriptors; return their paths."""
    program = filter_of()
    if agent.sandbox != "bubblewrap" or program is None:
        return {}
    path = folders.root / "seccomp"
    path.write_bytes(program)
    return {FILTER: str(path)}


def failure(agent: Agent, folders: AttemptFolders, ended: ProcessResult) -> str | None:
    """Return why a command was not started, or None if it was.

    A sandbox that fails is not a result of the agent. The output and exit code of the command
    itself do not matter here. A container is removed.
    """
    said = (ended.stderr.text.strip().splitlines() or ["no reason was given"])[-1]
    if agent.sandbox == "container":
        begun = ended.exit_code not in _NOT_RUN or _begun(folders)
        end_container(folders.root)
        if not begun and ended.why == "exit":
            return f"The container could not be started: {said}"
    elif ended.started is False and ended.why == "exit" and ended.exit_code == 1:
        return f"The sandbox could not be created: {said}"
    return None


def own_fault(agent: Agent, first: str, ended: ProcessResult) -> bool:
    """Whether a command was not started because the workspace does not contain it."""
    if first.startswith("/") or "/" not in first:
        return False
    if agent.sandbox == "container":
        return ended.exit_code != _NOT_RUN[0]
    return "bwrap: execvp " in ended.stderr.text


def _begun(folders: AttemptFolders) -> bool:
    """Whether an engine started the command of a container."""
    try:
        made = (folders.root / _CREATED).read_text().strip()
        engine = (folders.root / CONTAINER).read_text().split()[0]
    except (OSError, IndexError):
        return False
    words = [engine, "inspect", "--format", "{{.State.StartedAt}}", made]
    done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603
    return done.returncode != 0 or not done.stdout.startswith("0001-01-01")


def _bubblewrap(agent: Agent, first: str, folders: AttemptFolders) -> list[str]:
    people = folders.root / "passwd"
    people.write_text(_PEOPLE)
    words = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--die-with-parent"]
    words += ["--json-status-fd", str(STATUS), *_NO_NAMESPACES * can_disable_namespaces()]
    words += ["--seccomp", str(FILTER)] if filter_of() else []
    words += ["--new-session", "--uid", "1000", "--gid", "1000", "--hostname", "agent"]
    words += ["--share-net"] if agent.network else []
    for folder in SYSTEM:
        words += _shown(folder)
    for name in _ETC:
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    words += ["--ro-bind", folders.mounted(people), "/etc/passwd"]
    if agent.network:
        words += ["--ro-bind-try", "/run/systemd/resolve", "/run/systemd/resolve"]
    # where Pennyweight runs as root, the kernel's settings would be its to change
    words += ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev"]
    words += [*_NO_INIT * can_hide_init(), "--size", str(_SHARED_MEMORY), "--tmpfs", "/dev/shm"]  # noqa: S108
    for path, inside in ((folders.work, WORK), (folders.home, HOME), (folders.tmp, TMP)):
        words += ["--bind", folders.mounted(path), inside]
    for read in agent.read:
        words += ["--ro-bind", read, read]
    words += _own(first, agent.read)
    return [*words, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", WORK]


def _shown(folder: str) -> list[str]:
    """Return arguments that mount a system folder read-only."""
    path = Path(folder)
    if path.is_symlink():
        return ["--symlink", str(path.readlink()), folder]
    return ["--ro-bind", folder, folder] if path.is_dir() else []


def _own(first: str, shown: Sequence[str]) -> list[str]:
    """Return arguments that mount what a command outside the system folders needs of itself.

    That is its file or, for a link, the folder of the linked program, but never the user's home or
    the folder of a suite. A program that needs more lists it under `read`.
    """
    system = tuple(f"{folder}/" for folder in SYSTEM)
    own, real = Path(first), Path(first).resolve()
    if not own.is_absolute() or not own.exists() or first in shown or first.startswith(system):
        return []
    if not own.is_symlink():
        return ["--ro-bind", str(own), str(own)]
    target = real if Path.home().is_relative_to(real.parent) else real.parent
    link = ["--symlink", str(real), str(own)]
    seen = any(own.is_relative_to(folder) for folder in shown)  # the link is there already
    return ["--ro-bind", str(target), str(target), *([] if seen else link)]


def _container(agent: Agent, folders: AttemptFolders, names: Sequence[str]) -> list[str]:
    engine = container_engine() or "podman"
    name = f"pennyweight-{folders.root.parent.name}-{folders.root.name}"
    (folders.root / CONTAINER).write_text(f"{engine} {name}")
    network = "none" if not agent.network else "host" if agent.serves else "bridge"
    (folders.root / _CREATED).unlink(missing_ok=True)
    words = [engine, "run", "--interactive", "--name", name]
    words += ["--cidfile", str(folders.root / _CREATED)]
    words += ["--network", network, "--read-only", "--cap-drop", "ALL"]
    words += ["--security-opt", "no-new-privileges", "--pids-limit", "1024"]
    if Path(engine).name == "docker":
        words += ["--user", f"{os.getuid()}:{os.getgid()}"]
    for path, inside in ((folders.work, WORK), (folders.home, HOME), (folders.tmp, TMP)):
        words += ["--volume", f"{path}:{inside}"]
    for path_ in agent.read:
        words += ["--volume", f"{path_}:{path_}:ro"]
    for variable in names:
        words += ["--env", variable]
    return [*words, "--workdir", WORK, str(agent.image)]
