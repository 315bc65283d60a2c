"""`pennyweight report`: a report as one file, or a site of runs."""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pennyweight.cli.notes import note_score_errors, note_sources
from pennyweight.cli.options import (
    FILE,
    answer_options,
    baseline_options,
    confidence_option,
    errors_option,
    log_options,
    map_option,
    names_option,
    option,
    scorers_option,
    store_option,
)
from pennyweight.errors import UsageError
from pennyweight.text.format import byte_count, plural

if TYPE_CHECKING:
    from pennyweight.api.static_site.site import WrittenSite
    from pennyweight.api.static_site.size import SiteSize

EPILOG = """\b
Examples:
  pennyweight report latest -o report.html --policy release.yaml
  pennyweight report latest --by category
  pennyweight report --site public
"""
LARGE_FILES, LARGE_BYTES = 50_000, 500_000_000
"""A larger site is not written without asking."""
WITH_SITE = frozenset(("sources", "site", "records", "yes", "title", "store"))
"""The parameters that a site takes."""


@click.command("report", epilog=EPILOG)
@click.argument("sources", nargs=-1, metavar="[SOURCE...]")
@click.option(
    "-o", "--output", type=FILE, default="report.html", help="File to write: .html, .md or .pdf."
)
@option("--site", "Write a site of runs to this folder instead of a report.", "DIR", type=FILE)
@option("--transcripts", "Also write every record, as pages beside the report.", is_flag=True)
@click.option("--records/--no-records", default=True, help="Whether a site has pages of records.")
@click.option("--yes", is_flag=True, help="Write a large site without asking.")
@names_option("--by", "Compare these groups (default: runs, subjects and tiers).", "COLUMNS")
@option("--charts", "Also write the charts to this folder, as SVG and PNG.", type=FILE)
@option("--tables", "Also write the tables to this folder, as CSV and LaTeX.", type=FILE)
@option("--policy", "Decide this policy, as 'pennyweight gate' does.", "FILE", multiple=True)
@baseline_options
@click.option("--title", help="Title of the report (default: the suite or the file).")
@scorers_option
@answer_options
@errors_option
@map_option
@confidence_option
@log_options
@store_option
def command(
    sources: tuple[str, ...],
    output: Path,
    site: Path | None,
    transcripts: bool,
    records: bool,
    yes: bool,
    charts: Path | None,
    tables: Path | None,
    **options: Any,
) -> None:
    """Write a report of any SOURCE (default: the latest run) as one file.

    SOURCE is a run or a file, as for 'pennyweight score'. The HTML file is
    self-contained: it needs no server and no network. Writing a PDF requires
    Chromium.

    --site writes pages of every run in the store, or of the named ones: the list,
    each run with its leaderboard and its tasks, and every record. They open from
    the folder or from any web server.
    """
    if site is not None:
        _refuse_others()
        where = (options["title"], options["store"])
        write_site(site, sources or None, *where, records=records, yes=yes)
        return
    from pennyweight.api.report import report, transcripts_folder, write
    from pennyweight.api.sources import resolve

    logs = {name: options.pop(name) for name in ("scorer", "filter")}
    resolved = resolve(sources or ("latest",), options["store"], **logs)
    made = report(resolved, **options)
    note_sources(resolved, options["map"], options["answer"])
    note_score_errors(made.score_errors)
    pages = None
    if transcripts:
        folder = transcripts_folder(output)
        pages = write_site(folder, resolved, made.title, options["store"], records=True, yes=yes)
    written = write(made, output, charts=charts, tables=tables, transcripts=pages)
    click.echo(f"Wrote {output} ({output.stat().st_size / 1e3:,.0f} kB).", err=True)
    if charts:
        click.echo(f"Wrote {len(written.charts)} charts to {charts}.", err=True)
    if tables:
        click.echo(f"Wrote {len(written.tables)} tables to {tables}.", err=True)


def _refuse_others() -> None:
    """Refuse options that have no effect on a site."""
    context = click.get_current_context()
    usual = click.core.ParameterSource.DEFAULT
    given = [n for n in context.params if context.get_parameter_source(n) is not usual]
    names = sorted(f"--{n.replace('_', '-')}" for n in given if n not in WITH_SITE)
    if names:
        raise UsageError(f"{', '.join(names)}: a site has the pages of whole runs. Leave it out.")


def write_site(
    folder: Path, sources: Any, title: str | None, store: str | None, *, records: bool, yes: bool
) -> WrittenSite:
    """Write a site; its size is told first, and a large one is confirmed."""
    from pennyweight.api.static_site.site import TITLE, site

    made = site(
        folder,
        sources,
        title=title or TITLE,
        records=records,
        store=store,
        agree=partial(agreed, ask=not yes),
        progress=FilesProgress() if sys.stderr.isatty() else None,
    )
    if not made.written:
        raise click.Abort
    about = f"{plural(made.size.files, 'file')}, {byte_count(made.size.bytes)}"
    click.echo(f"Wrote {about}. Open {made.page}.", err=True)
    return made


def agreed(size: SiteSize, *, ask: bool = True) -> bool:
    """Tell the size of a site; ask if it is large, where somebody can answer."""
    about = f"about {plural(size.files, 'file')}, {byte_count(size.bytes)}"
    click.echo(f"The site has {about}.", err=True)
    if not ask or (size.files <= LARGE_FILES and size.bytes <= LARGE_BYTES):
        return True
    how = "Name runs to write only those; --no-records leaves out the pages of records."
    try:
        return click.confirm(f"{how} Write all of it?", err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        raise UsageError(f"Nothing was written. {how} --yes writes all of it.") from None


class FilesProgress:
    """Shows how many files are written, once writing takes more than a second."""

    def __init__(self) -> None:
        self.next = time.monotonic() + 1

    def __call__(self, done: int, of: int) -> None:
        """Show the number, at most five times a second."""
        now = time.monotonic()
        if now > self.next:
            self.next = now + 0.2
            click.echo(f"\r{done:,} of about {of:,} files written … ", err=True, nl=False)
