"""The command line: one file for each command, loaded when it is used.

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
    "serve": "View, start and compare runs in the browser.",
    "compare": "Compare tiers, subjects, runs or files on the same tasks.",
    "gate": "Decide by a policy whether records are good enough, for example in CI.",
    "baseline": "Save records under a name, to compare with later.",
    "metrics": "Explain every metric.",
    "judge": "Judge the attempts of a run by a rubric.",
    "review": "Answer the questions that a suite leaves to a person.",
    "runs": "List the runs in the store.",
    "show": "Show one run in full.",
    "export": "Write the records of a run to a file.",
    "rm": "Delete runs.",
    "init": "Create a first suite.",
    "models": "List and fetch local models.",
}
"""The commands, each in the module of its name, with its summary in `pennyweight --help`."""


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
            from pennyweight.errors import unknown

            near = [name for name in COMMANDS if name != "rm"]  # never suggest deletion
            ctx.fail(unknown("Command", args[0], near, "'pennyweight --help' lists them all."))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=_Lazy,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 80,
        "show_default": True,
    },
    epilog="Example: pennyweight score records.jsonl --by tier",
)
@click.version_option(__version__, prog_name="pennyweight")
def cli() -> None:
    """Measure language models and agents, and decide whether they are good enough."""


def main() -> None:
    """Run the command line. A user's mistake is one message and exit code 2, never a traceback."""
    from pennyweight.errors import PennyweightError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without ∞ shows ?
            stream.reconfigure(errors="replace")
    try:
        sys.exit(cli(standalone_mode=False))
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except PennyweightError as error:
        from pennyweight.text.safe import clean

        click.echo(f"Error: {clean(str(error))}", err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        sys.exit(130)
    except BrokenPipeError:
        if sys.stderr is not None:
            sys.stderr.close()
        sys.exit(0)
    except OSError as error:  # for example, standard output on a full disk
        click.echo(f"Error: {error.strerror or error}.", err=True)
        sys.exit(2)


def entry() -> None:
    """Run the command line as a separate process.

    The process ends at once: freeing the memory of a large table takes a tenth of a second. Most
    objects live as long as the process, so garbage is collected less often.
    """
    gc.set_threshold(100_000, 50, 100)
    code: object = 1
    try:
        main()
    except SystemExit as end:
        code = end.code
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # the reader is gone, as with `| head`
            if stream is not None:  # as after `2>&-`
                stream.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)
