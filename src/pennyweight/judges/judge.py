"""Ask one judge about one attempt: call, read, ask again, and write down what came of it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pennyweight.engine.budget import Amount, Budget, ceiling
from pennyweight.engine.calls import CutError, LateError, Made, call_row, called, cost_of, used_of
from pennyweight.engine.engine import OUTPUT_TOKENS
from pennyweight.engine.workforce import Workforce
from pennyweight.judges.prompt import again, schema
from pennyweight.judges.replies import Reading, UnreadableError, read
from pennyweight.models.model import Message, Model, Reply, Request, Settings, Usage
from pennyweight.record import AttemptKey
from pennyweight.scoring.consensus import passes, weighted_score
from pennyweight.store.store import JUDGMENT_COLUMNS, Row
from pennyweight.suite.rubric import Rubric
from pennyweight.suite.values import Subject
from pennyweight.text.safe import storable

if TYPE_CHECKING:
    from pennyweight.engine.tally import Tally
    from pennyweight.models.prices import Prices

ASKS = 4
"""Once, and again up to three times."""
_GRAMMARS = ("local/", "llamacpp/")
"""Servers whose constrained output also keeps a text short."""


@dataclass(frozen=True, slots=True)
class ValidJudgment:
    """A valid judgment that is there already."""

    score: float | None
    at: float


Knowledge = dict[tuple[str, str], ValidJudgment]
"""The valid judgments of one attempt, by judge and fingerprint."""


@dataclass(frozen=True, slots=True)
class Brief:
    """One attempt to be judged: its key, what a judge is asked, and the judgments there are."""

    key: AttemptKey
    asked: tuple[Message, ...]
    digest: str
    known: Mapping[tuple[str, str], ValidJudgment]

    @classmethod
    def of(
        cls,
        key: AttemptKey,
        asked: tuple[Message, ...],
        known: Mapping[tuple[str, str], ValidJudgment],
    ) -> Brief:
        """Make it, with a hash of what is asked."""
        text = "\0".join(m.content for m in asked).encode("utf-8", "replace")
        return cls(key, asked, hashlib.blake2b(text, digest_size=12).hexdigest(), known)


@dataclass(frozen=True, slots=True)
class Desk:
    """What the judges of a run share."""

    run: str
    rubric: Rubric
    prices: Prices
    workforce: Workforce

    @property
    def budget(self) -> Budget:
        """The run's budget."""
        return self.workforce.budget

    @property
    def tally(self) -> Tally:
        """What has happened so far."""
        return self.workforce.tally


@dataclass(slots=True)
class Spent:
    """What the calls for one judgment have taken so far."""

    tries: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    latency_ms: float | None = None

    def add(self, reply: Reply, cost: float | None) -> None:
        """Add one reply; what is not known of one makes the whole not known."""
        usage = reply.usage
        self.prompt_tokens = self._plus(self.prompt_tokens, usage.prompt_tokens)
        self.completion_tokens = self._plus(self.completion_tokens, usage.completion_tokens)
        self.latency_ms = self._plus(self.latency_ms, reply.latency_ms)
        self.cost_usd = self._plus(self.cost_usd, cost)
        self.tries += 1

    def _plus(self, total: Any, more: Any) -> Any:
        if self.tries == 0:
            return more
        return None if total is None or more is None else total + more


@dataclass(frozen=True, slots=True)
class Judge:
    """One judge made ready."""

    subject: Subject
    model: Model
    settings: Settings
    output: int
    """The most tokens that may come out of a call."""
    mark: str
    """What decides, with the text, whether an old judgment stands."""
    desk: Desk

    @classmethod
    def of(cls, subject: Subject, model: Model, desk: Desk) -> Judge:
        """Make a judge ready: its output is constrained unless the suite says otherwise."""
        options = dict(subject.settings)
        if not options.keys() & {"schema", "response_format"}:
            bounded = subject.base_url is None and subject.model.startswith(_GRAMMARS)
            options["schema"] = schema(desk.rubric, bounded=bounded)
        mark = json.dumps([subject.model, subject.base_url, subject.settings], default=str)
        settings = Settings.from_suite(options)
        output = model.most_output(settings) or OUTPUT_TOKENS
        return cls(subject, model, settings, output, mark, desk)

    def fingerprint(self, brief: Brief) -> str:
        """Hash rubric, judge and judged text; the rubric's own mark stands in front."""
        whole = hashlib.blake2b(f"{self.mark}\0{brief.digest}".encode(), digest_size=12)
        return f"{self.desk.rubric.mark}:{whole.hexdigest()}"

    def standing(self, brief: Brief) -> ValidJudgment | None:
        """Give the valid judgment that is there already."""
        return brief.known.get((self.subject.name, self.fingerprint(brief)))

    def stands(self, brief: Brief) -> bool:
        """Whether a valid judgment is there already."""
        return self.standing(brief) is not None

    def outdated(self, brief: Brief) -> bool:
        """Whether the one that stands is older than another by the same judge and rubric."""
        own, rubric = self.standing(brief), f"{self.desk.rubric.mark}:"
        return own is not None and any(
            judge == self.subject.name and mark.startswith(rubric) and other.at > own.at
            for (judge, mark), other in brief.known.items()
        )

    async def opinion(self, brief: Brief) -> float | None:
        """Give its score: the one that stands, else a new one; null if it gives none."""
        standing = self.standing(brief)
        if standing is not None:
            return standing.score
        asked, spent, reply = brief.asked, Spent(), None
        for number in range(1, ASKS + 1):
            key = brief.key
            label = f"{key.tier}\0{key.task_id}"
            request = Request(asked, self.settings, key.attempt, label=label)
            made, row = await self._call(brief, request)
            if made.reply is None:
                return await self._put(brief, spent, row, "error", str(made.error), reply)
            reply = made.reply
            spent.add(reply, cost_of(self.desk.prices, self.subject, reply))
            try:
                reading = read(reply.text, self.desk.rubric, truncated=reply.truncated)
            except UnreadableError as error:
                if number == ASKS:
                    return await self._put(brief, spent, row, "invalid", str(error), reply)
                await self.desk.workforce.writer.put(None, [row])
                asked = again(brief.asked, reply.text, str(error))
                continue
            return await self._put(brief, spent, row, "ok", None, reply, reading)
        raise AssertionError

    async def _call(self, brief: Brief, request: Request) -> tuple[Made, Row]:
        """Call, with retries where they can help; return the last call and its ledger row."""
        desk, most = self.desk, self._most(request)

        async def once() -> tuple[Made, list[Row]]:
            try:
                made = await called(
                    self.model, request, most, desk.budget, desk.tally,
                    lambda reply: used_of(desk.prices, self.subject, reply),
                )  # fmt: skip
            except (CutError, LateError) as cut:
                desk.workforce.cut.append(self._ledger_row(brief, cut.made, most))
                raise
            return made, [self._ledger_row(brief, made, most)]

        async def finish(made: Made, rows: list[Row], _: int) -> tuple[Made, Row]:
            if made.error:
                desk.tally.last_error = str(made.error)
            return made, rows[0]

        return await desk.workforce.answered(self.model, once, finish)

    def _ledger_row(self, brief: Brief, made: Made, most: Amount) -> Row:
        return call_row("judge", brief.key, self.model.name, made, most)

    def _most(self, request: Request) -> Amount:
        """Say the most a call may take; the schema and the tools are sent with it."""
        turns = [{"role": m.role, "content": m.content} for m in request.messages]
        settings = request.settings
        sent = [*settings.tools, *filter(None, (settings.schema, settings.extra))]
        tokens = ceiling(turns, sent)
        cost = self.desk.prices.cost(self.subject, Usage(tokens, self.output))
        return Amount(cost, tokens + self.output)

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
            **brief.key._asdict(),
            **asdict(spent),
            "judge": self.subject.name,
            "fingerprint": self.fingerprint(brief),
            "status": status,
            "error": storable(error),
            "score": score,
            "passed": passes(score, rubric.pass_mark),
            "reply": storable(reply.text) if reply else None,
            "at": time.time(),
        }
        if reading:
            values |= {
                "confidence": reading.confidence,
                "claimed_score": reading.claimed_score,
                "claimed_passed": reading.claimed_passed,
                "items": json.dumps(reading.plain()),
            }
        await self.desk.workforce.writer.put(tuple(map(values.get, JUDGMENT_COLUMNS)), [call])
        return score
