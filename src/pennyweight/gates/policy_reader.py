"""The parts of a policy file, read one after the other: each gives gates or settings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pennyweight.catalogue import METRICS
from pennyweight.errors import unknown
from pennyweight.gates.declaration import GATE
from pennyweight.gates.formula import NORMALIZED, read_formula
from pennyweight.gates.gate_reader import ALIASES, GateReader
from pennyweight.gates.invariants import NAMES
from pennyweight.gates.policy import ErrorLimit, Gate, Policy
from pennyweight.gates.threshold import Quantity
from pennyweight.gates.versions import in_force
from pennyweight.schema.kinds import shown
from pennyweight.schema.tree import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pennyweight.gates.policy import Level
    from pennyweight.schema.documents import Document
    from pennyweight.schema.problems import Problems

BLOCKING_RISKS = ("critical", "high")
_LEVELS: tuple[Level, ...] = ("blocking", "warning")
_CRITERIA = {"by_category": "category", "by_capability": "capability"}


@dataclass(slots=True)
class PolicyReader:
    """Makes a policy of what was read, and checks what no single key can tell."""

    file: str
    root: Node
    given: dict[str, Any]
    problems: Problems
    version: str | None
    rules: GateReader

    @classmethod
    def of(cls, document: Document, given: dict[str, Any], version: str | None) -> PolicyReader:
        """Prepare reading a document whose keys were read into `given`."""
        parts = tuple(n for n in given.get("weights") or {} if n not in {*_CRITERIA, "description"})
        file, problems = document.file, document.problems
        rules = GateReader(file, problems, given.get("on", "value"), parts)
        return cls(file, document.root, given, problems, version, rules)

    def policy(self) -> Policy:
        """Read all parts."""
        composite = list(self.composite())
        made = [*self.fragment(), *self.thresholds(), *self.risks(), *self.progressive()]
        made += [*self.criteria(), *composite, *self.gates()]
        weights, metrics = self.weights()
        options: dict[str, Any] = {"weights": metrics} if metrics else {}
        if "positive" in self.given:
            options["positive"] = self.given["positive"]
        budget = self.amount("latency_budget", lambda a: a.value("latency_budget", "ms"))
        if budget is not None:
            options["latency_budget_ms"] = budget
        required, optional = (self.ids(f"{n}_scenarios") for n in ("required", "optional"))
        for both in sorted(set(required) & set(optional)):
            line = self.root.line_at("optional_scenarios")
            self.problems.add(line, f"scenario {both!r} is required and optional; choose one.")
        rate = self.amount("error_rate", lambda a: a.value("error_rate", "rate"))
        if rate is not None and not 0 < rate < 0.5:
            what = "error_rate must be above 0 and below 50 %: no sample is ever free of error."
            self.problems.add(self.root.line_at("error_rate"), what)
        limit = self.amount("errors", ErrorLimit.of)
        return Policy(
            name=self.given.get("policy") or Path(self.file).name,
            gates=tuple(made),
            required=tuple(required),
            optional=tuple(optional),
            weights=weights,
            composites=self.rules.composites,
            options=options,
            set_in=self.places(),
            **({} if rate is None else {"error_rate": rate}),
            **({} if limit is None else {"errors": limit}),
        )

    def places(self) -> dict[str, str]:
        """Say where each setting stands."""

        def at(*path: str) -> str:
            return f"{self.file}, line {self.root.line_at(*path)}"

        found = {key: at(key) for key in self.given if key in self.root.value}
        found |= {f"composite {name}": at("composite") for name in self.rules.composites}
        if "latency_budget" in found:
            found["latency_budget_ms"] = found["latency_budget"]
        weights = self.given.get("weights") or {}
        for key in weights:
            found[f"weights.{key}"] = at("weights", key)
            for name in weights[key] if key in _CRITERIA else ():
                found[f"weights.{key}.{_norm(name)}"] = at("weights", key, name)
        return found

    def amount(self, key: str, read: Callable[[Quantity], Any]) -> Any:
        """Read an amount of the whole policy."""
        node = self.given.get(key)
        if node is None:
            return None
        return self.rules.told(node, lambda: read(Quantity.parse(node.value)))

    def fragment(self) -> Iterator[Gate]:
        """Make a gate of a metric in the form of the specification."""
        name, node = self.given.get("name"), self.given.get("typical_threshold")
        if name is None:
            return
        line = self.root.line_at("name")
        if node is not None:
            path = ("typical_threshold",)
            yield from self.rules.make(name, node, path, line=line, origin="typical")
        elif metric := self.rules.metric(name, line):
            yield Gate(metric, metric, kind=self.rules.kind(metric), note="the policy sets none")

    def thresholds(self) -> Iterator[Gate]:
        """Make gates of thresholds by metric, at either level."""
        node = self.given.get("thresholds")
        if node is None:
            return
        for key, below in node.value.items():
            level = next((level for level in _LEVELS if level == key), None)
            if level is None:
                yield from self.entry(key, below, node, ("thresholds",), "blocking")
            elif not isinstance(below.value, dict):
                self.problems.add(below.line, f"thresholds.{key} must be a mapping of metrics.")
            else:
                for name, one in below.value.items():
                    yield from self.entry(name, one, below, ("thresholds", key), level)

    def entry(
        self, name: str, node: Node, above: Node, path: tuple[str | int, ...], level: Level
    ) -> Iterator[Gate]:
        """Make gates of one metric's threshold."""
        if name == "description":
            return
        line = above.key_line(name)
        others = _LEVELS if len(path) == 1 and isinstance(node.value, dict) else ()
        if self.rules.metric(name, line, *others) is not None:
            yield from self.rules.make(name, node, (*path, name), level=level, line=line,
                                       origin="thresholds")  # fmt: skip

    def risks(self) -> Iterator[Gate]:
        """Make gates of the rows of a risk table."""
        for number, row in enumerate(self.given.get("risk_based_thresholds", [])):
            if {"metric", "threshold", "risk_level"} <= set(row):
                level: Level = "blocking" if row["risk_level"] in BLOCKING_RISKS else "warning"
                path = ("risk_based_thresholds", number, "threshold")
                yield from self.rules.make(row["metric"], row["threshold"], path, level=level,
                                           on=row.get("on"), origin="risk table")  # fmt: skip

    def progressive(self) -> Iterator[Gate]:
        """Make gates of the thresholds that are in force for the version."""
        node = self.given.get("progressive_thresholds")
        if node is None:
            return
        for name, table in node.value.items():
            line = node.key_line(name)
            if name == "description":
                continue
            if not isinstance(table.value, dict):
                self.problems.add(table.line, f"{name} must be a mapping of versions.")
                continue
            if self.version is None:
                self.problems.add(line, f"{name} depends on the version; --version V names it.")
                continue
            chosen = self.rules.told(table, partial(in_force, table.value, self.version))
            if chosen is not None:
                path = ("progressive_thresholds", name, chosen)
                yield from self.rules.make(name, table.value[chosen], path, line=line,
                                           origin="progressive")  # fmt: skip
            elif metric := self.rules.metric(name, line):
                note = f"version {self.version} is below all that have one"
                kind = self.rules.kind(metric)
                yield Gate(metric, metric, kind=kind, note=note, origin="progressive")

    def criteria(self) -> Iterator[Gate]:
        """Make gates of pass rates, overall and by category."""
        given = self.given.get("pass_criteria", {})
        if "overall" in given:
            path = ("pass_criteria", "overall")
            yield from self.rules.make("pass_rate", given["overall"], path, origin="overall")
        for key, column in _CRITERIA.items():
            table = given.get(key)
            for value, node in table.value.items() if table is not None else ():
                if value != "description":
                    yield from self.rules.make(
                        "pass_rate",
                        node,
                        ("pass_criteria", key, value),
                        select=((column, value),),
                        origin="pass criteria",
                    )

    def composite(self) -> Iterator[Gate]:
        """Make gates of a composite's rule for passing."""
        given = self.given.get("composite")
        if given is None:
            return
        node = self.root.value["composite"]
        made = self.rules.told(node, lambda: read_formula(given))
        if made is None:
            return
        for term in made.terms:
            name = ALIASES.get(term.metric, term.metric)
            if term.metric == NORMALIZED:
                continue
            if name not in METRICS or METRICS[name].range != (0, 1):
                why = "is no rate, so it cannot be part of a composite"
                known = [n for n, m in METRICS.items() if m.range == (0, 1)]
                what = unknown("Part", name, [*known, NORMALIZED])
                self.problems.add(node.line, f"{name} {why}." if name in METRICS else what)
        if made.name in {*METRICS, *ALIASES, NORMALIZED} - {"final_score"}:
            what = f"{made.name} is a metric of its own; give the composite another name."
            self.problems.add(node.line, what)
            return
        self.rules.composites[made.name] = made
        on = given.get("on") if isinstance(given, dict) else None
        for metric, written in made.conditions:
            at = Node(written, node.line, written)
            yield from self.rules.make(metric, at, (), on=on, origin="composite")
        if not made.conditions:
            yield Gate(made.name, made.name, note="the composite has no 'pass'")

    def gates(self) -> Iterator[Gate]:
        """Make the gates of a list."""
        for number, node in enumerate(self.given.get("gates", [])):
            given = GATE.read(node, f"gates[{number + 1}]", self.problems)
            if "metric" not in given:
                continue
            title = given.get("name")
            if title in NAMES:
                what = f"{title!r} is the name of a gate that every policy has; choose another."
                self.problems.add(node.line_at("name"), what)
            select = tuple((c, given[c]) for c in ("category", "capability") if c in given)
            yield from self.rules.make(
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

    def weights(self) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
        """Tell the weights of scenarios from those of metrics."""
        given = self.given.get("weights", {})
        by = {c: {_norm(k): v for k, v in given.get(key, {}).items()}
              for key, c in _CRITERIA.items()}  # fmt: skip
        metrics: dict[str, float] = {}
        for name in self.rules.weighted:
            node = self.root.value["weights"].value[name]
            metric = self.rules.metric(name, self.root.line_at("weights", name))
            right = isinstance(node.value, int | float) and not isinstance(node.value, bool)
            if not right or node.value < 0:
                what = f"weights.{name} must be a number of at least 0, not {shown(node)}."
                self.problems.add(node.line, what)
            elif metric is not None:
                metrics[metric] = float(node.value)
        if metrics and not sum(metrics.values()):
            self.problems.add(self.root.line_at("weights"), "the weights add up to 0.")
        return by, metrics

    def ids(self, key: str) -> list[str]:
        """List scenarios."""
        given = self.given.get(key, [])
        return list(dict.fromkeys(given.get("ids", []) if isinstance(given, dict) else given))


def _norm(text: str) -> str:
    return text.strip().lower()
