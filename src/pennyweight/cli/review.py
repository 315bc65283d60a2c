"""`pennyweight review`: verdicts by a person."""

from __future__ import annotations

import getpass
import sys
from typing import TYPE_CHECKING

import click

from pennyweight.cli.options import store_option
from pennyweight.text.format import plural
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from pennyweight.stored_runs.reviews import ReviewQuestion

ANSWERS = {"y": True, "yes": True, "n": False, "no": False}


@click.command("review", epilog="Example: pennyweight review latest")
@click.argument("run", default="latest")
@click.option("--as", "who", metavar="NAME", help="Reviewer (default: your login name).")
@click.option("--again", is_flag=True, help="Also ask what you have already answered.")
@store_option
def command(run: str, who: str | None, again: bool, store: str | None) -> None:
    """Answer the questions that the suite of a RUN leaves to a person.

    These are its 'human' checks. Each question shows the attempt. Answer y, n,
    s (skip) or q (quit), and add a note if you like. Answers are stored with
    your name and the time, and count at once: 'pennyweight score' shows the new
    scores.
    """
    from pennyweight.api.review import questions
    from pennyweight.api.sources import open_store

    at = open_store(store)
    click.get_current_context().call_on_close(at.close)
    asked = questions(run, reviewer=who or getpass.getuser(), again=again, store=at)
    if not asked:
        click.echo("There is nothing to review: no check of this run waits for you.", err=True)
        return
    id_, stored, ended = asked[0].run.id, 0, False
    try:
        for number, question in enumerate(asked, 1):
            click.echo(_shown(number, len(asked), question))
            reply = _reply()
            if reply == "q":
                break
            if reply == "s":
                continue
            question.answer(at, holds=ANSWERS[reply], note=_note())
            stored += 1
    except click.Abort:
        click.echo(err=True)
        ended = True
    rest = f" Continue with: pennyweight review {id_}" if ended else ""
    text = f"{plural(stored, 'verdict')} saved. 'pennyweight score {id_}' shows the new scores."
    click.echo(f"{text}{rest}", err=True)
    if ended:
        raise click.exceptions.Exit(130)


def _note() -> str:
    """Ask for a note; an answer counts even if the input ends before it."""
    try:
        return clean(click.prompt("Note", default="", show_default=False)).strip()
    except click.Abort:
        if sys.stdin.isatty():
            raise
        return ""


def _reply() -> str:
    while True:
        reply = str(click.prompt("[y]es, [n]o, [s]kip, [q]uit", default="s")).strip().lower()
        if reply in ANSWERS or reply in {"s", "q", "skip", "quit"}:
            return reply if reply in ANSWERS else reply[0]


def _shown(number: int, count: int, question: ReviewQuestion) -> str:
    """Write one question with its attempt, without control characters."""
    row = question.record
    head = f"── {number} of {count}: task {row['task_id']}, {row['subject']}, {row['tier']}"
    expected = "must not be so" if question.role == "must_not" else "should be so"
    parts = [f"{head}, attempt {row['attempt']}"]
    parts += [f"{title}:\n{text}" for title, text in question.transcript]
    parts.append(f"? {question.behaviour.question} ({expected})")
    return clean("\n\n".join(parts)) + "\n"
