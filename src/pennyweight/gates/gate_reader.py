"""Rules about one metric, as a policy writes them: each gives one gate or several."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pennyweight.catalogue import METRICS
from pennyweight.errors import UsageError, unknown
from pennyweight.gates.declaration import RULE
from pennyweight.gates.policy import Gate, Location, Margin
from pennyweight.gates.records import values_of
from pennyweight.gates.threshold import Quantity, Threshold, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pennyweight.gates.formula import Formula
    from pennyweight.gates.policy import Against, Level, On
    from pennyweight.schema.problems import Problems
    from pennyweight.schema.tree import Node

ALIASES = {"latency_p95": "latency_p95_ms", "latency": "latency_p95_ms"}
"""Metrics under the names that specifications use."""
_MEANS = {"latency_p95_ms": "latency_mean_ms", "cost_usd_total": "cost_usd_mean"}
"""What can be compared task by task in place of what cannot."""


@dataclass(slots=True)
class GateReader:
    """Makes gates of rules, and collects what is wrong with them."""

    file: str
    problems: Problems
    on: On = "value"
    """What all gates are decided on unless they say otherwise."""
    weighted: tuple[str, ...] = ()
    """The metrics that `weighted_score` is made of."""
    composites: dict[str, Formula] = field(default_factory=dict)

    def told(self, node: Node, read: Callable[[], Any]) -> Any:
        """Read something; what is wrong with it gets its line."""
        try:
            return read()
        except UsageError as error:
            self.problems.add(node.line, str(error))
            return None

    def metric(self, name: str, line: int, *others: str) -> str | None:
        """Find a metric; `others` are words that could have been meant in its place."""
        name = ALIASES.get(name, name)
        if name in self.composites:
            return name
        if name not in METRICS:
            known = [*METRICS, *ALIASES, *self.composites, *others]
            kind = "Key" if others else "Metric"
            what = unknown(kind, name, known, "'pennyweight metrics' lists all metrics.")
            self.problems.add(line, what)
            return None
        if METRICS[name].range is None and METRICS[name].better is None:
            self.problems.add(line, f"{name} is no number, so it has no threshold.")
            return None
        return name

    def kind(self, metric: str) -> str:
        """Say what thresholds of a metric are about."""
        if metric in self.composites:
            return "rate"
        parts = self.weighted if metric == "weighted_score" else ()
        rates = all(n in METRICS and METRICS[n].range == (0, 1) for n in parts)
        return kind_of(METRICS[metric], parts_are_rates=rates)

    def make(
        self,
        name: str,
        node: Node,
        path: tuple[str | int, ...],
        *,
        level: Level = "blocking",
        line: int = 0,
        on: On | None = None,
        title: str | None = None,
        checked: bool = False,
        **more: Any,
    ) -> Iterator[Gate]:
        """Make gates of a threshold, or of a mapping with one and more."""
        metric = self.metric(name, line or node.line)
        if metric is None:
            return
        table = {"threshold": node}
        if isinstance(node.value, dict):
            if not checked:
                RULE.read(node, name, self.problems)
            table = dict(node.value)
        own = table.get("on")
        chosen: On = own.value if own else on or self.on
        base = Gate(title or _title(metric, more), metric, level=level, on=chosen,
                    kind=self.kind(metric), **more)  # fmt: skip
        zone = table.get("indifference")
        if zone:
            apart = self.told(zone, lambda: Quantity.parse(zone.value).value(metric, base.kind))
            base = base if apart is None else replace(base, indifference=apart)
        rules = [
            *self.threshold(base, table, node, path, explicit=own is not None),
            *self.against(base, table, on=own.value if own else "confident"),
        ]
        if not rules and not {"threshold", "no_worse_than"} & set(table):
            what = "needs 'threshold', 'no_worse_than' or 'better: true'."
            self.problems.add(node.line, f"{base.name} {what}")
        yield from rules

    def threshold(
        self,
        base: Gate,
        table: Mapping[str, Node],
        node: Node,
        path: tuple[str | int, ...],
        *,
        explicit: bool,
    ) -> Iterator[Gate]:
        """Make the gate on a threshold."""
        written = table.get("threshold")
        if written is None:
            return
        metric = METRICS.get(base.metric, METRICS["final_score"])
        if base.metric in self.composites:
            metric = METRICS["final_score"]
        made = self.told(written, lambda: Threshold.parse(written.value, metric, base.kind))
        if made is None:
            return
        settled = _settled(made)
        if settled and explicit and base.on == "confident":
            what = f"{base.name}: {settled}; write 'on: value' or another threshold."
            self.problems.add(written.line, what)
        at = path if written is node else (*path, "threshold")
        place = Location(self.file, written.line, at)
        yield replace(base, threshold=made, on="value" if settled else base.on, place=place)

    def against(self, base: Gate, table: Mapping[str, Node], *, on: On) -> Iterator[Gate]:
        """Make the gates that compare with a baseline."""
        name, metric = base.name, base.metric
        margin, better = table.get("no_worse_than"), table.get("better")
        wanted = better is not None and better.value is True
        if margin is None and not wanted:
            return
        where = margin or better
        assert where is not None
        if metric in self.composites or METRICS[metric].better is None:
            self.problems.add(where.line, f"{name} has no direction or no value for each record.")
            return
        if values_of(metric, {}) is None:
            what = f"{metric} is no mean over records, so tasks cannot be compared one by one"
            hint = f"; take {_MEANS[metric]}." if metric in _MEANS else "; take one that is."
            self.problems.add(where.line, what + hint)
            return
        made: list[tuple[Against, Margin | None]] = []
        if margin is not None:
            found = self.told(margin, lambda: Margin.parse(margin.value, metric, base.kind))
            made.append(("no_worse_than", found or Margin(0, False, base.kind)))
        if wanted:
            made.append(("better", None))
        place = Location(self.file, where.line, ())
        for against, allowed in made:
            words = "better" if allowed is None else "no worse"
            yield replace(base, name=f"{name} {words}", on=on, against=against, margin=allowed,
                          place=place)  # fmt: skip


def _settled(threshold: Threshold) -> str:
    """Say why a threshold is decided on the value alone, if it is."""
    if threshold.sign == "=":
        return f"no interval can show {threshold}"
    return f"no number of attempts can show {threshold}" if threshold.extreme else ""


def _title(metric: str, more: Mapping[str, Any]) -> str:
    values = ", ".join(value for _, value in more.get("select", ()))
    return f"{metric} of {values}" if values else metric
