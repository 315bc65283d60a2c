"""The group of all commands; each is imported when it is called."""

from __future__ import annotations

from importlib import import_module
from keyword import iskeyword

import click

from pennyweight import __version__
from pennyweight.cli import allow_interrupts

COMMANDS = {
    "run": "Make the attempts of a suite, store the records, print the scores.",
    "audit": "Examine a suite before any model is called.",
    "collect": "Fetch what is done of a run's batches.",
    "work": "Make attempts of a run that others have started.",
    "score": "Compute metrics of any records.",
    "report": "Write a report of any records as one file.",
    "serve": "View, start and compare runs in the browser.",
    "compare": "Compare tiers, subjects, runs or files on the same tasks.",
    "gate": "Decide by a policy whether records are good enough.",
    "plan": "Plan how many tasks and repeats a question needs.",
    "baseline": "Save records under a name, to compare with later.",
    "metrics": "Explain every metric.",
    "judge": "Judge the attempts of a run by a rubric.",
    "review": "Answer the questions that a suite leaves to a person.",
    "runs": "List the runs in the store.",
    "show": "Show one run in full.",
    "export": "Write the records of a run to a file.",
    "import": "Keep logs of other tools as a run.",
    "rm": "Delete runs.",
    "init": "Create a first suite.",
    "models": "List and fetch local models.",
}
"""The commands, each in the module of its name, with its summary in `pennyweight --help`."""
PLACES = {"collect": "lanes.collect", "work": "sharing.work"}
"""The modules of commands that are in a package of their own."""


class _Lazy(click.Group):
    """A group whose commands are imported when they are called, so that --help is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        module = PLACES.get(module, module)
        command: click.Command = import_module(f"pennyweight.cli.{module}").command
        allow_interrupts()
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
