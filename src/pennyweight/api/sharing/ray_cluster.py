"""The Ray cluster that `--on` names: one on this machine, or that at an address."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pennyweight.errors import UsageError
from pennyweight.text.safe import clean

LOOPBACK = ("127.", "localhost", "[::1]")
PACKAGE = Path(__file__).parents[2]
EXCLUDED = ["**/.git", "**/.venv", "**/__pycache__", "*.db", "*.db-wal", "*.db-shm"]
"""What is not sent to the nodes."""


def address_of(on: str) -> str | None:
    """Read `ray` or `ray://HOST:PORT`; None is a cluster on this machine.

    >>> address_of("ray://10.0.0.5:6379")
    '10.0.0.5:6379'
    """
    scheme, _, address = on.partition("://")
    if scheme != "ray" or (address and ":" not in address):
        raise UsageError(f"--on {on}: partitions are measured on 'ray' or 'ray://HOST:PORT'.")
    return address or None


def check_installed(instead: str) -> None:
    """Refuse without Ray; `instead` says what works without it."""
    if find_spec("ray") is None:
        raise UsageError(f"--on ray needs Ray: pip install 'pennyweight[ray]'. {instead}")


def connect(address: str | None, working_dir: Path | None = None) -> Any:
    """Connect to a cluster, or start one on this machine; return the module `ray`.

    `working_dir` is sent to the nodes of a cluster at an address, and so is this package.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address is None or address.startswith(LOOPBACK):
        # Ray replaces loopback addresses by others unless told, before it is imported, that
        # there is one machine
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    import ray  # noqa: PLC0415

    options: dict[str, Any] = {
        "log_to_driver": False,
        "logging_level": "ERROR",
        "namespace": "pennyweight",
    }
    if address is None:
        options |= {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    else:
        environment: dict[str, Any] = {"py_modules": [str(PACKAGE)], "excludes": EXCLUDED}
        if working_dir is not None:
            environment["working_dir"] = str(working_dir)
        options |= {"address": address, "runtime_env": environment}
        if address.startswith(LOOPBACK):
            options["_node_ip_address"] = address.rpartition(":")[0]
    try:
        ray.init(**options)
    except Exception as error:  # Ray has no class of its own for a node that does not start
        reason = clean(" ".join(str(error).split()))
        if address is None:
            raise UsageError(f"Ray cannot be started on this machine: {reason}") from None
        raise UsageError(f"There is no Ray cluster at {address}: {reason}") from None
    return ray
