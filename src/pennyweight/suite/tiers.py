"""Tiers, merged with the tiers they extend and with the texts of the suite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pennyweight.errors import unknown
from pennyweight.schema.problems import Problems
from pennyweight.schema.tree import Node
from pennyweight.suite.values import DEFAULT_PROMPT, Tier


def resolve_tiers(
    suite: Mapping[str, Any], tiers: Mapping[str, Mapping[str, Any]], root: Node, problems: Problems
) -> tuple[Tier, ...]:
    """Merge tiers; what a tier sets, including null, overrides what it extends."""
    for name, tier in tiers.items():
        parent = tier.get("extends")
        line = root.line_at("tiers", name, "extends")
        if parent is not None and parent not in tiers:
            what = unknown("Tier", parent, tiers, f"There are: {', '.join(tiers)}.")
            problems.add(line, f"tiers.{name} extends: {what}")
        elif parent is not None and name in (circle := _ancestors(name, tiers)):
            problems.add(line, f"tiers.{name} extends itself: {' → '.join((name, *circle))}.")
    return tuple(_tier(name, suite, tiers) for name in tiers)


def _ancestors(name: str, tiers: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the tiers that a tier extends, nearest first; stop at a circle."""
    line: list[str] = []
    parent: Any = tiers[name].get("extends")
    while parent in tiers and parent not in line:
        line.append(parent)
        parent = tiers[parent].get("extends")
    return line


def _tier(name: str, suite: Mapping[str, Any], tiers: Mapping[str, Mapping[str, Any]]) -> Tier:
    values = {k: v for k, v in suite.items() if k != "extends"}
    settings: dict[str, Any] = {}
    for one in (*reversed(_ancestors(name, tiers)), name):
        tier = tiers[one]
        values = _over(values, tier)
        if "files" in tier:
            values["work"] = tier["files"](values["work"])
        settings |= tier.get("settings", {})
    return Tier(
        name=name,
        system=values.get("system"),
        prompt=values.get("prompt") or DEFAULT_PROMPT,
        examples=values.get("examples") or (),
        messages=values.get("messages") or (),
        settings=settings,
        extends=tiers[name].get("extends"),
        work=values.get("work"),
    )


def _over(below: dict[str, Any], tier: Mapping[str, Any]) -> dict[str, Any]:
    """Override values with those of a tier; a prompt replaces messages, and vice versa."""
    own = {k: tier[k] for k in ("system", "prompt", "examples", "messages") if k in tier}
    instead = {"prompt": "messages", "messages": "prompt"}
    dropped = {instead[k] for k, v in own.items() if k in instead and v}
    return {**{k: v for k, v in below.items() if k not in dropped}, **own}
