"""`pennyweight audit`: examine a suite before any model is called."""

from __future__ import annotations

import sys
from typing import Any

import click

from pennyweight.cli.narrowing import narrowing_keywords, selection_options
from pennyweight.cli.options import format_option, option
from pennyweight.text.safe import clean

EPILOG = """\b
Exit codes: 0 no flaw was found; 1 the suite is unsound; 2 wrong usage or an
error in the suite.
Examples:
  pennyweight audit suite.yaml
  pennyweight audit suite.yaml --task 'math-*' --all
  pennyweight audit suite.yaml --judges --limit 3 --set limits.usd=0.50
"""


@click.command("audit", epilog=EPILOG, no_args_is_help=True)
@click.argument("suite")
@selection_options
@option("--judges", "Also ask the judges about such replies; this costs money.", is_flag=True)
@click.option("--all", "every", is_flag=True, help="Show every task, also those without a flaw.")
@format_option
def command(suite: str, judges: bool, every: bool, format: str, **narrowing: Any) -> None:
    """Examine a SUITE: the right replies must pass, and nothing else may.

    Replies that are known to be right or wrong are scored as those of a run would
    be. The target of each task, or its 'solution', must pass. An empty reply, the
    prompt itself, a refusal, the answers of other tasks and all choices at once
    must fail. 'verify' must fail where no agent has worked, and pass with the
    solution. Tasks that are the same or show their target are named. No model is
    called, unless --judges asks the judges.
    """
    from pennyweight.api.audit import audit
    from pennyweight.render.audit import render

    found = audit(
        suite, judges=judges, progress=_show, note=_note, **narrowing_keywords(**narrowing)
    )
    click.echo(render(found, format, every=every), nl=False)
    raise click.exceptions.Exit(found.exit_code)


def _show(done: int, total: int) -> None:
    """Show in a terminal how many workspaces were tried."""
    if sys.stderr.isatty():
        end = "\r" + " " * 40 + "\r" if done == total else ""
        click.echo(f"\rverify: {done:,} of {total:,} workspaces {end}", err=True, nl=False)


def _note(text: str) -> None:
    click.echo(clean(text), err=True)
