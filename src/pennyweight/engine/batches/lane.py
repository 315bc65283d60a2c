"""The lane of a run: the models of its batches, and what goes out and comes in."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from pennyweight.engine.batches.inbox import Inbox, LaneMember
from pennyweight.engine.batches.outbox import Outbox, wanted_request
from pennyweight.engine.batches.pending import (
    PendingError,
    UnansweredError,
    WantedError,
    in_lane,
    lane_subjects,
)
from pennyweight.engine.batches.waiting import services_of
from pennyweight.engine.budget import Amount
from pennyweight.engine.ending import BatchesOut, TakenOver
from pennyweight.engine.execution import model_of
from pennyweight.engine.tally import Tally
from pennyweight.errors import UsageError
from pennyweight.models.batch.dialect import ResultRow
from pennyweight.models.failure import CallError, Kind
from pennyweight.models.model import Model, Reply, Request, Settings
from pennyweight.models.prices import Prices
from pennyweight.record import AttemptKey
from pennyweight.store.lanes.batches import (
    RequestState,
    RunLostError,
    batches_of,
    first_submission,
    forget_replies,
    mark_told,
    open_subjects,
    reply_of,
    request_states,
)
from pennyweight.store.store import Store, StoredRun
from pennyweight.suite.values import Limits, LoadedSuite, Subject
from pennyweight.text.format import plural
from pennyweight.text.safe import clean

MAX_BATCHES = 3
"""How many batches a request may be in before its failure is final."""
_NO_TAPE = "--record records live calls, not the replies of batches."
ROOM = 64
"""Bytes of a file besides its requests, at most."""


@dataclass(slots=True)
class BatchLane:
    """The batches of one kind of call (attempts, or judges) of a run."""

    store: Store
    run: str
    kind: str
    members: Mapping[str, LaneMember]
    inbox: Inbox
    outbox: Outbox
    states: dict[str, tuple[RequestState, int]] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    is_lost: bool = False
    """Whether another process has continued the run."""

    @classmethod
    def of(
        cls,
        store: Store,
        run: str,
        kind: str,
        subjects: Iterable[Subject],
        models: Mapping[str, Model],
        prices: Prices,
        limits: Limits,
        deadline: float | None = None,
    ) -> BatchLane:
        """Open the lane of the subjects that use it, or used it and have batches out.

        `deadline` is in seconds since the first batch of the run was submitted. Those that do not
        use the lane any more are late.
        """
        first = first_submission(store, run) if deadline is not None else None
        late = first is not None and deadline is not None and time.time() >= first + deadline
        before, members = open_subjects(store, run, kind), {}
        for subject in subjects:
            model, stays = models[subject.name], in_lane(subject, limits)
            service = model.batches() if stays or subject.name in before else None
            if service is not None:
                is_late = late or not stays
                members[subject.name] = LaneMember(subject, service, model.name, is_late)
        inbox = Inbox(store, run, kind, members, prices)
        return cls(store, run, kind, members, inbox, Outbox(store, run, kind))

    def collect(self) -> None:
        """Take in what has come back from the providers."""
        with self._while_held():
            self.inbox.collect()
        self.states = request_states(self.store, self.run)

    def wrapped(self, models: Mapping[str, Model]) -> dict[str, Model]:
        """Return the models, with those of the lane in place of those that are called live."""
        return {
            name: BatchedModel(model, self, self.members[name]) if name in self.members else model
            for name, model in models.items()
        }

    def close(self, tally: Tally, *, is_cut: bool = False) -> None:
        """Submit what waits, unless the run was interrupted; set the reason if a batch is out."""
        tally.notes += self.inbox.notes
        if not tally.lost:
            with self._while_held():
                self._close(tally, is_cut=is_cut)
        self.outbox.close()
        if self.is_lost and not tally.lost:
            tally.stop_reason = TakenOver()

    def _close(self, tally: Tally, *, is_cut: bool) -> None:
        mark_told(self.store, self.run, self.told)
        if is_cut:
            self.outbox.discard()
            return
        self.outbox.submit()
        under_way = batches_of(self.store, self.run, ("submitting", "out"))
        out = [b for b in under_way if b.kind == self.kind and b.subject in self.members]
        if out or self.outbox.refused:
            requests = sum(batch.requests for batch in out)
            tally.set_reason(BatchesOut(requests, len(out), self.outbox.refused))
        elif self.kind == "attempt" or tally.stop_reason is None:
            forget_replies(self.store, self.run, self.kind, self.members)

    @contextmanager
    def _while_held(self) -> Iterator[None]:
        """Change nothing any more once another process has continued the run."""
        try:
            yield
        except RunLostError:
            self.is_lost = True

    def reply(self, member: LaneMember, request: Request) -> Reply | None:
        """Return the reply to a request; None if it is to be called live.

        Raise PendingError while it is in a batch, WantedError if it is in none yet.
        """
        owner = f"{self.run}\0{member.subject.name}"
        id_, path, line = member.service.request_id(owner, request)
        state, times = self.states.get(id_, (None, 0))
        if state == "out":
            raise PendingError
        if state == "answered":
            body, _, _ = reply_of(self.store, self.run, id_)
            if body is not None:
                return member.service.reply(ResultRow(id_, 200, json.loads(body)))
        if state == "refused" or (
            state == "failed" and times >= MAX_BATCHES and not member.is_late
        ):
            _, kind, error = reply_of(self.store, self.run, id_)
            self.told.append(id_)
            raise CallError(cast("Kind", kind), error or "", final=True)
        if member.is_late:
            return None
        if len(line) + ROOM > member.service.size.bytes:
            text = "The request is larger than a batch of this provider may be."
            raise CallError("too_large", text, sent=False, final=True)

        def put(key: AttemptKey, most: Amount) -> None:
            wanted = wanted_request(key, id_, times, most)
            with self._while_held():
                self.outbox.put(member.service, member.subject.name, path, line, wanted)
            self.states[id_] = "out", times + 1

        raise WantedError(put)


class BatchedModel(Model):
    """A model that is called in batches: it has a reply, or not yet.

    After the deadline, `UnansweredError` tells which model to call live.
    """

    def __init__(self, live: Model, lane: BatchLane, member: LaneMember) -> None:
        self.name, self.account, self.limit = live.name, live.account, live.limit
        self.ignores = live.ignores
        self._live, self._lane, self._member = live, lane, member

    @property
    def in_batches(self) -> bool:
        """Whether no request is sent live."""
        return True

    def encode(self, request: Request) -> tuple[str, dict[str, Any]] | None:
        """Return the request as it would be sent live."""
        return self._live.encode(request)

    def most_output(self, settings: Settings) -> int | None:
        """Return the maximum number of output tokens of a call."""
        return self._live.most_output(settings)

    async def call(self, request: Request) -> Reply:
        """Return the reply from a batch."""
        reply = self._lane.reply(self._member, request)
        if reply is None:
            raise UnansweredError(LateModel(self._live, self._lane, self._member))
        return reply

    async def close(self) -> None:
        """Close the live model."""
        await self._live.close()


class LateModel(BatchedModel):
    """A model after the deadline of its batches: what they have not answered is called live."""

    @property
    def in_batches(self) -> bool:
        """Whether no request is sent live."""
        return False

    async def call(self, request: Request) -> Reply:
        """Return the reply from a batch, such as that to an earlier turn, or call live."""
        reply = self._lane.reply(self._member, request)
        return await self._live.call(request) if reply is None else reply


def check_out(
    suite: LoadedSuite, run: StoredRun, store: Store, record: Path | None
) -> Iterator[str]:
    """Raise UsageError if batches of a run are out for a subject that its suite does not have.

    Yield a note for each such judge: it may have been named for `pennyweight judge` alone.
    """
    out = batches_of(store, run.id, ("submitting", "out"))
    if record:
        raise UsageError(_NO_TAPE)
    services = services_of(suite)
    for kind, name in sorted({(batch.kind, batch.subject) for batch in out}):
        if services(kind, name) is not None:
            continue
        own = (one.requests for one in out if (one.kind, one.subject) == (kind, name))
        waits = f"Run {run.id} waits for {plural(sum(own), 'request')} of {clean(name)} in batches"
        if kind == "judge":
            yield (
                f"{waits}, which is no judge of the suite: 'pennyweight judge {run.id}' with this "
                "judge fetches the replies."
            )
            continue
        raise UsageError(
            f"{waits}, and the suite no longer asks for them. Put {clean(name)} back until "
            f"'pennyweight collect {run.id}' has fetched the replies, or delete the run with "
            f"'pennyweight rm {run.id} --yes': the provider charges for them all the same."
        )


def check_batches(suite: LoadedSuite, record: Path | None) -> None:
    """Raise UsageError if a provider of the lane has no batches, before the first call."""
    if record:
        raise UsageError(_NO_TAPE)
    asked = set()
    for subject in lane_subjects(suite):
        service = model_of(subject).batches()
        if service is None or service.client.base_url in asked:
            continue
        asked.add(service.client.base_url)
        try:
            service.check()
        except CallError as error:
            raise UsageError(
                f"{subject.name} cannot be called in batches: {error} Nothing was submitted. "
                "'limits: {lane: live}' in the subject calls it live."
            ) from error
