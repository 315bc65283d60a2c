"""An audit in words, as a table, Markdown, CSV or JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pennyweight.render.plain import (
    csv_table,
    json_text,
    markdown_table,
    markdown_text,
    one_line,
    wrapped,
)
from pennyweight.render.terminal import Terminal, table_text
from pennyweight.soundness.audit import Audit, Flaw, TaskAudit, columns_of
from pennyweight.text.format import count, money, plural, share

MAX_ROWS = 30
"""Rows and flaws that a table shows."""
TEXT_WIDTH = 80
_WORDS = {"ok": "ok", "fails": "FAILS", None: "–"}


def render(audit: Audit, format: str, *, every: bool = False) -> str:  # noqa: A002
    """Write an audit; with `every`, also the tasks without a flaw."""
    if format == "json":
        return json_text({**audit.to_dict(), "words": [verdict(audit), *notes(audit)]})
    if format == "csv":
        frame = audit.to_polars()
        rows = frame.rows() if every else frame.filter(state="fails").rows()
        return csv_table([frame.columns, *rows])
    return _markdown(audit, every=every) if format == "markdown" else _table(audit, every=every)


def verdict(audit: Audit) -> str:
    """Say whether a suite is sound, as far as it was examined."""
    if audit.is_sound:
        return f"{audit.suite}: no flaw was found"
    wrong = sum(not one.is_sound for one in audit.audited)
    several = plural(len(audit.flaws), "flaw")
    where = f" in {count(wrong)} of {plural(len(audit.audited), 'task')}" if wrong else ""
    return f"{audit.suite}: unsound, {several}{where}"


def notes(audit: Audit) -> list[str]:
    """Say what was examined and what was not."""
    tried = [f"{probe.name} ({count(probe.checked)})" for probe in audit.probes if probe.checked]
    left = [
        f"{probe.name} on {plural(one.tasks, 'task')} ({one.why})"
        for probe in audit.probes
        for one in probe.unchecked
    ]
    lines = [f"Examined, with the number of tasks: {', '.join(tried)}."] if tried else []
    if len(audit.audited) < audit.tasks:
        lines.append(f"{count(len(audit.audited))} of {count(audit.tasks)} tasks were examined.")
    if audit.chance:
        lines.append(
            f"With shuffled targets {share(audit.chance.rate)} of the right replies pass; "
            f"by chance {share(audit.chance.chance)} would."
        )
    if audit.judging:
        usd = (
            "at an unknown cost" if audit.judging.usd is None else f"for {money(audit.judging.usd)}"
        )
        lines.append(f"The judges gave {plural(audit.judging.calls, 'judgment')} {usd}.")
    if left:
        lines.append(f"Not checked: {'; '.join(left)}.")
    return lines


def flaw_line(flaw: Flaw) -> str:
    """Write a flaw on one line."""
    tasks = f"{', '.join(flaw.tasks)}: " if flaw.tasks else ""
    return f"{tasks}{flaw.why}"


def _rows(audit: Audit, *, every: bool) -> Iterator[list[str]]:
    names = columns_of(audit)
    for one in audit.audited:
        if every or not one.is_sound:
            yield [one_line(one.task, 30), *_cells(one, names)]


def _cells(one: TaskAudit, names: Sequence[str]) -> list[str]:
    return [_WORDS[one.states.get(name)] for name in names]


def _table(audit: Audit, *, every: bool) -> str:
    terminal = Terminal()
    width = min(terminal.width, TEXT_WIDTH)
    terminal.print(one_line(verdict(audit), 200), style="bold")
    rows = list(_rows(audit, every=every))
    shown = rows if every else rows[:MAX_ROWS]
    text = terminal.text()
    if shown:
        text += "\n" + table_text(["task", *columns_of(audit)], shown)
    terminal = Terminal()
    if len(rows) > len(shown):
        terminal.print(f"… and {plural(len(rows) - len(shown), 'more task')}; --all shows them.")
    terminal.print()
    flaws = audit.flaws if every else audit.flaws[:MAX_ROWS]
    for flaw in flaws:
        lines = wrapped(f"{flaw.probe:<10} {flaw_line(flaw)}", width=width)
        terminal.print("\n  ".join(lines))
    if len(audit.flaws) > len(flaws):
        more = plural(len(audit.flaws) - len(flaws), "more flaw")
        terminal.print(f"… and {more}; --all shows them.")
    if flaws:
        terminal.print()
    for note in notes(audit):
        terminal.print("\n".join(wrapped(note, width=width)), style="dim")
    return text + terminal.text()


def _markdown(audit: Audit, *, every: bool) -> str:
    parts = [f"**{markdown_text(verdict(audit))}**\n"]
    rows = list(_rows(audit, every=every))
    if rows:
        parts.append(markdown_table([["task", *columns_of(audit)], *rows]))
    lines = (f"- {flaw.probe}: {markdown_text(flaw_line(flaw))}\n" for flaw in audit.flaws)
    parts.append("".join(lines))
    parts += [f"{markdown_text(note)}\n" for note in notes(audit)]
    return "\n".join(filter(None, parts))
