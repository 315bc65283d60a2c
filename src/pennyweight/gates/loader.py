"""Load policies: read and check each of them, then join them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any

from pennyweight.catalogue import METRICS, canonical
from pennyweight.errors import unknown
from pennyweight.gates.declaration import GATE, POLICY, WEIGHT
from pennyweight.gates.gate_reader import NO_THRESHOLD, GateReader
from pennyweight.gates.invariants import NAMES
from pennyweight.gates.policy import (
    NORMALIZED,
    ErrorLimit,
    Formula,
    Gate,
    Level,
    Policy,
    read_formula,
)
from pennyweight.gates.records import WEIGHTED
from pennyweight.gates.threshold import Quantity, in_force
from pennyweight.schema.documents import read_document
from pennyweight.schema.kinds import WRONG
from pennyweight.schema.problems import DocumentError, Problems
from pennyweight.schema.tree import Node

BLOCKING_RISKS = ("critical", "high")
_LEVELS: tuple[Level, ...] = ("blocking", "warning")
_CRITERIA = {"by_category": "category", "by_capability": "capability"}


@dataclass(slots=True)
class PolicyReader:
    """Reads a policy from its keys, and checks those that depend on each other."""

    root: Node
    given: dict[str, Any]
    version: str | None
    reader: GateReader
    problems: Problems

    def policy(self) -> Policy:
        """Read all parts."""
        composite = list(self._composite())
        gates = [*self._fragment(), *self._thresholds(), *self._risks(), *self._progressive()]
        gates += [*self._criteria(), *composite, *self._gates()]
        weights, metrics = self._weights()
        options: dict[str, Any] = {"weights": metrics} if metrics else {}
        if "positive" in self.given:
            options["positive"] = self.given["positive"]
        budget = self._quantity("latency_budget", lambda q: q.value("latency_budget", "ms"))
        if budget is not None:
            options["latency_budget_ms"] = budget
        required, optional = (self._ids(f"{n}_scenarios") for n in ("required", "optional"))
        for both in sorted(set(required) & set(optional)):
            line = self.root.line_at("optional_scenarios")
            self.problems.add(line, f"scenario {both!r} is both required and optional.")
        rate = self._quantity("error_rate", lambda q: q.value("error_rate", "rate"))
        if rate is not None and not 0 < rate < 0.5:
            line = self.root.line_at("error_rate")
            self.problems.add(line, "error_rate must be above 0 and below 50 %.")
        limit = self._quantity("errors", ErrorLimit.of)
        return Policy(
            name=self.given.get("policy") or Path(self.reader.file).name,
            gates=tuple(gates),
            required=tuple(required),
            optional=tuple(optional),
            weights=weights,
            composites=self.reader.composites,
            options=options,
            set_in=self._places(),
            **({} if rate is None else {"error_rate": rate}),
            **({} if limit is None else {"errors": limit}),
        )

    def _places(self) -> dict[str, str]:
        def at(*path: str) -> str:
            return f"{self.reader.file}, line {self.root.line_at(*path)}"

        places = {key: at(key) for key in self.given if key in self.root.value}
        places |= {f"composite {name}": at("composite") for name in self.reader.composites}
        if "latency_budget" in places:
            places["latency_budget_ms"] = places["latency_budget"]
        weights = self.given.get("weights") or {}
        for key in weights:
            places[f"weights.{key}"] = at("weights", key)
            for name in weights[key] if key in _CRITERIA else ():
                places[f"weights.{key}.{_norm(name)}"] = at("weights", key, name)
        return places

    def _quantity(self, key: str, read: Callable[[Quantity], Any]) -> Any:
        node = self.given.get(key)
        return node and self.reader.parsed(node, lambda: read(Quantity.parse(node.value)))

    def _fragment(self) -> Iterator[Gate]:
        """Read a single metric, in the form of the specification."""
        name, node = self.given.get("name"), self.given.get("typical_threshold")
        if name is None:
            return
        line = self.root.line_at("name")
        if node is not None:
            path = ("typical_threshold",)
            yield from self.reader.read(name, node, path, line=line, origin="typical")
        elif metric := self.reader.metric(name, line):
            yield Gate(metric, metric, kind=self.reader.kind(metric), note=NO_THRESHOLD)

    def _thresholds(self) -> Iterator[Gate]:
        node = self.given.get("thresholds")
        if node is None:
            return
        for key, below in node.items():
            level = next((level for level in _LEVELS if level == key), None)
            if level is None:
                yield from self._threshold(key, below, node, ("thresholds",), "blocking")
            elif not below.is_mapping:
                self.problems.add(below.line, f"thresholds.{key} must be a mapping of metrics.")
            else:
                for name, value in below.items():
                    yield from self._threshold(name, value, below, ("thresholds", key), level)

    def _threshold(
        self, name: str, node: Node, above: Node, path: tuple[str | int, ...], level: Level
    ) -> Iterator[Gate]:
        line = above.key_line(name)
        others = _LEVELS if len(path) == 1 and node.is_mapping else ()
        if name != "description" and self.reader.metric(name, line, *others):
            yield from self.reader.read(
                name, node, (*path, name), level=level, line=line, origin="thresholds"
            )

    def _risks(self) -> Iterator[Gate]:
        for number, row in enumerate(self.given.get("risk_based_thresholds", [])):
            if {"metric", "threshold", "risk_level"} <= set(row):
                level: Level = "blocking" if row["risk_level"] in BLOCKING_RISKS else "warning"
                yield from self.reader.read(
                    row["metric"],
                    row["threshold"],
                    ("risk_based_thresholds", number, "threshold"),
                    level=level,
                    on=row.get("on"),
                    origin="risk table",
                    entry=f"risk table, row {number + 1}",
                )

    def _progressive(self) -> Iterator[Gate]:
        node = self.given.get("progressive_thresholds")
        if node is None:
            return
        if node.is_list:
            yield from self._progressive_rows(node)
            return
        for name, table in node.items():
            line = node.key_line(name)
            if name == "description":
                continue
            if not table.is_mapping:
                self.problems.add(table.line, f"{name} must be a mapping of versions.")
                continue
            if self.version is None:
                self.problems.add(line, f"{name} depends on the version; pass --version V.")
                continue
            chosen = self.reader.parsed(table, partial(in_force, table.value, self.version))
            if chosen is not None:
                path = ("progressive_thresholds", name, chosen)
                yield from self.reader.read(
                    name, table.value[chosen], path, line=line, origin="progressive"
                )
            elif metric := self.reader.metric(name, line):
                note = f"version {self.version} is lower than all versions in the table"
                kind = self.reader.kind(metric)
                yield Gate(metric, metric, kind=kind, note=note, origin="progressive")

    def _progressive_rows(self, node: Node) -> Iterator[Gate]:
        """Read rows of versions, each with the thresholds of one or several metrics."""
        rows: dict[str, int] = {}
        for at, row in enumerate(node.elements()):
            version = row.get("version") if row.is_mapping else None
            if version is None:
                self.problems.add(row.line, "a row of progressive_thresholds needs a version.")
            else:
                rows[str(version.value)] = at
        if self.version is None:
            self.problems.add(node.line, "progressive_thresholds need a version: --version V.")
            return
        if len(rows) < len(node.value):
            return
        elements = list(node.elements())
        names = {n: None for row in elements for n, _ in row.items() if n != "version"}
        for name in names:
            having = [v for v, at in rows.items() if elements[at].get(name) is not None]
            chosen = self.reader.parsed(node, partial(in_force, having, self.version))
            if chosen is not None:
                row, path = elements[rows[chosen]], ("progressive_thresholds", rows[chosen], name)
                yield from self.reader.read(
                    name, row.value[name], path, line=row.key_line(name), origin="progressive"
                )
            elif metric := self.reader.metric(name, node.line):
                note = f"version {self.version} is lower than all versions in the table"
                kind = self.reader.kind(metric)
                yield Gate(metric, metric, kind=kind, note=note, origin="progressive")

    def _criteria(self) -> Iterator[Gate]:
        given = self.given.get("pass_criteria", {})
        if "overall" in given:
            path = ("pass_criteria", "overall")
            yield from self.reader.read("pass_rate", given["overall"], path, origin="overall")
        for key, column in _CRITERIA.items():
            table = given.get(key)
            for value, node in table.items() if table is not None else ():
                if value != "description":
                    yield from self.reader.read(
                        "pass_rate",
                        node,
                        ("pass_criteria", key, value),
                        select=((column, value),),
                        origin="pass criteria",
                    )

    def _composite(self) -> Iterator[Gate]:
        given = self.given.get("composite")
        if given is None:
            return
        node = self.root.value["composite"]
        formula = self.reader.parsed(node, lambda: read_formula(given))
        if formula is None:
            return
        terms = tuple(replace(term, metric=canonical(term.metric)) for term in formula.terms)
        formula = replace(formula, terms=terms)
        self._check_terms(formula, node)
        if canonical(formula.name) in {*METRICS, NORMALIZED} - {"final_score"}:
            self.problems.add(node.line, f"{formula.name} is a metric; rename the composite.")
            return
        self.reader.composites[formula.name] = formula
        on = given.get("on") if isinstance(given, dict) else None
        for number, (metric, written) in enumerate(formula.conditions, 1):
            at = Node(written, node.line, written)
            entry = f"composite, condition {number}"
            yield from self.reader.read(metric, at, (), on=on, origin="composite", entry=entry)
        if not formula.conditions:
            yield Gate(formula.name, formula.name, note="the composite has no 'pass'")

    def _check_terms(self, formula: Formula, node: Node) -> None:
        """Report parts of a composite that are not rates."""
        rates = [NORMALIZED, *(name for name, m in METRICS.items() if m.range == (0, 1))]
        for name in (term.metric for term in formula.terms):
            if name not in rates:
                what = f"{name} is not a rate, so it cannot be part of a composite."
                known = name in METRICS
                self.problems.add(node.line, what if known else unknown("Metric", name, rates))

    def _gates(self) -> Iterator[Gate]:
        for number, node in enumerate(self.given.get("gates", [])):
            given = GATE.read(node, f"gates[{number + 1}]", self.problems)
            if "metric" not in given:
                continue
            title = given.get("name")
            if title in NAMES:
                what = f"{title!r} is the name of a built-in gate; choose another."
                self.problems.add(node.line_at("name"), what)
            select = tuple((c, given[c]) for c in ("category", "capability") if c in given)
            yield from self.reader.read(
                given["metric"],
                node,
                ("gates", number),
                level=given.get("level", "blocking"),
                line=node.line_at("metric"),
                title=title,
                checked=True,
                select=select,
                origin="gates",
            )

    def _weights(self) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
        """Separate the weights of scenarios from those of metrics."""
        given = self.given.get("weights", {})
        scenarios = {
            column: {_norm(name): weight for name, weight in given.get(key, {}).items()}
            for key, column in _CRITERIA.items()
        }
        metrics: dict[str, float] = {}
        for name in self.reader.weighted:
            node = self.root.value["weights"].value[name]
            metric = self.reader.metric(name, self.root.line_at("weights", name))
            weight = WEIGHT.read(node, f"weights.{name}", self.problems)
            if weight is not WRONG and metric is not None:
                metrics[metric] = weight
        if metrics and not sum(metrics.values()):
            self.problems.add(self.root.line_at("weights"), "the weights sum to 0.")
        return scenarios, metrics

    def _ids(self, key: str) -> list[str]:
        given = self.given.get(key, [])
        return list(dict.fromkeys(given.get("ids", []) if isinstance(given, dict) else given))


def _norm(text: str) -> str:
    return text.strip().lower()


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
    root, problems = document.root, document.problems
    given = POLICY.read(root, "", problems)
    if given is not WRONG:
        others = {*_CRITERIA, "description"}
        weighted = tuple(name for name in given.get("weights") or {} if name not in others)
        reader = GateReader(document.file, problems, given.get("on", "value"), weighted)
        policy = PolicyReader(root, given, version, reader, problems).policy()
    problems.stop()
    return policy


def _complete(policy: Policy, paths: Sequence[str | Path]) -> Policy:
    """Add a gate that cannot pass for unused weights, and make the names of gates unique."""
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
    """Add to equal names of gates the shortest description of their place that differs."""
    names = [gate.name for gate in gates]
    for name in [n for n, times in Counter(names).items() if times > 1]:
        same = [i for i, other in enumerate(names) if other == name]
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


def _file(gate: Gate, part: str | None = None) -> str:
    """Return the name of the file, after a part of it; empty if the gate has no such part."""
    if gate.place is None or part == "":
        return ""
    return f"{part}, {Path(gate.place.file).name}" if part else Path(gate.place.file).name


_PLACES: tuple[Callable[[Gate], str], ...] = (
    lambda gate: gate.origin,
    _file,
    lambda gate: _file(gate, gate.origin),
    lambda gate: gate.entry,
    lambda gate: _file(gate, gate.entry),
    lambda gate: f"{gate.entry}, {gate.place.file}" if gate.place else "",
)
"""Descriptions of the place of a gate, the shortest first."""
