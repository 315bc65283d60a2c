"""The review queue: records for people to label, and the questions that a suite leaves to them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.requests import Request

from pennyweight.api import review as reviews
from pennyweight.api.pages import records as api_records
from pennyweight.api.pages.records import AttemptKey
from pennyweight.api.pages.run_list import RunState, Store, state_mark
from pennyweight.errors import UsageError
from pennyweight.render.page.people import (
    CorrectionRow,
    agreement_lines,
    correction_rows,
    waiting_questions,
)
from pennyweight.render.transcript import record as record_texts
from pennyweight.render.transcript import trajectory
from pennyweight.render.transcript.code import new_page
from pennyweight.web import forms
from pennyweight.web.addresses import read_key, run_url, whole_number, write_key
from pennyweight.web.rest import ERRORS, Here, RunId
from pennyweight.web.site import Shown, Site

QUESTIONS = "questions"
"""The queue of the suite's `human` checks, beside those that `reviews.DRAWS` names."""
MAX_STEPS = 40
BLIND_BYTES = 120_000
"""The size of all steps where none can be opened alone, because its address tells who answered."""
api = APIRouter(prefix="/api", responses=ERRORS, tags=["review"])
_VEILED = re.compile("[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class QueueChoice:
    """What a person asked to review."""

    draw: str = "random"
    who: str = ""
    size: int = 50
    seed: int = 0
    blind: bool = False

    @classmethod
    def of(cls, query: Any) -> QueueChoice:
        """Read it from an address."""
        draw = query.get("draw") or "random"
        if draw not in {*reviews.DRAWS, QUESTIONS}:
            raise UsageError(f"draw: {draw[:40]!r} is not random, disagreement or questions.")
        numbers = (_whole(query, "size", 50, reviews.MAX_QUEUE), _whole(query, "seed", 0, 2**31))
        return cls(draw, query.get("as", "").strip()[:80], *numbers, query.get("blind") == "1")

    def address(self, run: str, place: int | None = None) -> str:
        """Return the address of a place in the queue."""
        given = {"draw": self.draw, "as": self.who, "at": place, "blind": "1" if self.blind else ""}
        sizes = {} if self.draw == QUESTIONS else {"size": self.size, "seed": self.seed}
        return run_url(run, "review", **given, **sizes)


def _whole(query: Any, name: str, usual: int, most: int) -> int:
    text = query.get(name) or str(usual)
    if not text.isdecimal() or not (name == "seed" or int(text[:9]) > 0) or int(text[:12]) > most:
        raise UsageError(f"{name}: {text[:40]!r} is not a whole number up to {most:,}.")
    return int(text)


@lru_cache(32)
def _drawn(store: Store, run: str, mark: str, choice: QueueChoice) -> tuple[AttemptKey, ...]:
    """Draw a queue, again only if the run changed (`mark`)."""
    del mark
    draw: Any = choice.draw
    drawn = reviews.review_queue(run, draw=draw, size=choice.size, seed=choice.seed, store=store)
    return tuple(drawn)


@lru_cache(32)
def _people(
    store: Store, run: str, stamp: str, said: str
) -> tuple[tuple[str, ...], tuple[CorrectionRow, ...]]:
    """Return what labels say, in sentences and as a table."""
    del stamp, said
    found = reviews.agreement(run, store=store)
    return tuple(agreement_lines(found)), tuple(correction_rows(found))


def review(request: Request, site: Site) -> Shown:
    """Show one record of a queue, or what can be reviewed and what labels say so far."""
    query, state = request.query_params, site.state(request.path_params["run"])
    run, choice = state.run, QueueChoice.of(query)
    values: dict[str, Any] = {"run": run, "choice": choice, "draws": reviews.DRAWS}
    values |= {"at": None, "questions": ""}
    if choice.who and choice.draw == QUESTIONS:
        values |= _question(query, site, run, choice)
    elif choice.who:
        site.digests.get(run)  # the automatic verdicts are stored with it
        values |= _record(query, site, state, choice)
    if values["at"] is None:
        said = reviews.newest(run.id, site.store)
        told = _people(site.store, run.id, state.stamp, said) if said else ((), ())
        values["lines"], values["rows"] = told
        values |= _offered(query, site, state, choice)
    return "review.html", values


def _offered(query: Any, site: Site, state: RunState, choice: QueueChoice) -> dict[str, Any]:
    """Return the queues to choose from, the suite's questions first if nobody has answered some."""
    if not reviews.leaves_questions(state.run.id, site.store):
        return {}
    digest = site.digests.get(state.run, state=state).digest
    if not digest or not digest["questions"]:
        return {"draws": (*reviews.DRAWS, QUESTIONS)}
    first = choice if query.get("draw") else replace(choice, draw=QUESTIONS)
    told = waiting_questions(digest["questions"])
    return {"draws": (QUESTIONS, *reviews.DRAWS), "choice": first, "questions": told}


def _place(query: Any, done: list[bool]) -> int | None:
    """Return the place that is asked for, else the first that is not done; None at the end."""
    asked = whole_number(query.get("at", ""))
    if 1 <= asked <= len(done):
        return asked - 1
    return next((n for n, one in enumerate(done) if not one), None)


def _next(done: list[bool], at: int) -> int | None:
    """Return the next place after one that is not done, going round."""
    order = [*range(at + 1, len(done)), *range(at)]
    return next((n for n in order if not done[n]), None)


def _moves(run: str, choice: QueueChoice, done: list[bool], at: int | None) -> dict[str, Any]:
    moves: dict[str, Any] = {"at": at, "many": len(done), "done": sum(done), "complete": True}
    if at is None:
        return moves
    following = _next(done, at)
    end = choice.address(run) + "&at=end"
    moves["next"] = end if following is None else choice.address(run, following + 1)
    moves["previous"] = choice.address(run, at) if at else None
    moves["skip"] = choice.address(run, at + 2) if at + 1 < len(done) else None
    return moves


def _record(query: Any, site: Site, state: Any, choice: QueueChoice) -> dict[str, Any]:
    run, store = state.run, site.store
    draw: Any = choice.draw
    unnamed = QueueChoice(choice.draw, "", choice.size, choice.seed)
    mark = state_mark(state.stamp)
    keys = _drawn(store, run.id, mark, unnamed)
    given = reviews.answered(run.id, choice.who, store)
    counted = reviews.answered(run.id, choice.who, store, queue=draw)
    done = [key in counted for key in keys]
    at = None if query.get("at") == "end" else _place(query, done)
    values = _moves(run.id, choice, done, at)
    if at is None:
        return values
    detail = api_records.detail(store, run, keys[at])
    row, reply = detail.row, detail.row["response"] or ""
    thought = record_texts.shown_thought(detail.measures, reply, row["reasoning"]) or ""
    steps = trajectory.trajectory(row)
    first = max(0, min(whole_number(query.get("from", "")), len(steps)) - 1)
    shown = steps[first : first + MAX_STEPS]
    here = choice.address(run.id, at + 1)
    new_page()
    return values | {
        "row": row,
        "key": write_key(row),
        "veiled": reviews.veiled(keys[at]),
        "state": mark,
        "measures": detail.measures,
        "mine": given.get(keys[at]),
        "elsewhere": keys[at] in given and keys[at] not in counted,
        "turns": record_texts.prompt_turns(row["messages"], row["input"], raw=False),
        "reply": record_texts.unmarked_text(reply, record_texts.REPLY_BYTES),
        "thought": record_texts.unmarked_text(thought, record_texts.THOUGHT_BYTES),
        "steps": trajectory.shown_steps(shown, BLIND_BYTES)
        if choice.blind
        else trajectory.shown_steps(shown),
        "step_count": len(steps),
        "earlier": f"{here}&from={max(1, first + 1 - MAX_STEPS)}" if first else None,
        "later": f"{here}&from={first + 1 + MAX_STEPS}" if steps[first + MAX_STEPS :] else None,
        "work": record_texts.agent_work(row),
        "judgments": () if choice.blind else detail.judgments,
        "remarks": () if choice.blind else detail.remarks,
    }


def _question(query: Any, site: Site, run: Any, choice: QueueChoice) -> dict[str, Any]:
    every = reviews.questions(run.id, reviewer=choice.who, again=True, store=site.store)
    open_ = reviews.questions(run.id, reviewer=choice.who, store=site.store)
    waiting = {(AttemptKey.of(q.record), q.behaviour.mark) for q in open_}
    done = [(AttemptKey.of(q.record), q.behaviour.mark) not in waiting for q in every]
    at = None if query.get("at") == "end" else _place(query, done)
    values = _moves(run.id, choice, done, at)
    if at is None:
        return values
    asked = every[at]
    return values | {
        "row": asked.record,
        "veiled": reviews.veiled(AttemptKey.of(asked.record))
        if choice.blind
        else write_key(asked.record),
        "question": asked.behaviour.question,
        "must_not": asked.role == "must_not",
        "mark": asked.behaviour.mark,
        "texts": record_texts.conversation(asked.transcript),
        "answered": done[at],
    }


@api.get("/runs/{run}/review", summary="Draw a review queue")
def queue(
    site: Here,
    run: RunId,
    draw: Annotated[Literal["random", "disagreement"], Query()] = "random",
    size: Annotated[int, Query(ge=1, le=reviews.MAX_QUEUE)] = 50,
    seed: Annotated[int, Query(ge=0, le=2**31)] = 0,
) -> list[str]:
    """Return the keys of records for people to label; the same seed draws the same records."""
    found = site.run(run)
    keys = reviews.review_queue(found.id, draw=draw, size=size, seed=seed, store=site.store)
    return [write_key(key._asdict()) for key in keys]


@api.post("/runs/{run}/review", summary="Label a record of a review queue", status_code=201)
def label(site: Here, run: RunId, form: forms.LabelledForm) -> forms.StartedAnswer:
    """Store a person's verdict on a record, which is named as the page of its queue names it.

    With the `state` that the page names, it counts as drawn also if the run has changed since, as
    long as the server has not forgotten that queue.
    """
    state = site.state(run)
    choice = QueueChoice(form.draw, "", form.size, form.seed)
    reviews.label(
        state.run.id,
        form.record,
        form.verdict,
        queue=_drawn(site.store, state.run.id, form.state or state_mark(state.stamp), choice),
        draw=form.draw,
        reviewer=form.who,
        note=form.note,
        store=site.store,
    )
    return forms.StartedAnswer(run=state.run.id)


@api.get("/runs/{run}/agreement", summary="Compare people's and automatic verdicts")
def agreement(site: Here, run: RunId) -> dict[str, Any]:
    """Return agreement, Cohen's kappa, and the metrics corrected by people's labels."""
    return reviews.agreement(site.run(run).id, store=site.store).to_dict()


@api.post("/runs/{run}/answers", summary="Answer a human check", status_code=201)
def answer(site: Here, run: RunId, form: forms.AnswerForm) -> forms.StartedAnswer:
    """Store a person's answer to a question of the suite about a record."""
    found = site.run(run)
    veiled = _VEILED.fullmatch(form.key)
    reviews.answer(
        found.id,
        form.key if veiled else read_key(found.id, form.key),
        form.mark,
        reviewer=form.who,
        holds=form.holds,
        note=form.note or "",
        store=site.store,
    )
    return forms.StartedAnswer(run=found.id)
