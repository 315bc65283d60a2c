"""The report as one self-contained file: HTML or Markdown."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from pennyweight import __version__
from pennyweight.render.charts.catalogue import charts
from pennyweight.render.charts.svg import Chart, Link, nowhere
from pennyweight.render.format import skewed_line
from pennyweight.render.page import environment, stylesheet, visible
from pennyweight.render.page.board import BoardChoice, BoardView
from pennyweight.render.page.conclusion import conclusion
from pennyweight.render.page.leaderboard import leaderboard
from pennyweight.render.page.reasoning_panel import reasoning_panel
from pennyweight.render.plain import markdown_code, markdown_table, markdown_text
from pennyweight.render.repeats import repeat_words
from pennyweight.render.view import (
    families,
    interval_words,
    key_figures,
    metric_cells,
    side_rows,
    value_head,
)
from pennyweight.text.format import count, plural

if TYPE_CHECKING:
    from jinja2 import Template


@dataclass(frozen=True, slots=True)
class RecordPages:
    """The pages of records beside a report: of each run, of a side, of a record."""

    runs: Sequence[tuple[str, str]]
    side: Link
    record: Link


@dataclass(frozen=True, slots=True)
class Report:
    """What a report shows: a digest, the runs behind it, and how to compute it again."""

    title: str
    digest: Mapping[str, Any]
    runs: Sequence[Sequence[Sequence[str]]]
    again: str
    verdicts: Sequence[Mapping[str, Any]] = ()
    """The verdict of a policy, for each side."""
    narrowed: Sequence[str] = ()
    """What part of its suite each narrowed run has, in words."""
    score_errors: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """How often each scorer failed, and with which error first."""
    pages: RecordPages | None = None
    people: Sequence[str] = ()
    """What people's verdicts say about the metrics, in words."""
    doubts: Sequence[str] = ()
    """What looks wrong in the files, so that the numbers may mean little."""


def html(report: Report) -> str:
    """Write the report as one HTML file without scripts and without links to other sites."""
    style = stylesheet()
    panel, drawn = reasoning_panel(report.digest, charts(report.digest))
    digest = hashlib.sha256(style.encode()).digest()
    return _template().render(
        title=report.title,
        digest=report.digest,
        style=style,
        style_hash=f"sha256-{base64.b64encode(digest).decode()}",
        conclusion=conclusion(report.digest),
        board=leaderboard(
            report.digest,
            BoardChoice(every=True),
            link=report.pages.side if report.pages else nowhere,
        ),
        pages=report.pages,
        people=report.people,
        figures=[] if report.digest["sides"] else key_figures(report.digest["whole"]),
        charts=drawn,
        reasoning=panel,
        families=families(report.digest["whole"]),
        sides=side_rows(report.digest),
        repeats=repeat_words(report.digest),
        verdicts=report.verdicts,
        runs=report.runs,
        notices=_notices(report),
        again=report.again,
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=__version__,
    )


def _notices(report: Report) -> list[str]:
    """Return what to know before the numbers are read."""
    part = "This run has {}; its numbers are not those of the whole suite."
    parts = (part.format(words) for words in report.narrowed)
    return [*parts, *report.doubts, *report.digest["exam"]]


@cache
def _template() -> Template:
    return environment().get_template("report.html")


def markdown(report: Report, pictures: Mapping[str, str] | None = None) -> str:
    """Write the report as Markdown; charts are shown where there are pictures of them."""
    whole = report.digest["whole"]
    lines = [f"# {markdown_text(report.title)}", "", f"{plural(whole['records'], 'record')}.", ""]
    lines += [f"{markdown_text(notice)}\n" for notice in _notices(report)]
    found = conclusion(report.digest)
    if found:
        notes = (f"{markdown_text(note)}\n" for note in found.notes)
        lines += [f"**{markdown_text(str(found))}**", "", *notes]
    board = leaderboard(report.digest, BoardChoice(every=True))
    if report.digest["sides"] and board:
        lines += [f"## {board.title}", "", markdown_table(board_cells(board), right=range(2, 20))]
    else:
        figures = [[f["title"], f["value"], f["note"]] for f in key_figures(whole)]
        lines += [markdown_table([["metric", "value", "interval"], *figures], right=(1, 2))]
    lines += _paragraphs("## People's verdicts", report.people)
    for verdict in report.verdicts:
        lines += _verdict(verdict)
    if pictures:
        lines += _pictures(charts(report.digest), pictures)
    lines += _reasoning(report.digest)
    if report.digest["sides"]:
        words = (report.digest["comparison"] or {}).get("words", ())
        lines += ["## Side by side", "", *(f"{markdown_text(s)}\n" for s in words)]
        lines.append(
            markdown_table(_side_cells(report.digest, side_rows(report.digest)), right=range(1, 40))
        )
    said = repeat_words(report.digest)["words"]
    lines += ["## All metrics", "", *(f"{markdown_text(line)}\n" for line in said)]
    shown = [row for family in families(whole) for row in family["rows"]]
    rows = [metric_cells(row) for row in shown]
    heads = ("metric", value_head(report.digest), "interval", "records")
    lines.append(markdown_table([heads, *rows], right=(1, 2, 3)))
    few = interval_words([whole])
    few += skewed_line([row["name"] for row in shown if row["skewed"]])
    lines += [f"{markdown_text(line)}\n" for line in few]
    if report.digest["telling"]:
        lines += ["## Notable records", ""]
    for record in report.digest["telling"]:
        lines += _telling(record)
    if report.pages:
        linked = (f"[{markdown_text(name)}]({href})" for name, href in report.pages.runs)
        lines += [f"All records: {', '.join(linked)}", ""]
    for facts in report.runs:
        lines += ["## About this run", "", markdown_table([["", ""], *map(list, facts)])]
    again = markdown_code(f"pennyweight score {report.again}")
    return "\n".join(lines).rstrip() + f"\n\nTo compute the numbers again: {again}\n"


def _paragraphs(title: str, lines: Sequence[str]) -> list[str]:
    """Write lines below a title; nothing without any."""
    return [title, "", *(f"{markdown_text(line)}\n" for line in lines)] if lines else []


def board_cells(board: BoardView) -> list[list[str]]:
    """Return a leaderboard as rows of text: rank, side, metrics, and the paired difference."""
    gap = [f"difference from {board.baseline}"] if board.baseline else []
    errors = ["errors"] if board.errors else []
    rows = [["rank", board.by, *(str(c.metric) for c in board.columns), *gap, *errors]]
    for row in board.rows:
        cells = (f"{c.value} {_in_brackets(c.interval)}".strip() for c in row.cells)
        shown = row.gap and f"{row.gap.value} {_in_brackets(row.gap.interval)}".strip()
        last = [("baseline" if row.baseline else shown) or "—"] if gap else []
        failed = [f"{count(row.errors)} of {count(row.records)}"] if errors else []
        rows.append([row.rank or "—", row.name, *cells, *last, *failed])
    return rows


def _in_brackets(interval: str) -> str:
    return f"({interval})" if interval else ""


def _pictures(drawn: Sequence[Chart], pictures: Mapping[str, str]) -> list[str]:
    lines = ["## Charts", ""]
    for chart in drawn:
        title = markdown_text(chart.title)
        if chart.name in pictures:
            shown = f"![{title}]({pictures[chart.name]})"
            lines += [f"### {title}", "", markdown_text(chart.note), "", shown, ""]
    return lines


def _reasoning(digest: Mapping[str, Any]) -> list[str]:
    """Write the metrics of reasoning; nothing where the records have none."""
    panel, _ = reasoning_panel(digest, charts(digest))
    if panel is None or not (panel.figures or panel.sides):
        return []
    lines = ["## Reasoning", ""]
    if panel.figures:
        figures = [[f["title"], f["value"], f["note"]] for f in panel.figures]
        lines.append(markdown_table([["metric", "value", "interval"], *figures], right=(1, 2)))
    if panel.sides and digest["sides"]:
        lines.append(markdown_table(_side_cells(digest, panel.sides), right=range(1, 40)))
    return lines


def _verdict(verdict: Mapping[str, Any]) -> list[str]:
    side = f" on {markdown_text(verdict['side'])}" if verdict["side"] else ""
    names = ("name", "by", "value", "interval", "threshold", "why")
    rows = [[f"{g['sign']} {g['verdict']}", *(str(g[n]) for n in names)] for g in verdict["gates"]]
    heads = ["", "gate", *names[1:]]
    table = markdown_table([heads, *rows], right=(3, 4, 5))
    legend = markdown_text(" ".join(verdict["legend"]))
    return [f"## Verdict{side}", "", markdown_text(verdict["headline"]), "", table, legend, ""]


def _side_cells(
    digest: Mapping[str, Any], families: Sequence[Mapping[str, Any]]
) -> list[list[str]]:
    rows = [["metric", *(s["name"] for s in digest["sides"])]]
    for family in families:
        for row in family["rows"]:
            cells = (f"{c['value']} {c['interval']}".strip() for c in row["cells"])
            rows.append([row["name"], *cells])
    return rows


def _telling(record: Mapping[str, Any]) -> list[str]:
    place = " · ".join(
        markdown_text(str(record[n])) for n in ("task_id", "subject", "tier") if record.get(n)
    )
    lines = [f"**{record['why'].capitalize()}** ({place})", ""]
    for name in ("judgments", "input", "response", "answer", "target", "error"):
        text = record.get(name)
        if text:
            quoted = "\n".join(f"    {line}" for line in visible(text)[:2000].splitlines())
            lines += [f"{name}:", "", quoted, ""]
    return lines
