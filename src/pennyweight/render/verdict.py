"""A verdict for the terminal, a page, JSON, Markdown, JUnit XML, or annotations for GitHub."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from pennyweight.gates.invariants import ATTEMPTS
from pennyweight.gates.threshold import FRACTIONS, SHOWN, unit_of
from pennyweight.gates.verdict import Decision, Verdict
from pennyweight.render.charts.scales import around
from pennyweight.render.plain import (
    json_text,
    markdown_code,
    markdown_table,
    markdown_text,
    one_line,
    without_ci_commands,
    wrapped,
)
from pennyweight.scoring.pooling import pooled_words
from pennyweight.text.format import (
    MISSING,
    count,
    declared,
    declared_points,
    difference,
    estimate,
    interval,
    level,
    plural,
    quantity,
)
from pennyweight.text.safe import clean

MARK = "<!-- pennyweight gate -->"
"""Marks the comment on a pull request, so that a later run can replace it."""
TITLES = {"pass": "Passed", "fail": "Failed", "inconclusive": "Inconclusive"}
_SIGNS = {"pass": "✓", "fail": "✗", "inconclusive": "?"}
_NOT_XML = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")
MAX_UNFOLDED = 3
"""Scenarios that a comment shows without folding them."""
MAX_SCENARIOS, MAX_LISTED = 10, 50
"""Scenarios of a gate in the terminal and comments, and on a page; JSON and JUnit contain all."""
WIDTH = 80
_SCALE_WIDTH = 220


def render(verdict: Verdict, format: str) -> str:  # noqa: A002
    """Write a verdict in one of the formats."""
    ways: dict[str, Callable[[Verdict], str]] = {
        "table": as_table,
        "json": as_json,
        "markdown": as_markdown,
        "junit": as_junit,
        "github": as_github,
    }
    return ways[format](verdict)


def as_json(verdict: Verdict) -> str:
    """Write strict JSON; the bracket of `##[`, a command to some CI runners, is escaped."""
    return json_text(verdict.to_dict()).replace("##[", "##\\u005b")


def as_table(verdict: Verdict) -> str:
    """Write a line for each gate, and below it why it did not pass and which scenarios decided."""
    if verdict.sides:
        return _grid(verdict)
    head = ("  gate", "by", "value", "interval", "threshold", "effect")
    rows = [
        (f"{sign(g)} {one_line(name_of(g), 36)}", g.test, *estimate_of(g), threshold_of(g),
         effect_of(g))
        for g in verdict.gates
    ]  # fmt: skip
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    if sum(widths) + 2 * (len(widths) - 1) > WIDTH:
        widths.pop()  # what a gate misses by is in its explanation
    lines = [_line(head, widths)]
    for gate, row in zip(verdict.gates, rows, strict=True):
        lines.append(_line(row, widths))
        if text := _explanation(gate):
            lines += wrapped(text, "    ")
        if gate.verdict != "pass":
            for one in gate.scenarios[:MAX_SCENARIOS]:
                lines += wrapped(f"{one.id}: {one.why}", "    · ")
            lines += [f"    · {more}" for more in _more(gate)]
    lines += ["", *(line for said in _brackets(verdict) for line in wrapped(said))]
    lines += wrapped(headline(verdict))
    for note in verdict.notes:
        lines += wrapped(f"Note: {note}")
    return without_ci_commands("\n".join(lines) + "\n")


def _grid(verdict: Verdict) -> str:
    """Write a row for each side and a column for each gate, then what did not pass."""
    rows = grid(verdict)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(row[i].ljust(widths[i]) for i in columns).rstrip()
        for columns in _fitting(widths)
        for row in rows
    ]
    for gate in verdict.gates:
        if gate.verdict == "pass":
            continue
        lines += ["", f"{sign(gate)} {one_line(name_of(gate), 76)}", *wrapped(gate.why, "    ")]
        for one in gate.scenarios[:MAX_SCENARIOS]:
            lines += wrapped(f"{one.id}: {one.why}", "    · ")
        lines += [f"    · {more}" for more in _more(gate)]
    lines += ["", *wrapped(headline(verdict))]
    for note in verdict.notes:
        lines += wrapped(f"Note: {note}")
    return without_ci_commands("\n".join(lines) + "\n")


def _fitting(widths: Sequence[int], room: int = WIDTH) -> list[list[int]]:
    """Divide the columns of a grid into parts that fit; each begins with the side.

    >>> _fitting([20, 7, 30, 30])
    [[0, 1, 2], [0, 3]]
    """
    parts = [[0, 1]]
    for index in range(2, len(widths)):
        if sum(widths[i] + 2 for i in (*parts[-1], index)) - 2 > room and len(parts[-1]) > 1:
            parts.append([0])
        parts[-1].append(index)
    return parts


def grid(verdict: Verdict) -> list[list[str]]:
    """Return the sides with their gates as rows of cells, the head first."""
    names = list(dict.fromkeys(gate.name for one in verdict.sides for gate in one.verdict.gates))
    rows = [["  side", "records", *names]]
    for one in verdict.sides:
        gates = {gate.name: gate for gate in one.verdict.gates}
        cells = (
            f"{sign(g)} {amount(g, g.value)}" if (g := gates.get(n)) else MISSING for n in names
        )
        title = f"{_SIGNS[one.verdict.verdict]} {one_line(one.name, 36)}"
        rows.append([title, count(one.verdict.records), *cells])
    return rows


def _explanation(gate: Decision) -> str:
    """Return why a gate did not pass; for one that passed, its sequential test, if any."""
    return test_of(gate) if gate.verdict == "pass" else gate.why


def _is_warning(gate: Decision) -> bool:
    return gate.level == "warning" and gate.verdict != "pass"


def _more(gate: Decision) -> list[str]:
    """Write how many scenarios are not shown, if any."""
    left = len(gate.scenarios) + gate.unlisted - MAX_SCENARIOS
    return [f"… and {count(left)} more"] if left > 0 else []


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Align cells in columns: names and thresholds left, numbers right; those that have a width."""
    sides = ("<", "<", ">", ">", "<", ">")
    padded = (f"{c:{side}{w}}" for c, side, w in zip(cells, sides, widths, strict=False))
    return "  ".join(padded).rstrip()


def headline(verdict: Verdict) -> str:
    """Write the result of a policy in one sentence."""
    return f"{TITLES[verdict.verdict]}: {clean(verdict.policy)} {summary(verdict)}"


def summary(verdict: Verdict) -> str:
    """Write what a policy was applied to, and how many gates failed or are undecided."""
    records = plural(verdict.records, "record")
    if verdict.errors:
        records += f", including {plural(verdict.errors, 'error')}"
        if verdict.errors_as == "failures":
            records += " counted as failures" if verdict.errors > 1 else " counted as a failure"
    if words := pooled_words(verdict.pooled):
        records += f" ({words})"
    blocking = [gate.verdict for gate in verdict.gates if gate.level == "blocking"]
    numbers = {"failed": blocking.count("fail"), "undecided": blocking.count("inconclusive")}
    open_ = ", ".join(f"{number} {word}" for word, number in numbers.items() if number)
    gates = plural(len(verdict.gates), "gate")
    if verdict.sides:
        gates = f"{gates} on {plural(len(verdict.sides), 'side')}"
    parts = [f"on {records}", f"{open_} of {gates}" if open_ else gates]
    if verdict.warnings:
        parts.append(plural(len(verdict.warnings), "warning"))
    if verdict.baseline:
        parts.append(f"compared with {clean(verdict.baseline)}")
    return "; ".join(parts) + "."


def sign(gate: Decision) -> str:
    """Return the sign of a gate's verdict."""
    return "!" if _is_warning(gate) else _SIGNS[gate.verdict]


def name_of(gate: Decision) -> str:
    """Name a gate; a weighted rate is marked, because `pennyweight score` shows another value."""
    name = f"{gate.name} (weighted)" if gate.weighted else gate.name
    name = "missing attempts" if gate.name == ATTEMPTS else name
    return f"{gate.side}: {name}" if gate.side else name


def estimate_of(gate: Decision) -> tuple[str, str]:
    """Write a gate's value and its interval, in brackets where the value alone decides."""
    value, ends = _estimate(gate)
    return value, f"({ends})" if ends and gate.test == "value" else ends


def _estimate(gate: Decision) -> tuple[str, str]:
    unit, paired = unit_of(gate.kind), _is_paired(gate)
    if gate.value is None or gate.low is None or gate.high is None:
        return amount(gate, gate.value), ""
    if math.isinf(gate.value):
        return amount(gate, gate.value), interval(gate.low, gate.high, unit, signed=paired)
    return estimate(gate.value, gate.low, gate.high, unit, signed=paired)


def legend(verdict: Verdict) -> tuple[str, ...]:
    """Say what decided the gates, and what their intervals mean."""
    shared = any(gate.test == "interval" for gate in verdict.gates)
    rate = level(verdict.error_rate)
    said = (
        "Gates by interval pass or fail only if the whole interval does. By these gates, a wrong "
    )
    said += f"pass and a wrong failure of the policy are each at most {rate} likely."
    return (*_brackets(verdict), *([said] if shared else []))


def _brackets(verdict: Verdict) -> list[str]:
    """Say that intervals of gates on the value decide nothing, if there are any."""
    if not any(gate.test == "value" and gate.low is not None for gate in verdict.gates):
        return []
    confidence = level(1 - 2 * verdict.error_rate)
    return [
        f"Gates by value compare the value alone with the threshold; the {confidence} confidence "
        "intervals in brackets decide nothing."
    ]


def effect_of(gate: Decision) -> str:
    """Write by how much a gate's value is better than its threshold."""
    if gate.effect is None or not math.isfinite(gate.effect):
        return ""
    return difference(gate.effect, unit_of(gate.kind))


def threshold_of(gate: Decision) -> str:
    """Write a gate's threshold."""
    if gate.threshold is None:
        return MISSING
    points = _is_paired(gate) and gate.kind == "rate"
    value = (
        declared_points(gate.threshold) if points else declared(gate.threshold, unit_of(gate.kind))
    )
    return f"{SHOWN.get(gate.sign or '', gate.sign)} {value}"


def test_of(gate: Decision) -> str:
    """Describe a sequential test, whose interval may cross the threshold although it passed."""
    if gate.test != "sequential" or gate.indifference is None:
        return ""
    zone = interval(*gate.indifference, unit_of(gate.kind), signed=_is_paired(gate))
    tasks = f"{count(gate.tasks)} of {plural(gate.planned_tasks or 0, 'task')}"
    return f"Sequential test after {tasks}; indifference zone {zone}."


def amount(gate: Decision, value: float | None, largest: float = 0.0) -> str:
    """Write a value in the unit of a gate's value; `largest` is the largest value next to it."""
    unit = unit_of(gate.kind)
    return difference(value, unit) if _is_paired(gate) else quantity(value, unit, largest=largest)


def _is_paired(gate: Decision) -> bool:
    return gate.rule is not None and gate.rule.paired


def as_markdown(verdict: Verdict) -> str:
    """Write a comment for a pull request."""
    rows = [["", "gate", "by", "value", "interval", "threshold", "effect"]]
    for gate in verdict.gates:
        cells = [gate.test, *estimate_of(gate), threshold_of(gate), effect_of(gate)]
        mark = sign(gate).replace("!", "⚠")
        rows.append([mark, markdown_code(name_of(gate), table=True), *cells])
    title = f"## {_SIGNS[verdict.verdict]} Pennyweight: {TITLES[verdict.verdict].lower()}\n"
    parts = [MARK, title, f"{markdown_code(verdict.policy)} {markdown_text(summary(verdict))}\n"]
    if verdict.sides:
        parts.append(markdown_table([[cell.strip() for cell in row] for row in grid(verdict)]))
    parts.append(markdown_table(rows, right=(3, 4, 6)))
    for gate in verdict.gates:
        if not (text := _explanation(gate)):
            continue
        level = " (warning)" if _is_warning(gate) else ""
        about = f"{gate.side}: {gate.name}" if gate.side else gate.name
        parts.append(f"**{markdown_code(about)}**{level}: {markdown_text(text)}\n")
        if gate.scenarios:
            parts.append(_markdown_list(gate))
    notes = (*_brackets(verdict), *verdict.notes)
    parts += [f"Note: {markdown_text(note)}\n" for note in notes]
    return without_ci_commands("\n".join(parts))


def _markdown_list(gate: Decision) -> str:
    """List the scenarios that decided a gate; a long list is folded."""
    named = [f"- {markdown_code(one.id)}: {markdown_text(one.why)}" for one in gate.scenarios]
    lines = "\n".join([*named[:MAX_SCENARIOS], *(f"- {more}" for more in _more(gate))]) + "\n"
    if len(named) <= MAX_UNFOLDED:
        return lines
    head = f"<details><summary>{plural(len(named) + gate.unlisted, 'scenario')}</summary>"
    return f"{head}\n\n{lines}\n</details>\n"


def as_junit(verdict: Verdict) -> str:
    """Write JUnit XML: a failed gate is a failure, an open one an error, a warning is skipped."""
    words = [_junit_word(gate) for gate in verdict.gates]
    counts = {
        "tests": str(len(words)),
        "failures": str(words.count("failure")),
        "errors": str(words.count("error")),
        "time": "0",
    }
    name = f"pennyweight.{_xml(verdict.policy)}"
    root = Element("testsuites", {"name": "pennyweight", **counts})
    suite = SubElement(
        root, "testsuite", {"name": name, "skipped": str(words.count("skipped")), **counts}
    )
    for gate, word in zip(verdict.gates, words, strict=True):
        about = f"{gate.name} [{gate.side}]" if gate.side else gate.name
        case = SubElement(suite, "testcase", name=_xml(about), classname=name, time="0")
        if not word:
            continue
        result = SubElement(case, word, message=_xml(gate.why))
        if word != "skipped":
            result.set("type", gate.verdict)
        result.text = "\n".join(_xml(f"- {one.id}: {one.why}") for one in gate.scenarios) or None
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _junit_word(gate: Decision) -> str:
    if gate.verdict == "pass":
        return ""
    if gate.level == "warning":
        return "skipped"
    return "failure" if gate.verdict == "fail" else "error"


def _xml(text: str) -> str:
    return without_ci_commands(_NOT_XML.sub("�", clean(text)))


def as_github(verdict: Verdict) -> str:
    """Write workflow commands, which GitHub shows as annotations of the policy's lines."""
    lines = []
    for gate in verdict.gates:
        if gate.verdict == "pass":
            continue
        place = gate.rule.place if gate.rule else None
        level = "warning" if gate.level == "warning" else "error"
        where = f"file={_property(place.file)},line={place.line}," if place else ""
        word = "" if gate.verdict == "fail" else " (inconclusive)"
        scenarios = [f"{one.id}: {one.why}" for one in gate.scenarios[:MAX_SCENARIOS]]
        text = "\n".join([gate.why, *scenarios, *_more(gate)])
        side = f" [{gate.side}]" if gate.side else ""
        title = _property(f"Pennyweight: {gate.name}{side}{word}")
        lines.append(f"::{level} {where}title={title}::{_message(text)}")
    lines += [f"::notice title=Pennyweight::{_message(note)}" for note in verdict.notes]
    lines.append(f"::notice title=Pennyweight::{_message(headline(verdict))}")
    return "\n".join(lines) + "\n"


def _message(text: str) -> str:
    lines = "\n".join(clean(line) for line in text.splitlines())
    return lines.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def verdict_view(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as a page or a report shows it: each gate on a scale with its interval."""
    gates = [_row(gate) for gate in verdict.gates]
    return {
        "verdict": verdict,
        "headline": headline(verdict),
        "gates": gates,
        "legend": legend(verdict),
    }


def _row(gate: Decision) -> dict[str, Any]:
    value, interval = estimate_of(gate)
    return {
        "name": name_of(gate),
        "level": gate.level,
        "by": gate.test,
        "verdict": gate.verdict,
        "sign": sign(gate),
        "value": value,
        "interval": interval,
        "threshold": threshold_of(gate),
        "why": gate.why,
        "test": test_of(gate),
        "scenarios": gate.scenarios[:MAX_LISTED],
        "failing": len(gate.scenarios) + gate.unlisted,
        "scale": _scale(gate),
    }


def _scale(gate: Decision) -> dict[str, Any] | None:
    """Place a gate's value, its interval and its threshold on a line that shows their part."""
    given = [gate.value, gate.low, gate.high, gate.threshold]
    known = [v for v in given if isinstance(v, int | float) and math.isfinite(v)]
    if gate.value is None or gate.threshold is None or len(known) < 2:
        return None
    first, last = around(known, share=gate.kind in FRACTIONS)
    first, last = max(first, min(0.0, *known)), max([last, *known])
    first = min([first, *known])
    span = (last - first) or 1.0

    def place(value: float | None, other: float) -> float:
        at = other if value is None else min(last, max(first, value))
        return round(6 + (_SCALE_WIDTH - 12) * (at - first) / span, 1)

    limit = place(gate.threshold, first)
    right = (gate.sign or "").startswith((">", "≥"))
    return {
        "decides": gate.test != "value",
        "first": amount(gate, first, last),
        "last": amount(gate, last),
        "value": place(gate.value, first),
        "low": place(gate.low, gate.value),
        "high": place(gate.high, gate.value),
        "limit": limit,
        "from": limit if right else 6.0,
        "width": round(_SCALE_WIDTH - 6 - limit if right else limit - 6, 1),
    }
