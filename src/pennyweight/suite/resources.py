"""What a worker of a subject needs of a cluster's node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pennyweight.schema.kinds import MapOf, Number
from pennyweight.schema.structs import Field, Struct

_AMOUNT = Number(0)

RESOURCES = Struct(
    "resources",
    (
        Field("cpu", _AMOUNT, "Processors of a worker (default: 1)."),
        Field("gpu", _AMOUNT, "GPUs of a worker."),
        Field("memory", _AMOUNT, "Megabytes of memory of a worker."),
        Field("custom", MapOf(_AMOUNT), "Resources of nodes that the cluster names itself."),
    ),
    {"cpus": "cpu", "gpus": "gpu", "memory_mb": "memory"},
)

_NAMES = {"cpu": "CPU", "gpu": "GPU", "memory": "memory"}


def read_resources(subject: Mapping[str, Any]) -> dict[str, float]:
    """Return the resources of a subject by the names that Ray has for them, if some are needed.

    >>> read_resources({"resources": {"cpu": 2, "memory": 500, "custom": {"fast_disk": 1}}})
    {'CPU': 2.0, 'memory': 524288000.0, 'fast_disk': 1.0}
    """
    table = subject.get("resources") or {}
    found = {_NAMES[name]: float(table[name]) for name in _NAMES if name in table}
    found |= {name: float(amount) for name, amount in (table.get("custom") or {}).items()}
    if "memory" in found:
        found["memory"] *= 1 << 20
    return {name: amount for name, amount in found.items() if amount}
