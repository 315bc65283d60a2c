"""Write a report and what belongs to it: pages, PDF, charts and tables."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pennyweight.errors import InputError, UsageError
from pennyweight.render.charts.catalogue import charts
from pennyweight.render.charts.svg import alone
from pennyweight.render.page.board import RANK_RANGES, BoardChoice, BoardRow, BoardView
from pennyweight.render.page.leaderboard import leaderboard
from pennyweight.render.plain import csv_table, side_line
from pennyweight.render.report import Report, html, markdown
from pennyweight.render.view import (
    difference,
    difference_grid,
    families,
    family,
    metric_cells,
    value_head,
)
from pennyweight.scoring.pooling import pooled_words
from pennyweight.text.format import count, level, probability
from pennyweight.text.safe import clean

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    *("--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-quic", "--no-pdf-header-footer"),
)
PATIENCE = 120
"""Seconds after which a browser that has not printed is stopped."""
SIDES_ON_A_PAGE = 24
"""Rows of the leaderboard that fit on a printed page."""
LONG_NAME = 28
"""Characters of a name above which it has a line of its own in the LaTeX of a leaderboard."""
LONG_PAIR = 60
"""Characters of two names that stand on one line in LaTeX."""
LINES_ON_A_PAGE = 54
"""Lines of other tables that fit on a printed page."""


def write_report(report: Report, path: Path, pictures: Sequence[Path] = ()) -> None:
    """Write the report in the format of the file's name; Markdown shows the pictures."""
    if path.suffix == ".pdf":
        _write(path, _pdf(html(report)))
    elif path.suffix == ".html":
        _write(path, html(report).encode())
    elif path.suffix == ".md":
        _write(path, markdown(report, _links(path, pictures)).encode())
    else:
        raise UsageError(f"-o {path}: the name must end in .html, .md or .pdf.")


def _links(report: Path, pictures: Sequence[Path]) -> dict[str, str]:
    """Return the relative address of each picture, by its name."""
    folder = report.resolve().parent
    paths = {p.stem: os.path.relpath(p.resolve(), folder) for p in pictures if p.suffix == ".svg"}
    return {name: quote(Path(path).as_posix()) for name, path in paths.items()}


def _write(path: Path, content: bytes) -> None:
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    except OSError as error:
        raise InputError([f"{path}: cannot be written: {error.strerror or error}."]) from error
    finally:
        part.unlink(missing_ok=True)


def browser() -> str | None:
    """Find a browser that can print."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def _pdf(page: str) -> bytes:
    program = browser()
    if program is None:
        raise UsageError(
            "Writing a PDF requires Chromium, which is not installed. Install it, or write "
            "-o report.html and print that."
        )
    with tempfile.TemporaryDirectory(prefix="pennyweight-print-") as name:
        folder = Path(name)
        (folder / "report.html").write_text(page, encoding="utf-8")
        target = folder / "report.pdf"
        root = ["--no-sandbox"] if _is_root() else []
        command = [
            *(program, *FLAGS, *root, f"--user-data-dir={folder / 'profile'}"),
            *(f"--print-to-pdf={target}", (folder / "report.html").as_uri()),
        ]
        try:
            done = subprocess.run(  # noqa: S603
                command, capture_output=True, timeout=PATIENCE, check=False, text=True
            )
        except subprocess.TimeoutExpired:
            raise UsageError(f"{program} did not print within {PATIENCE} s.") from None
        if not target.exists():
            last_line = clean(done.stderr.strip().rpartition("\n")[2])
            raise UsageError(f"{program} could not print: {last_line}")
        return target.read_bytes()


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def write_charts(digest: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write each chart as SVG, and as PNG where resvg is installed."""
    _make(folder)
    try:
        import resvg_py  # noqa: PLC0415
    except ModuleNotFoundError:
        resvg_py = None  # type: ignore[assignment]
    written = []
    for chart in charts(digest):
        picture = alone(chart)
        path = folder / f"{chart.name}.svg"
        _write(path, picture.encode())
        written.append(path)
        if resvg_py is not None:
            drawn = resvg_py.svg_to_bytes(svg_string=picture)
            _write(path.with_suffix(".png"), bytes(drawn))
            written.append(path.with_suffix(".png"))
    return written


def write_tables(digest: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write metrics and paired differences as CSV and LaTeX, and each chart's numbers as CSV."""
    _make(folder)
    rows = _metric_rows(digest)
    written = {folder / "metrics.csv": csv_table(rows), folder / "metrics.tex": latex(digest)}
    board = leaderboard(digest, BoardChoice(every=True))
    if board and digest["sides"]:
        written[folder / "leaderboard.tex"] = latex_board(board)
    pairs = (digest["comparison"] or {}).get("pairs")
    if pairs:
        written[folder / "pairs.csv"] = csv_table(_pair_rows(pairs))
        written[folder / "pairs.tex"] = latex_pairs(pairs, digest["confidence"])
    for chart in charts(digest):
        written[folder / f"{chart.name}.csv"] = csv_table(chart.rows)
    for path, text in written.items():
        _write(path, text.encode())
    return list(written)


def _make(folder: Path) -> None:
    """Create a folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError([f"{folder}: cannot be created: {error.strerror or error}."]) from error


def latex_board(board: BoardView) -> str:
    r"""Write the leaderboard for `\input`, with caption and label; needs booktabs.

    It is one float, or several if the sides do not fit on a page.
    """
    long = any(len(side_line(row.name)) > LONG_NAME for row in board.rows)
    size = SIDES_ON_A_PAGE * 2 // 3 if long else SIDES_ON_A_PAGE
    parts = (board.rows[first : first + size] for first in range(0, len(board.rows), size))
    return "\n".join(_latex_float(board, part, number) for number, part in enumerate(parts))


def _latex_float(board: BoardView, rows: Sequence[BoardRow], number: int) -> str:
    """Write some rows of the leaderboard as a float."""
    ranked = board.ranked
    heads = [*(["rank"] if ranked else []), _tex(board.by)]
    heads += [_stacked(column.metric.title) for column in board.columns]
    heads += ["errors"] if board.errors else []
    columns = len(board.columns) + board.errors
    lines = [
        r"\begin{table}",
        r"\centering\footnotesize\setlength{\tabcolsep}{2.2pt}",
        rf"\begin{{tabular}}{{@{{}}{'r' * ranked}l{'r' * columns}@{{}}}}",
    ]
    lines += [r"\toprule", f"{' & '.join(heads)} \\\\", r"\midrule"]
    for row in rows:
        first, name = [_tex(row.rank or "—")] if ranked else [], side_line(row.name)
        if len(name) > LONG_NAME:
            whole = rf"\multicolumn{{{1 + columns}}}{{l@{{}}}}{{{_tex(name)}}}"
            lines.append(f"{' & '.join([*first, whole])} \\\\*")
            first, name = [""] * len(first), ""
        failed = [count(row.errors)] if board.errors else []
        values = map(_tex, [name, *(c.value for c in row.cells), *failed])
        lines.append(f"{' & '.join([*first, *values])} \\\\")
        ends = [""] * (len(first) + 1) + [
            rf"{{\scriptsize {_tex(c.interval)}}}" if c.interval else "" for c in row.cells
        ]
        ends += [rf"{{\scriptsize of {count(row.records)}}}"] if board.errors else []
        lines.append(f"{' & '.join(ends)} \\\\")
    said = f"{board.headline.title.capitalize()} and other metrics by {board.by}"
    said += " (continued)" if number else f", with {level(board.confidence)} confidence intervals"
    said += f". {RANK_RANGES}" if ranked and not number else "."
    lines += [r"\bottomrule", r"\end{tabular}", rf"\caption{{{_tex(said)}}}"]
    lines += [] if number else [r"\label{tab:leaderboard}"]
    return "\n".join([*lines, r"\end{table}", ""])


def _stacked(head: str) -> str:
    r"""Write the head of a column on two lines, so that the table fits on a page.

    >>> print(_stacked("calibration error"), _stacked("rank"))
    \shortstack[r]{calibration\\error} rank
    """
    first, _, last = head.rpartition(" ")
    return (
        rf"\shortstack[r]{{{_tex(first)}\\{_tex(last)}}}" if first and len(head) > 9 else _tex(head)
    )


def _metric_rows(digest: Mapping[str, Any]) -> list[list[Any]]:
    names = digest["by"]
    rows: list[list[Any]] = [[*names, "metric", "value", "low", "high", "records", "left_out"]]
    for group in (digest["whole"], *digest["sides"]):
        place = [group["group"].get(n) for n in names]
        rows += [[*place, name, *cells] for name, cells in group["estimates"].items()]
    return rows


def latex(digest: Mapping[str, Any]) -> str:
    r"""Write the metrics that have a value as LaTeX tables, for `\input`: the whole, each side."""
    tables = [_latex_metrics(digest["whole"], "", value_head(digest))]
    tables += [_latex_metrics(side, side_line(side["name"])) for side in digest["sides"]]
    return "\n".join(tables)


def _latex_metrics(group: Mapping[str, Any], side: str, head: str = "") -> str:
    rows: list[tuple[str, ...] | str] = []
    for titled in families(group, known=True):
        rows.append(titled["title"])
        rows += map(metric_cells, titled["rows"])
    head = head or pooled_words(group["pooled"]) or "value"
    return _tabular("lrrr", ("metric", head, "interval", "records"), rows, side)


def _pair_rows(pairs: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    names = ("a", "b", "metric", "difference")
    rest = ("p", "p_adjusted", "tasks", "method", "detectable", "ratio", "ratio_low", "ratio_high")
    lacks = ("missing_a", "missing_b", "errors_decide") if any(p["missing"] for p in pairs) else ()
    rows: list[list[Any]] = [[*names, "low", "high", *rest, *lacks]]
    for pair in pairs:
        ends = pair["interval"] or (None, None)
        missing = pair["missing"] or {"a": 0, "b": 0}
        more = [missing["a"], missing["b"], pair["errors_decide"]] if lacks else []
        rows.append([*(pair[n] for n in names), *ends, *(pair.get(n) for n in rest), *more])
    return rows


def _adjusted(pair: Mapping[str, Any]) -> str:
    """Write the corrected p-value; it shows nothing where errors decide."""
    return "errors decide" if pair["errors_decide"] else probability(pair["p_adjusted"])


def latex_pairs(pairs: Sequence[Mapping[str, Any]], confidence: float) -> str:
    r"""Write paired differences as LaTeX floats, for `\input`: the metrics below each pair.

    The caption says what is estimated, by which tests, and what intervals and p-values hold for.
    """
    heads = ("metric", "difference", "interval", "$p$", "adjusted $p$", "tasks")
    rows: list[tuple[str, ...] | str] = []
    for (a, b), own in difference_grid(pairs)["rows"].items():
        first, second = side_line(b), f"− {side_line(a)}"
        alone = len(first) + len(second) <= LONG_PAIR
        rows += [f"{first} {second}"] if alone else [first, second]
        rows += [
            (
                *(name, *difference(p)),
                *(probability(p["p"]), _adjusted(p), count(p["tasks"])),
            )
            for name, p in own.items()
        ]
    tests: dict[str, list[str]] = {}
    for pair in pairs:
        if pair["method"]:
            tests.setdefault(pair["method"], []).append(pair["metric"])
    named = (f"{test} ({', '.join(dict.fromkeys(own))})" for test, own in tests.items())
    said = "Paired differences: the mean over the common tasks of the first side minus the second, "
    said += f"each task counted once, with {level(confidence)} confidence intervals. "
    said += f"p: paired, by task, of one comparison alone: {'; '.join(named)}. {family(pairs)}"
    parts = _tabular("lrrrrr", heads, rows).split(_END)[:-1]
    floats = []
    for number, part in enumerate(parts):
        caption = "Paired differences (continued)." if number else said
        label = [] if number else [r"\label{tab:pairs}"]
        lines = [r"\begin{table}", r"\centering", part + _END.rstrip("\n")]
        floats += [*lines, rf"\caption{{{_tex(caption)}}}", *label, r"\end{table}", ""]
    return "\n".join(floats)


_END = "\\end{tabular}\\endgroup\n"
"""Ends each table that `_tabular` writes."""


def _tabular(
    columns: str, heads: Sequence[str], rows: Sequence[Sequence[str] | str], title: str = ""
) -> str:
    """Write a table, or several if it does not fit on a page; a row of one text is a heading."""
    size = LINES_ON_A_PAGE
    parts = [rows[first : first + size] for first in range(0, len(rows), size)] or [rows]
    titles = [title, *[f"{title} (continued)" if title else ""] * (len(parts) - 1)]
    tables = zip(parts, titles, strict=True)
    return "\n".join(_latex_part(columns, heads, part, name) for part, name in tables)


def _latex_part(
    columns: str, heads: Sequence[str], rows: Sequence[Sequence[str] | str], title: str
) -> str:
    wide = len(columns)
    small = r"\begingroup\noindent\footnotesize\setlength{\tabcolsep}{4pt}"
    lines = [rf"{small}\begin{{tabular}}{{@{{}}{columns}@{{}}}}"]
    if title:
        lines.append(_heading_row(wide, title))
    lines.append(f"{' & '.join(heads)} \\\\ \\hline")
    for row in rows:
        if isinstance(row, str):
            lines.append(_heading_row(wide, row))
        else:
            lines.append(f"{' & '.join(map(_tex, row))} \\\\")
    return "\n".join([*lines, ""]) + _END


def _heading_row(wide: int, text: str) -> str:
    return rf"\multicolumn{{{wide}}}{{@{{}}l@{{}}}}{{\textbf{{{_tex(text)}}}}} \\"


_TEX = {
    **{sign: rf"\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "∞": r"$\infty$",
    "−": "$-$",
    "<": "$<$",
    ">": "$>$",
    "×": r"$\times$",
    "≈": r"$\approx$",
    "·": r"$\cdot$",
    "—": "---",
    "–": "--",
    "[": "{[}",
    "]": "{]}",
}


def _tex(text: str) -> str:
    flat = " ".join(clean(text).split())  # LaTeX does not set separators that are not printable
    return "".join(_TEX.get(sign, sign) for sign in flat if sign.isprintable())
