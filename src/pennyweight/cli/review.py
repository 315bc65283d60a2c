"""`pennyweight review`: verdicts by a person."""

from __future__ import annotations

import getpass
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pennyweight.cli.options import FILE, option, store_option
from pennyweight.text.format import plural
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from pennyweight.api.pages.run_list import Store
    from pennyweight.stored_runs.reviews import ReviewQuestion

ANSWERS = {"y": True, "yes": True, "n": False, "no": False}
LABELS = {"r": "right", "w": "wrong", "u": "unsure"}
EPILOG = """\b
Examples:
  pennyweight review latest
  pennyweight review latest --queue random --size 100 --blind
  pennyweight review latest --import labels.csv --queue random
  pennyweight review latest --agreement
"""


@click.command("review", epilog=EPILOG)
@click.argument("run", default="latest")
@click.option("--as", "who", metavar="NAME", help="Reviewer (default: your login name).")
@click.option("--again", is_flag=True, help="Also ask what you have already answered.")
@option("--queue", "Label records: random, or disagreement.", "DRAW")
@option("--size", "Records in the queue.", "N", type=int, default=50, show_default=True)
@option("--seed", "Random seed of the queue.", "N", type=int, default=0, show_default=True)
@option("--blind", "Hide who answered and the automatic verdict.", is_flag=True)
@option("--import", "Store the labels of a CSV or JSONL file.", "FILE", type=FILE)
@option("--agreement", "Print how people's and automatic verdicts agree.", is_flag=True)
@click.option("--format", type=click.Choice(["text", "json"]), default="text", hidden=True)
@store_option
def command(
    run: str,
    who: str | None,
    again: bool,
    queue: str | None,
    size: int,
    seed: int,
    blind: bool,
    agreement: bool,
    format: str,
    store: str | None,
    **files: Path | None,
) -> None:
    """Answer what the suite of a RUN leaves to a person, or label its records.

    Without --queue, the questions are its 'human' checks. Each shows the
    attempt. Answer y, n, s (skip) or q (quit), and add a note if you like.
    Answers are stored with your name and the time, and count at once:
    'pennyweight score' shows the new scores.

    With --queue, you are shown records drawn from the run. Answer r (right), w
    (wrong), u (unsure), s or q. --agreement compares these labels with the
    automatic verdicts and corrects the metrics by them.

    --import FILE reads labels from the columns task_id and verdict (right, wrong
    or unsure), and optionally subject, tier, attempt, reviewer and notes. With
    --queue random they correct the metrics: say so only if it is true.
    """
    from pennyweight.api.review import questions
    from pennyweight.api.sources import open_store

    at = open_store(store)
    click.get_current_context().call_on_close(at.close)
    if agreement:
        _print_agreement(run, at, format)
        return
    if (path := files["import"]) is not None:
        _import(run, at, path, who or getpass.getuser(), queue)
        return
    if queue is not None:
        _label(run, at, who or getpass.getuser(), (queue, size, seed), again=again, blind=blind)
        return
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


def _print_agreement(run: str, at: Store, format: str) -> None:
    from pennyweight.api.review import agreement
    from pennyweight.render.page.people import people_lines

    found = agreement(run, store=at)
    if format == "json":
        click.echo(json.dumps(found.to_dict(), allow_nan=False))
        return
    for line in people_lines(found):
        click.echo(clean(line))


def _import(run: str, at: Store, path: Path, who: str, queue: Any) -> None:
    from pennyweight.api.review import import_labels

    done = import_labels(run, path, reviewer=who, queue=queue, store=at)
    known = f", {done.known:,} were there already" if done.known else ""
    click.echo(f"{plural(done.saved, 'label')} saved{known}.", err=True)
    if queue is None:
        click.echo(
            "They count as chosen by people and correct no metric. If the records were drawn at "
            "random, add --queue random.",
            err=True,
        )
    click.echo(f"'pennyweight review {done.run} --agreement' shows what they say.", err=True)


def _label(
    run: str, at: Store, who: str, drawn: tuple[Any, int, int], *, again: bool, blind: bool
) -> None:
    """Show the records of a queue one by one, and store what the person says."""
    from pennyweight.api.pages.records import remark_on_record, row
    from pennyweight.api.review import answered, review_queue

    draw, size, seed = drawn
    keys = review_queue(run, draw=draw, size=size, seed=seed, store=at)
    if not keys:
        click.echo("There are no records to label yet.", err=True)
        return
    id_ = keys[0].run
    before = {} if again else answered(id_, who, at, queue=draw)
    stored, done = 0, sum(key in before for key in keys)
    for number, key in enumerate(keys, 1):
        if key in before:
            continue
        click.echo(_record(number, len(keys), row(at, key), blind=blind))
        reply = _one_of("[r]ight, [w]rong, [u]nsure, [s]kip, [q]uit", {*LABELS, "s", "q"})
        if reply == "q":
            break
        if reply != "s":
            verdict = LABELS[reply]
            remark_on_record(at, key, who=who, verdict=verdict, note=_note(), draw=draw)  # type: ignore[arg-type]
            stored += 1
    text = f"{plural(stored, 'verdict')} saved, {stored + done} of {len(keys)} records labelled."
    click.echo(f"{text} 'pennyweight review {id_} --agreement' shows what they say.", err=True)


def _one_of(question: str, known: set[str]) -> str:
    while True:
        try:
            reply = str(click.prompt(question, default="s", show_default=False)).strip().lower()
        except click.Abort:
            return "q"
        if reply[:1] in known:
            return reply[:1]


def _record(number: int, count: int, row: Mapping[str, Any], *, blind: bool) -> str:
    """Write a record of the queue without control characters; blind, without who answered."""
    who = "" if blind else f", {row['subject']}, {row['tier']}, attempt {row['attempt']}"
    parts = [f"── {number} of {count}: task {row['task_id']}{who}"]
    names = {"input": "Prompt", "target": "Target", "response": "Response", "error": "Error"}
    parts += [f"{title}:\n{row[name]}" for name, title in names.items() if row[name]]
    return clean("\n\n".join(parts)) + "\n"


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
