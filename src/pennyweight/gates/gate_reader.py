"""Read the gates of one metric from the thresholds and margins in a policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pennyweight.catalogue import METRICS, canonical
from pennyweight.errors import UsageError, unknown
from pennyweight.gates.declaration import RULE
from pennyweight.gates.policy import Formula, Gate, Level, Location, Margin, On
from pennyweight.gates.threshold import Quantity, Threshold, kind_of
from pennyweight.schema.problems import Problems
from pennyweight.schema.tree import Node
from pennyweight.scoring.groups import mean_values
from pennyweight.scoring.repeats import check_repeat_options

"""Metrics by the names that specifications use."""
OPTIONS = ("k", "n", "tau")
"""The options of metrics that a gate can set."""
NO_THRESHOLD = "the policy sets none"
_MEANS = {"latency_p95_ms": "latency_mean_ms", "cost_usd_total": "cost_usd_mean"}
"""Metrics that can be compared task by task, in place of those that cannot."""


@dataclass(slots=True)
class GateReader:
    """Reads gates, and reports their problems."""

    file: str
    problems: Problems
    on: On = "value"
    weighted: tuple[str, ...] = ()
    """The metrics in `weighted_score`."""
    composites: dict[str, Formula] = field(default_factory=dict)

    def parsed(self, node: Node, parse: Callable[[], Any]) -> Any:
        """Return what `parse` returns; report its UsageError with the line of the node."""
        try:
            return parse()
        except UsageError as error:
            self.problems.add(node.line, str(error))
            return None

    def metric(self, name: str, line: int, *others: str) -> str | None:
        """Return the name of a metric, or report a problem; `others` are also allowed there."""
        if name in self.composites:
            return name
        name = canonical(name)
        if name not in METRICS:
            known = [*METRICS, *self.composites, *others]
            hint = "'pennyweight metrics' lists all metrics; --scorers FILE.py adds your own."
            self.problems.add(line, unknown("Key" if others else "Metric", name, known, hint))
            return None
        if METRICS[name].unit == "letter":
            self.problems.add(line, f"{name} is not a number, so it cannot have a threshold.")
            return None
        return name

    def kind(self, metric: str) -> str:
        """Return the kind of a metric's thresholds: `rate`, `score`, or a unit."""
        if metric in self.composites:
            return "score"
        parts = self.weighted if metric == "weighted_score" else ()
        declared = [METRICS.get(canonical(name)) for name in parts]
        fractions = all(one is not None and one.range == (0, 1) for one in declared)
        return kind_of(METRICS[metric], parts_are_fractions=fractions)

    def read(
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
        """Read the gates of a metric: a threshold, or a mapping with one and more.

        `path` leads to the node. `checked` says that the keys of the mapping were checked.
        """
        metric = self.metric(name, line or node.line)
        if metric is None:
            return
        table = {"threshold": node}
        if node.is_mapping:
            if not checked:
                RULE.read(node, name, self.problems)
            table = dict(node.value)
        own_on = table.get("on")
        options = self._options(metric, table)
        base = Gate(
            title or _title(metric, more, options),
            metric,
            options=options,
            level=level,
            on=own_on.value if own_on else on or self.on,
            kind=self.kind(metric),
            **{"entry": _entry(path, name), **more},
        )
        zone = table.get("indifference")
        if zone:
            width = self.parsed(zone, lambda: Quantity.parse(zone.value).value(metric, base.kind))
            base = base if width is None else replace(base, indifference=width)
        gates = [
            *self._threshold(base, table, node, path, explicit=own_on is not None),
            *self._against_baseline(base, table, on=own_on.value if own_on else "confident"),
        ]
        if not _is_set(table.get("better")) and not {"threshold", "no_worse_than"} & set(table):
            what = "needs 'threshold', 'no_worse_than' or 'better: true'."
            self.problems.add(node.line, f"{base.name} {what}")
        yield from gates

    def _options(self, metric: str, table: Mapping[str, Node]) -> tuple[tuple[str, float], ...]:
        """Read the options that a gate sets; report those that its metric does not have."""
        given = {name: node for name, node in table.items() if name in OPTIONS}
        known = METRICS[metric].options if metric in METRICS else {}
        for name, node in given.items():
            if name not in known:
                self.problems.add(node.line, f"{metric} has no option {name!r}; leave it out.")
        options = {name: node.value for name, node in given.items() if name in known}
        if {"k", "n"} <= set(options):
            self.parsed(given["n"], lambda: check_repeat_options(options))
        return tuple(options.items())

    def _threshold(
        self,
        base: Gate,
        table: Mapping[str, Node],
        node: Node,
        path: tuple[str | int, ...],
        *,
        explicit: bool,
    ) -> Iterator[Gate]:
        written = table.get("threshold")
        if written is None:
            return
        composite = base.metric in self.composites
        metric = METRICS["final_score" if composite else base.metric]
        threshold = self.parsed(written, lambda: Threshold.parse(written.value, metric, base.kind))
        if threshold is None:
            return
        unprovable = _unprovable(threshold)
        if unprovable and explicit and base.on == "confident":
            what = f"{base.name}: {unprovable}; write 'on: value' or another threshold."
            self.problems.add(written.line, what)
        at = path if written is node else (*path, "threshold")
        place = Location(self.file, written.line, at)
        on: On = "value" if unprovable else base.on
        yield replace(base, threshold=threshold, on=on, place=place)

    def _against_baseline(self, base: Gate, table: Mapping[str, Node], *, on: On) -> Iterator[Gate]:
        metric, margin, better = base.metric, table.get("no_worse_than"), table.get("better")
        node = margin or better
        if node is None or (margin is None and not _is_set(better)):
            return
        if metric in self.composites or METRICS[metric].better is None:
            what = "has no better direction or no value for each record"
            self.problems.add(node.line, f"{base.name} {what}, so it cannot be compared.")
            return
        if mean_values(METRICS[metric], {}) is None:
            what = f"{metric} is not a mean over records, so it cannot be compared task by task"
            instead = _MEANS.get(metric, "a metric that is")
            self.problems.add(node.line, f"{what}; use {instead}.")
            return
        base = replace(base, on=on, place=Location(self.file, node.line, ()))
        if margin is not None:
            allowed = self.parsed(margin, lambda: Margin.parse(margin.value, metric, base.kind))
            allowed = allowed or Margin(0, False, base.kind)
            name = f"{base.name} no worse"
            yield replace(base, name=name, against="no_worse_than", margin=allowed)
        if _is_set(better):
            yield replace(base, name=f"{base.name} better", against="better")


def _is_set(flag: Node | None) -> bool:
    return flag is not None and flag.value is True


def _unprovable(threshold: Threshold) -> str:
    """Return why no sample can prove a threshold; "" if one can."""
    if threshold.sign == "=":
        return f"no interval can show {threshold}"
    return f"no number of attempts can show {threshold}" if threshold.extreme else ""


def _title(
    metric: str, more: Mapping[str, Any], options: tuple[tuple[str, float], ...] = ()
) -> str:
    values = ", ".join(value for _, value in more.get("select", ()))
    name = f"{metric} of {values}" if values else metric
    set_to = ", ".join(f"{option} = {value:g}" for option, value in options)
    return f"{name} ({set_to})" if set_to else name


def _entry(path: tuple[str | int, ...], name: str) -> str:
    """Describe the entry of a policy that a path leads to.

    >>> _entry(("gates", 1), "ece"), _entry(("thresholds", "warning", "ece"), "ece")
    ('gates[2]', 'thresholds.warning')
    """
    parts = [part for part in path if part not in {name, "threshold"}]
    words = (f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in parts)
    return "".join(words).removeprefix(".")
