"""Ask one judge about one attempt: call, read, ask again, and write down what came of it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from assay.judge.consensus import passes, weighted_score
from assay.judge.prompt import again, schema
from assay.judge.reading import UnreadableError, read
from assay.models.failure import CallError
from assay.models.model import Request, Settings, Usage
from assay.run.budget import Amount, ceiling
from assay.run.engine import OUTPUT_TOKENS, SETTINGS, TRIES
from assay.store.store import CALL_COLUMNS, JUDGMENT_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.judge.reading import Reading
    from assay.models.model import Message, Model, Reply
    from assay.run.budget import Budget
    from assay.run.engine import Tally
    from assay.run.limiter import Limiter
    from assay.run.prices import Prices
    from assay.run.writer import Writer
    from assay.store.store import Row
    from assay.suite.rubric import Rubric
    from assay.suite.values import Subject

ASKS = 4
"""Once, and again up to three times."""
KEY = ("subject", "tier", "task_id", "attempt")
LONGEST_PAUSE = 60.0
_GRAMMARS = ("local/", "llamacpp/")
"""Servers whose constrained output also keeps a text short."""

Key = tuple[str, str, str, int]


@dataclass(frozen=True, slots=True)
class Known:
    """What is already known of one judge's opinion of one attempt."""

    fingerprint: str
    status: str
    score: float | None


@dataclass(frozen=True, slots=True)
class Brief:
    """One attempt to be judged: its key, what a judge is asked, and the judgments there are."""

    key: Key
    asked: tuple[Message, ...]
    digest: str
    known: Mapping[str, Known]


@dataclass(frozen=True, slots=True)
class Desk:
    """What the judges of a run share."""

    run: str
    rubric: Rubric
    prices: Prices
    budget: Budget
    tally: Tally
    writer: Writer
    jitter: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311


@dataclass(slots=True)
class Spent:
    """What the calls for one judgment have taken so far."""

    tries: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    latency_ms: float | None = None

    def add(self, reply: Reply, cost: float | None) -> None:
        """Add one reply; a cost that is not known makes the whole not known."""
        usage, first = reply.usage, self.tries == 0
        self.prompt_tokens = _plus(self.prompt_tokens, usage.prompt_tokens)
        self.completion_tokens = _plus(self.completion_tokens, usage.completion_tokens)
        self.latency_ms = _plus(self.latency_ms, reply.latency_ms)
        known = cost is not None and (first or self.cost_usd is not None)
        self.cost_usd = (self.cost_usd or 0.0) + (cost or 0.0) if known else None
        self.tries += 1


def _plus(total: Any, more: Any) -> Any:
    return more if total is None else total + (more or 0)


class FailedError(Exception):
    """A call that failed for good, with its row of the ledger."""

    def __init__(self, error: CallError, row: Row) -> None:
        self.row = row
        super().__init__(str(error))


@dataclass(frozen=True, slots=True)
class Judge:
    """One judge made ready."""

    subject: Subject
    model: Model
    limiter: Limiter
    settings: Settings
    mark: str
    """What decides, with the text, whether an old judgment stands."""
    desk: Desk

    @classmethod
    def of(cls, subject: Subject, model: Model, limiter: Limiter, desk: Desk) -> Judge:
        """Make a judge ready: its output is constrained unless the suite says otherwise."""
        options = dict(subject.settings)
        if not options.keys() & {"schema", "response_format"}:
            bounded = subject.base_url is None and subject.model.startswith(_GRAMMARS)
            options["schema"] = schema(desk.rubric, bounded=bounded)
        known = {n: v for n, v in options.items() if n in SETTINGS}
        rest = {n: v for n, v in options.items() if n not in SETTINGS}
        known["extra"] = {**known.get("extra", {}), **rest}
        mark = json.dumps([subject.model, subject.base_url, subject.settings], default=str)
        return cls(subject, model, limiter, Settings.of(known), mark, desk)

    def fingerprint(self, brief: Brief) -> str:
        """Hash rubric, judge and judged text; the rubric's own mark stands in front."""
        whole = hashlib.blake2b(f"{self.mark}\0{brief.digest}".encode(), digest_size=12)
        return f"{self.desk.rubric.mark}:{whole.hexdigest()}"

    def stands(self, brief: Brief) -> bool:
        """Whether a valid judgment is there already."""
        known = brief.known.get(self.subject.name)
        return (
            known is not None
            and known.status == "ok"
            and known.fingerprint == self.fingerprint(brief)
        )

    async def opinion(self, brief: Brief) -> float | None:
        """Give its score: the one that stands, else a new one; null if it gives none."""
        if self.stands(brief):
            return brief.known[self.subject.name].score
        asked, spent, reply = brief.asked, Spent(), None
        for number in range(1, ASKS + 1):
            try:
                reply, row = await self._call(brief, Request(asked, self.settings, brief.key[3]))
            except FailedError as failed:
                return await self._put(brief, spent, failed.row, "error", str(failed), reply)
            spent.add(reply, self._cost(reply))
            try:
                reading = read(reply.text, self.desk.rubric)
            except UnreadableError as error:
                if number == ASKS:
                    return await self._put(brief, spent, row, "invalid", str(error), reply)
                await self.desk.writer.put(None, [row])
                asked = again(brief.asked, reply.text, str(error))
                continue
            return await self._put(brief, spent, row, "ok", None, reply, reading)
        raise AssertionError

    async def _call(self, brief: Brief, request: Request) -> tuple[Reply, Row]:
        """Call, trying again where that can help; gives the reply and its row of the ledger."""
        desk = self.desk
        for tries in range(1, TRIES + 1):
            await self.limiter.enter()
            sent = time.monotonic()
            try:
                reply = await self._once(request)
            except CallError as error:
                self.limiter.failed(error)
                waited = (time.monotonic() - sent) * 1000
                row = self._ledger(brief, error.kind, Usage(), None, waited)
                if not error.retryable or tries == TRIES or desk.tally.stopping:
                    raise FailedError(error, row) from error
                await desk.writer.put(None, [row])
                longest = min(0.25 * 2**tries, 20.0)
                pause = error.retry_after or desk.jitter.uniform(longest / 2, longest)
            else:
                self.limiter.succeeded()
                row = self._ledger(brief, "ok", reply.usage, self._cost(reply), reply.latency_ms)
                return reply, row
            finally:
                self.limiter.leave()
            desk.tally.retries += 1
            await asyncio.sleep(min(pause, LONGEST_PAUSE))
        raise AssertionError

    async def _once(self, request: Request) -> Reply:
        """Call once, within the budget."""
        desk = self.desk
        turns = [{"role": m.role, "content": m.content} for m in request.messages]
        tokens, output = ceiling(turns), request.settings.max_tokens or OUTPUT_TOKENS
        cost = desk.prices.cost(self.subject, Usage(tokens, output))
        most = Amount(cost, tokens + output)
        await desk.budget.reserve(most)
        used = Amount(0.0, 0)
        try:
            reply = await self.model.call(request)
            usage = reply.usage
            known = [n for n in (usage.prompt_tokens, usage.completion_tokens) if n is not None]
            used = Amount(self._cost(reply), sum(known) if known else None)
        finally:
            desk.budget.settle(most, used)
        return reply

    def _cost(self, reply: Reply) -> float | None:
        """What a reply cost: by its own account, else by its tokens."""
        if reply.cost_usd is not None:
            return reply.cost_usd
        return self.desk.prices.cost(self.subject, reply.usage)

    async def _put(
        self,
        brief: Brief,
        spent: Spent,
        call: Row,
        status: str,
        error: str | None,
        reply: Reply | None,
        reading: Reading | None = None,
    ) -> float | None:
        """Hand a judgment over, in one transaction with its last call; gives its score."""
        rubric = self.desk.rubric
        score = weighted_score(rubric, reading.scores) if reading else None
        values: dict[str, Any] = {
            **dict(zip(KEY, brief.key, strict=True)),
            **asdict(spent),
            "run": self.desk.run,
            "judge": self.subject.name,
            "fingerprint": self.fingerprint(brief),
            "status": status,
            "error": _storable(error) if error else None,
            "score": score,
            "passed": passes(score, rubric.pass_mark),
            "reply": _storable(reply.text) if reply else None,
            "at": time.time(),
        }
        if reading:
            values |= {
                "confidence": reading.confidence,
                "claimed_score": reading.claimed_score,
                "claimed_passed": reading.claimed_passed,
                "items": json.dumps(reading.plain()),
            }
        await self.desk.writer.put(tuple(map(values.get, JUDGMENT_COLUMNS)), [call])
        return score

    def _ledger(
        self, brief: Brief, status: str, usage: Usage, cost: float | None, latency: float | None
    ) -> Row:
        values = {
            **dict(zip(KEY, brief.key, strict=True)),
            "run": self.desk.run,
            "kind": "judge",
            "model": self.model.name,
            "status": status,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cost_usd": cost,
            "latency_ms": latency,
            "at": time.time(),
        }
        return tuple(map(values.get, CALL_COLUMNS))


def _storable(value: str) -> str:
    """Replace what no database takes as text: NUL, and halves of surrogate pairs."""
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
