"""Load policies: read them, check all of them, join them, and only then give them out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from pennyweight.gates.declaration import POLICY
from pennyweight.gates.gate_reader import ALIASES
from pennyweight.gates.policy import Gate, Policy
from pennyweight.gates.policy_reader import PolicyReader
from pennyweight.gates.records import WEIGHTED
from pennyweight.schema.documents import read_document
from pennyweight.schema.kinds import WRONG
from pennyweight.schema.problems import DocumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ALIASES", "load_policies", "load_policy"]


def load_policies(paths: Sequence[str | Path], version: str | None = None) -> Policy:
    """Load one policy or several, which are joined."""
    return _whole(reduce(Policy.joined, (_read(path, version) for path in paths)), paths)


def load_policy(path: str | Path, version: str | None = None, text: str | None = None) -> Policy:
    """Load a policy, in JSON or YAML; every mistake in it is told at once, with its line."""
    return _whole(_read(path, version, text), [path])


def _read(path: str | Path, version: str | None, text: str | None = None) -> Policy:
    document = read_document(path, text)
    given = POLICY.read(document.root, "", document.problems)
    if given is not WRONG:
        policy = PolicyReader.of(document, given, version).policy()
    document.problems.stop()
    return policy


def _whole(policy: Policy, paths: Sequence[str | Path]) -> Policy:
    """Finish a policy: weights that nothing uses get a gate that cannot pass; names are unique."""
    made = list(policy.gates)
    used = {gate.metric for gate in made}
    weights = policy.options.get("weights", {})
    if weights and "weighted_score" not in used:
        made.append(Gate("weighted_score", "weighted_score", note="the policy sets none"))
    used |= set(weights)
    used |= {term.metric for formula in policy.composites.values() for term in formula.terms}
    if any(policy.weights.values()) and not used & set(WEIGHTED):
        made.append(Gate("pass_rate", "pass_rate", note="the policy sets none"))
    if not made and not policy.required:
        names = ", ".join(map(str, paths))
        what = f"{names}: the policy has no gate; 'thresholds' or 'gates' hold some."
        raise DocumentError([what])
    return replace(policy, gates=tuple(_named_apart(made)))


def _named_apart(gates: Sequence[Gate]) -> list[Gate]:
    """Tell gates of one name apart: by the part of the policy, its file, or both; else number."""
    names = [gate.name for gate in gates]
    for name in [n for n, times in Counter(names).items() if times > 1]:
        places = [i for i, one in enumerate(names) if one == name]
        labels = [f"{i + 1}" for i in range(len(places))]
        for way in (_part, _file, _both):
            found = [way(gates[i]) for i in places]
            if all(found) and len(set(found)) == len(found):
                labels = found
                break
        for i, label in zip(places, labels, strict=True):
            names[i] = f"{name} ({label})"
    seen: Counter[str] = Counter()
    for i, name in enumerate(names):
        seen[name] += 1
        names[i] = name if seen[name] == 1 else f"{name} ({seen[name]})"
    return [replace(gate, name=name) for gate, name in zip(gates, names, strict=True)]


def _part(gate: Gate) -> str:
    return gate.origin


def _file(gate: Gate) -> str:
    return Path(gate.place.file).name if gate.place else ""


def _both(gate: Gate) -> str:
    return f"{gate.origin}, {_file(gate)}" if gate.origin and gate.place else ""
