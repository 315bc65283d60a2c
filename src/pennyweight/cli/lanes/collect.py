"""`pennyweight collect`: fetch what is done of a run's batches."""

from __future__ import annotations

import contextlib
import re

import click

from pennyweight.cli.narrowing import narrowing_keywords, repeated_options
from pennyweight.cli.options import by_option, format_option, option, store_option

EPILOG = """\b
Examples:
  pennyweight collect
  pennyweight collect 20260102-030405-ab12 --wait --deadline 6h

\b
Exit codes: 0 everything is there; 3 batches are still out; 4 some attempts
could not be made; others as 'pennyweight run'.
"""
_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


class _Duration(click.ParamType[float]):
    """A time such as 90s, 30m, 6h or 1d, in seconds."""

    name = "time"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|d)?", str(value))
        if not found:
            self.fail(f"{value!r} is not a time; write 90s, 30m, 6h or 1d.", param, ctx)
        return float(found[1]) * _UNITS[found[2] or "s"]


@click.command("collect", epilog=EPILOG)
@click.argument("run", required=False)
@option("--wait", "Stay until every batch is in.", is_flag=True)
@option("--deadline", "This long after the first batch was sent, cancel and call the rest live.",
        "TIME", type=_Duration())  # fmt: skip
@option("--poll", "Time between two checks with --wait.", "TIME", type=_Duration(), default="30s")
@click.option("--suite", "file", metavar="FILE", help="The suite's file, if it has moved.")
@option("--yes", "Repeat changed attempts without asking.", is_flag=True)
@click.option(
    "--until-decided",
    "until",
    multiple=True,
    metavar="POLICY",
    help="The policy that the run was started with.",
)
@option("--baseline", "Records that the policy compares with.", "SOURCE|NAME")
@option("--version", "Evaluated version, for progressive thresholds.", "V")
@option("--otel", "Send every attempt to this OTLP/HTTP endpoint.", "ADDRESS")
@repeated_options
@by_option
@store_option
@format_option
def command(
    run: str | None,
    wait: bool,
    deadline: float | None,
    poll: float,
    file: str | None,
    yes: bool,
    until: tuple[str, ...],
    baseline: str | None,
    version: str | None,
    otel: str | None,
    model: tuple[str, ...],
    set: tuple[str, ...],
    by: list[str],
    store: str | None,
    format: str,
) -> None:
    """Fetch what is done of the batches of a RUN, and print the scores.

    Without RUN, the newest run with batches that are out. Replies are fetched from
    any machine that reaches the store. What expired or failed goes into the next
    batch, and so do the next turns of conversations and the questions to judges.
    """
    from pennyweight.api.lanes import collect as api
    from pennyweight.api.run import Until
    from pennyweight.api.sources import open_store
    from pennyweight.cli.run import compute_numbers, print_scores
    from pennyweight.cli.run_display import RunDisplay

    at = open_store(store)
    click.get_current_context().call_on_close(at.close)
    against = (("--baseline", baseline), ("--version", version))
    words = [word for policy in until for word in ("--until-decided", policy)]
    words += [word for option, value in against if value for word in (option, value)]
    display = RunDisplay(at, None, by, yes=yes, until=words, otel=otel)
    with contextlib.redirect_stdout(display):
        result = api.collect(
            run, wait=wait, deadline=deadline, poll=poll, suite=file, store=at, watch=display,
            until=Until(until, baseline, version) if until else None, otel=otel,
            **narrowing_keywords(model, set),
        )  # fmt: skip
    if not until:
        print_scores(result.stored, at, by, format)
    display.result(result)
    if result.verdict:
        from pennyweight.cli.gate import show

        show(result.verdict, "table" if format == "csv" else format)
    compute_numbers(at, result.id)
    if code := 3 if result.is_waiting and not result.exit_code else result.exit_code:
        raise click.exceptions.Exit(code)
