"""Load policies: read and check each of them, then join them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path

from pennyweight.gates.declaration import POLICY
from pennyweight.gates.gate_reader import ALIASES, NO_THRESHOLD
from pennyweight.gates.policy import Gate, Policy
from pennyweight.gates.policy_reader import PolicyReader
from pennyweight.gates.records import WEIGHTED
from pennyweight.schema.documents import read_document
from pennyweight.schema.kinds import WRONG
from pennyweight.schema.problems import DocumentError

__all__ = ["ALIASES", "load_policies", "load_policy"]


def load_policies(paths: Sequence[str | Path], version: str | None = None) -> Policy:
    """Load one or more policies, and join them."""
    return _complete(reduce(Policy.joined, (_read(path, version) for path in paths)), paths)


def load_policy(path: str | Path, version: str | None = None, text: str | None = None) -> Policy:
    """Load a policy in JSON or YAML; raise DocumentError with every problem and its line.

    `version` selects the progressive thresholds. `text` replaces the content of the file.
    """
    return _complete(_read(path, version, text), [path])


def _read(path: str | Path, version: str | None, text: str | None = None) -> Policy:
    document = read_document(path, text)
    given = POLICY.read(document.root, "", document.problems)
    if given is not WRONG:
        policy = PolicyReader.of(document, given, version).policy()
    document.problems.stop()
    return policy


def _complete(policy: Policy, paths: Sequence[str | Path]) -> Policy:
    """Add a gate that cannot pass for weights that no gate uses, and give gates unique names."""
    gates = list(policy.gates)
    used = {gate.metric for gate in gates}
    weights = policy.options.get("weights", {})
    if weights and "weighted_score" not in used:
        gates.append(Gate("weighted_score", "weighted_score", note=NO_THRESHOLD))
    used |= set(weights)
    used |= {term.metric for formula in policy.composites.values() for term in formula.terms}
    if any(policy.weights.values()) and not used & set(WEIGHTED):
        gates.append(Gate("pass_rate", "pass_rate", note=NO_THRESHOLD))
    if not gates and not policy.required:
        names = ", ".join(map(str, paths))
        raise DocumentError([f"{names}: the policy has no gate; add 'thresholds' or 'gates'."])
    return replace(policy, gates=tuple(_named_apart(gates)))


def _named_apart(gates: Sequence[Gate]) -> list[Gate]:
    """Tell gates of one name apart by the shortest description of their place that does."""
    names = [gate.name for gate in gates]
    for name in [n for n, times in Counter(names).items() if times > 1]:
        same = [i for i, one in enumerate(names) if one == name]
        descriptions = ([describe(gates[i]) for i in same] for describe in _PLACES)
        distinct = (d for d in descriptions if all(d) and len(set(d)) == len(d))
        labels = next(distinct, [str(number) for number in range(1, len(same) + 1)])
        for i, label in zip(same, labels, strict=True):
            names[i] = f"{name} ({label})"
    seen: Counter[str] = Counter()
    for i, name in enumerate(names):
        seen[name] += 1
        names[i] = name if seen[name] == 1 else f"{name} ({seen[name]})"
    return [replace(gate, name=name) for gate, name in zip(gates, names, strict=True)]


def _file(gate: Gate) -> str:
    return Path(gate.place.file).name if gate.place else ""


def _with_file(part: str, gate: Gate) -> str:
    return f"{part}, {_file(gate)}" if part and gate.place else ""


_PLACES: tuple[Callable[[Gate], str], ...] = (
    lambda gate: gate.origin,
    _file,
    lambda gate: _with_file(gate.origin, gate),
    lambda gate: gate.entry,
    lambda gate: _with_file(gate.entry, gate),
    lambda gate: f"{gate.entry}, {gate.place.file}" if gate.place else "",
)
"""Descriptions of the place of a gate, the shortest first."""
