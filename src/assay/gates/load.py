"""Load a policy: read it, check all of it, and only then give it out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.catalogue import METRICS
from assay.errors import UsageError, unknown
from assay.gates.form import GATE, POLICY, RULE
from assay.gates.formula import NORMALIZED, read_formula
from assay.gates.policy import Gate, Limit, Margin, Place, Policy
from assay.gates.threshold import Amount, Threshold, kind_of
from assay.gates.version import in_force
from assay.suite.kinds import shown
from assay.suite.problems import Problems, SuiteError
from assay.suite.tree import Node, TreeError, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from assay.gates.formula import Formula
    from assay.gates.policy import Against, Level, On

ALIASES = {"latency_p95": "latency_p95_ms", "latency": "latency_p95_ms"}
"""Metrics under the names that specifications use."""

BLOCKING_RISKS = ("critical", "high")
_LEVELS: tuple[Level, ...] = ("blocking", "warning")
_CRITERIA = {"by_category": "category", "by_capability": "capability"}


def load_policies(paths: Sequence[str | Path], version: str | None = None) -> Policy:
    """Load one policy or several, which are joined."""
    return reduce(Policy.joined, (load_policy(path, version) for path in paths))


def load_policy(path: str | Path, version: str | None = None, text: str | None = None) -> Policy:
    """Load a policy, in JSON or YAML; every mistake in it is told at once, with its line."""
    file = str(path)
    problems = Problems(file)
    source = _read_text(file) if text is None else text
    try:
        root, found = parse(source, is_json=file.lower().endswith(".json"))
    except TreeError as error:
        raise SuiteError([f"{file}, line {error.line}: {error}"]) from None
    for line, what in found:
        problems.add(line, what)
    given = POLICY.read(root, "", problems)
    if isinstance(given, dict):
        policy = _Reader(file, root, given, problems, version).policy()
    problems.stop()
    return policy


def _read_text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise SuiteError([f"{file}: bytes that are not UTF-8."]) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SuiteError([f"{file}: cannot be read: {reason}."]) from None


@dataclass(slots=True)
class _Reader:
    """Makes a policy of what was read, and checks what no single key can tell."""

    file: str
    root: Node
    given: dict[str, Any]
    problems: Problems
    version: str | None
    composites: dict[str, Formula] = field(default_factory=dict)

    def policy(self) -> Policy:
        composite = list(self.composite())
        made = [*self.fragment(), *self.thresholds(), *self.risks(), *self.progressive()]
        made += [*self.criteria(), *composite, *self.gates()]
        weights, metrics = self.weights()
        options: dict[str, Any] = {"weights": metrics} if metrics else {}
        weighed = {gate.metric for gate in made}
        if metrics and "weighted_score" not in weighed:
            made.append(Gate("weighted_score", "weighted_score", note="the policy sets none"))
        if any(weights.values()) and "pass_rate" not in weighed:
            made.append(Gate("pass_rate", "pass_rate", note="the policy sets none"))
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
            self.problems.add(self.root.line_at("error_rate"), "error_rate must be below 50 %.")
        limit = self.amount("errors", Limit.of)
        if not made and not required and not self.problems.found:
            self.problems.add(0, "the policy has no gate; 'thresholds' or 'gates' hold some.")
        return Policy(
            name=self.given.get("policy") or Path(self.file).name,
            gates=tuple(_named_apart(made)),
            required=tuple(required),
            optional=tuple(optional),
            weights=weights,
            composites=self.composites,
            options=options,
            **({} if rate is None else {"error_rate": rate}),
            **({} if limit is None else {"errors": limit}),
        )

    def amount(self, key: str, read: Callable[[Amount], Any]) -> Any:
        node = self.given.get(key)
        return None if node is None else self.told(node, lambda: read(Amount.parse(node.value)))

    def told(self, node: Node, read: Callable[[], Any]) -> Any:
        """Read something; what is wrong with it gets its line."""
        try:
            return read()
        except UsageError as error:
            self.problems.add(node.line, str(error))
            return None

    def metric(self, name: str, line: int) -> str | None:
        name = ALIASES.get(name, name)
        if name in self.composites:
            return name
        if name not in METRICS:
            known = [*METRICS, *ALIASES, *self.composites]
            what = unknown("Metric", name, known, "'assay metrics' lists them all.")
            self.problems.add(line, what)
            return None
        if METRICS[name].range is None and METRICS[name].better is None:
            self.problems.add(line, f"{name} is no number, so it has no threshold.")
            return None
        return name

    def kind(self, metric: str) -> str:
        if metric in self.composites:
            return "rate"
        parts = (self.given.get("weights") or {}) if metric == "weighted_score" else {}
        rates = all(n in METRICS and METRICS[n].range == (0, 1) for n in parts if n[:3] != "by_")
        return kind_of(METRICS[metric], parts_are_rates=rates)

    def rules(
        self,
        name: str,
        node: Node,
        path: tuple[str | int, ...],
        *,
        level: Level = "blocking",
        line: int = 0,
        **more: Any,
    ) -> Iterator[Gate]:
        """Make gates of a threshold, or of a mapping with one and more."""
        metric = self.metric(name, line or node.line)
        if metric is None:
            return
        table = {"threshold": node}
        if isinstance(node.value, dict):
            known = GATE if more.pop("gate", False) else RULE
            if known is RULE:
                RULE.read(node, name, self.problems)
            table = dict(node.value)
        kind = self.kind(metric)
        own = table.get("on")
        on: On = own.value if own else more.pop("on", None) or self.given.get("on", "value")
        more.pop("on", None)
        title = more.pop("title", None) or _title(metric, more)
        base = Gate(title, metric, level=level, kind=kind, **more)
        zone = table.get("indifference")
        if zone:
            apart = self.told(zone, lambda: Amount.parse(zone.value).value(metric, kind))
            base = base if apart is None else replace(base, indifference=apart)
        yield from self.threshold(base, table, node, path, on=on, explicit=own is not None)
        yield from self.against(base, table, on=own.value if own else "confident")

    def threshold(
        self,
        base: Gate,
        table: Mapping[str, Node],
        node: Node,
        path: tuple[str | int, ...],
        *,
        on: On,
        explicit: bool,
    ) -> Iterator[Gate]:
        written = table.get("threshold")
        if written is None:
            if "no_worse_than" not in table and "better" not in table:
                what = "needs 'threshold', 'no_worse_than' or 'better'."
                self.problems.add(node.line, f"{base.name} {what}")
            return
        metric = METRICS[ALIASES.get(base.metric, base.metric)] if base.metric in METRICS else None
        made = self.told(
            written,
            lambda: Threshold.parse(written.value, metric or METRICS["final_score"], base.kind),
        )
        if made is None:
            return
        if made.extreme and explicit and on == "confident":
            self.problems.add(
                written.line,
                f"{base.name}: no number of attempts can show {made}; write 'on: value' (all that "
                "was seen must hold) or a threshold short of it.",
            )
        at = path if written is node else (*path, "threshold")
        place = Place(self.file, written.line, at)
        yield replace(
            base,
            threshold=made,
            on="value" if made.extreme or made.sign == "=" else on,
            place=place,
        )

    def against(self, base: Gate, table: Mapping[str, Node], *, on: On) -> Iterator[Gate]:
        """Make gates that compare with a baseline."""
        name, metric = base.name, base.metric
        margin, better = table.get("no_worse_than"), table.get("better")
        if margin is None and (better is None or better.value is not True):
            return
        where = margin or better
        assert where is not None
        if metric in self.composites or METRICS[metric].better is None:
            self.problems.add(where.line, f"{name} has no direction or no value for each record.")
            return
        made: list[tuple[Against, Margin | None]] = []
        if margin is not None:
            found = self.told(margin, lambda: Margin.parse(margin.value, metric, base.kind))
            made.append(("no_worse_than", found or Margin(0, False, base.kind)))
        if better is not None and better.value is True:
            made.append(("better", None))
        for against, allowed in made:
            words = "better" if allowed is None else "no worse"
            yield replace(base, name=f"{name} {words}", on=on, against=against, margin=allowed)

    def fragment(self) -> Iterator[Gate]:
        """Make a gate of a metric in the form of the specification."""
        name, node = self.given.get("name"), self.given.get("typical_threshold")
        if name is None:
            return
        line = self.root.line_at("name")
        if node is not None:
            yield from self.rules(name, node, ("typical_threshold",), line=line)
        elif metric := self.metric(name, line):
            yield Gate(metric, metric, kind=self.kind(metric), note="the policy sets none")

    def thresholds(self) -> Iterator[Gate]:
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
        if name != "description":
            line = above.key_lines[name]
            yield from self.rules(name, node, (*path, name), level=level, line=line)

    def risks(self) -> Iterator[Gate]:
        for number, row in enumerate(self.given.get("risk_based_thresholds", [])):
            if {"metric", "threshold", "risk_level"} <= set(row):
                level: Level = "blocking" if row["risk_level"] in BLOCKING_RISKS else "warning"
                path = ("risk_based_thresholds", number, "threshold")
                yield from self.rules(
                    row["metric"], row["threshold"], path, level=level, on=row.get("on")
                )

    def progressive(self) -> Iterator[Gate]:
        node = self.given.get("progressive_thresholds")
        if node is None:
            return
        for name, table in node.value.items():
            line = node.key_lines[name]
            if name == "description":
                continue
            if not isinstance(table.value, dict):
                self.problems.add(table.line, f"{name} must be a mapping of versions.")
                continue
            if self.version is None:
                self.problems.add(line, f"{name} depends on the version; --version V names it.")
                continue
            chosen = self.told(table, partial(in_force, table.value, self.version))
            if chosen is not None:
                path = ("progressive_thresholds", name, chosen)
                yield from self.rules(name, table.value[chosen], path, line=line)
            elif metric := self.metric(name, line):
                note = f"version {self.version} is below all that have one"
                yield Gate(metric, metric, kind=self.kind(metric), note=note)

    def criteria(self) -> Iterator[Gate]:
        given = self.given.get("pass_criteria", {})
        if "overall" in given:
            yield from self.rules("pass_rate", given["overall"], ("pass_criteria", "overall"))
        for key, column in _CRITERIA.items():
            table = given.get(key)
            for value, node in table.value.items() if table is not None else ():
                if value != "description":
                    path = ("pass_criteria", key, value)
                    yield from self.rules("pass_rate", node, path, select=((column, value),))

    def composite(self) -> Iterator[Gate]:
        given = self.given.get("composite")
        if given is None:
            return
        node = self.root.value["composite"]
        made = self.told(node, lambda: read_formula(given))
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
        self.composites[made.name] = made
        on = given.get("on") if isinstance(given, dict) else None
        for metric, written in made.conditions:
            at = Node(written, node.line, written)
            yield from (replace(g, place=None) for g in self.rules(metric, at, (), on=on))
        if not made.conditions:
            yield Gate(made.name, made.name, note="the composite has no 'pass'")

    def gates(self) -> Iterator[Gate]:
        for number, node in enumerate(self.given.get("gates", [])):
            given = GATE.read(node, f"gates[{number + 1}]", self.problems)
            if "metric" not in given:
                continue
            select = tuple((c, given[c]) for c in ("category", "capability") if c in given)
            yield from self.rules(
                given["metric"],
                node,
                ("gates", number),
                level=given.get("level", "blocking"),
                line=node.line_at("metric"),
                select=select,
                title=given.get("name"),
                gate=True,
            )

    def weights(self) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
        """Tell the weights of scenarios from those of metrics."""
        given = self.given.get("weights", {})
        by = {c: {_norm(k): v for k, v in given.get(key, {}).items()}
              for key, c in _CRITERIA.items()}  # fmt: skip
        metrics: dict[str, float] = {}
        for name in (n for n in given if n not in {*_CRITERIA, "description"}):
            node = self.root.value["weights"].value[name]
            metric = self.metric(name, self.root.line_at("weights", name))
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
        given = self.given.get(key, [])
        return list(dict.fromkeys(given.get("ids", []) if isinstance(given, dict) else given))


def _norm(text: str) -> str:
    return text.strip().lower()


def _title(metric: str, more: Mapping[str, Any]) -> str:
    values = ", ".join(value for _, value in more.get("select", ()))
    return f"{metric} of {values}" if values else metric


def _named_apart(gates: Sequence[Gate]) -> Iterator[Gate]:
    """Number gates that have one name."""
    seen: dict[str, int] = {}
    for gate in gates:
        seen[gate.name] = seen.get(gate.name, 0) + 1
        again = seen[gate.name]
        yield gate if again == 1 else replace(gate, name=f"{gate.name} ({again})")
