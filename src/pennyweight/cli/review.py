"""`pennyweight review`: a person's verdicts."""

from __future__ import annotations

import getpass
import sys
from typing import TYPE_CHECKING, Any

import click

from pennyweight.cli.options import store_option
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pennyweight.checks.behaviour import Behaviour

ANSWERS = {"y": True, "yes": True, "n": False, "no": False}


@click.command("review", epilog="Example: pennyweight review latest")
@click.argument("run", default="latest")
@click.option("--as", "who", metavar="NAME", help="Who reviews (default: you, by login).")
@click.option("--again", is_flag=True, help="Also ask about what you have said before.")
@store_option
def command(run: str, who: str | None, again: bool, store: str | None) -> None:
    """Ask you about a RUN whatever its suite leaves to a person ('human' checks).

    Each question shows the attempt. Answer y, n, s (skip) or q (stop); a note
    may follow. What you said is kept with your name and the time, and counts
    from then on: 'pennyweight score' gives the new scores.
    """
    from pennyweight.errors import UsageError  # noqa: PLC0415
    from pennyweight.runs.reviews import say, waiting  # noqa: PLC0415
    from pennyweight.store.store import Store  # noqa: PLC0415

    at = Store(store)
    click.get_current_context().call_on_close(at.close)
    found = at.find(run)
    name = (who or getpass.getuser()).strip()
    if not name:
        raise UsageError("--as needs a name.")
    asked = list(waiting(found, at, name, again=again))
    if not asked:
        click.echo("There is nothing to review: no check of this run waits for you.", err=True)
        return
    said, ended = 0, False
    try:
        for number, (row, role, behaviour) in enumerate(asked, 1):
            click.echo(_shown(number, len(asked), row, role, behaviour))
            answer = _answer()
            if answer == "q":
                break
            if answer == "s":
                continue
            note = _note()
            say(at, row, behaviour, name, ANSWERS[answer], note)
            said += 1
    except click.Abort:
        click.echo(err=True)
        ended = True
    were = "1 verdict" if said == 1 else f"{said} verdicts"
    left = f" The rest waits: pennyweight review {found.id}" if ended else ""
    click.echo(f"{were} kept. 'pennyweight score {found.id}' gives the new scores.{left}", err=True)
    if ended:
        raise click.exceptions.Exit(130)


def _note() -> str:
    """Ask for a note; an answer counts also where the input ends before one."""
    try:
        return clean(click.prompt("Note", default="", show_default=False)).strip()
    except click.Abort:
        if sys.stdin.isatty():
            raise
        return ""


def _answer() -> str:
    while True:
        answer = str(click.prompt("[y]es, [n]o, [s]kip, [q]uit", default="s")).strip().lower()
        if answer in ANSWERS or answer in {"s", "q", "skip", "quit"}:
            return answer if answer in ANSWERS else answer[0]


def _said(row: Mapping[str, Any]) -> list[str]:
    """Write what was asked and done, of a conversation every turn."""
    from pennyweight.runs.transcript import calls_of, turns_of  # noqa: PLC0415

    if talk := turns_of(row):
        return [f"{role.capitalize()}:\n{text}" for role, text in talk]
    parts = [f"Asked:\n{row.get('input') or ''}", f"Replied:\n{row.get('response') or ''}"]
    calls = calls_of(row.get("tool_calls"))
    return [*parts, "Tools:\n" + "\n".join(calls)] if calls else parts


def _shown(number: int, count: int, row: Mapping[str, Any], role: str, behaviour: Behaviour) -> str:
    """Write one question with its attempt, cleaned of what could steer a terminal."""
    head = f"── {number} of {count}: task {row['task_id']}, {row['subject']}, {row['tier']}"
    wanted = "must not be so" if role == "must_not" else "should be so"
    parts = [f"{head}, attempt {row['attempt']}", *_said(row)]
    parts.append(f"? {behaviour.question} ({wanted})")
    return clean("\n\n".join(parts)) + "\n"
