"""The command line: one command a file, loaded when it is used.

Tested elsewhere:
    baseline.py: tests/cli/test_gate.py
    export.py: tests/api/test_export.py
    notes.py: tests/cli/test_score.py
    report.py: tests/render/test_report.py
    review.py: tests/runs/test_observations.py
    run_display.py: tests/cli/test_run.py
    runs.py: tests/cli/test_run.py
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import sys
from importlib import import_module

import click

from pennyweight import __version__

COMMANDS = {
    "run": "Make the attempts of a suite, store the records, print the scores.",
    "score": "Compute metrics of any records.",
    "report": "Write a report of any records as one file.",
    "serve": "Look at runs, start and compare them in the browser.",
    "compare": "Compare tiers, subjects, runs or files on the same tasks.",
    "gate": "Decide by a policy whether records are good enough; made for CI.",
    "baseline": "Keep records under a name, to compare with later.",
    "metrics": "Show what every number means.",
    "judge": "Judge the attempts of a run by a rubric.",
    "review": "Answer the questions that a suite leaves to a person.",
    "runs": "List the runs in the store.",
    "show": "Show one run in full.",
    "export": "Write the records of a run to a file.",
    "rm": "Delete runs.",
    "init": "Write a first suite.",
    "models": "List and fetch local models.",
}
"""The commands, each in the module of its name, with what `pennyweight --help` says of them."""


class _Lazy(click.Group):
    """A group whose commands are imported when they are called, so that --help is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"pennyweight.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from pennyweight.errors import unknown  # noqa: PLC0415

            near = [name for name in COMMANDS if name != "rm"]  # nobody is led to delete
            ctx.fail(unknown("Command", args[0], near, "'pennyweight --help' lists them all."))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=_Lazy,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog="Example: pennyweight score records.jsonl --by tier",
)
@click.version_option(__version__, prog_name="pennyweight")
def cli() -> None:
    """Measure language models and agents, and decide whether they are good enough."""


def main() -> None:
    """Run the command line; a mistake of the user is one message and exit 2, never a traceback."""
    from pennyweight.errors import PennyweightError  # noqa: PLC0415

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without ∞ and — shows ? instead
            stream.reconfigure(errors="replace")
    try:
        sys.exit(cli(standalone_mode=False))
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except PennyweightError as error:
        from pennyweight.text.safe import clean  # noqa: PLC0415

        click.echo(f"Error: {clean(str(error))}", err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        sys.exit(130)
    except BrokenPipeError:
        if sys.stderr is not None:
            sys.stderr.close()
        sys.exit(0)
    except OSError as error:  # such as a full disk below standard output
        click.echo(f"Error: {error.strerror or error}.", err=True)
        sys.exit(2)


def entry() -> None:
    """Run the command line as a process of its own.

    It ends at once: giving back the memory of a large table piece by piece takes a tenth of a
    second, and nothing is left to do. What is under way was ended by then. Most of what it makes
    lives as long as it does, so the collector need not look so often.
    """
    gc.set_threshold(100_000, 50, 100)
    code: object = 1
    try:
        main()
    except SystemExit as end:
        code = end.code
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # a reader that went away, as with `| head`
            if stream is not None:  # as after `2>&-`
                stream.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)
