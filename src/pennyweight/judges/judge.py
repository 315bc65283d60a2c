"""Ask one judge about one attempt: call, read the reply, ask again, store the judgment."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pennyweight.engine.batches.pending import UnansweredError, collected
from pennyweight.engine.budget import Amount, ceiling
from pennyweight.engine.calls import (
    CallResult,
    CutError,
    LateError,
    call_once,
    call_row,
    cost_of,
    used_of,
)
from pennyweight.engine.engine import OUTPUT_TOKENS
from pennyweight.engine.workforce import Workforce
from pennyweight.judges.prompt import again, judged_text, schema
from pennyweight.judges.replies import UnreadableError, read
from pennyweight.models.model import Lane, Message, Model, Reply, Request, Settings
from pennyweight.models.prices import Prices
from pennyweight.record import AttemptKey
from pennyweight.scoring.consensus import passes, weighted_score
from pennyweight.store.store import JUDGMENT_COLUMNS, Row
from pennyweight.suite.rubric import Rubric
from pennyweight.suite.values import Subject
from pennyweight.text.safe import storable

ASKS = 4
"""How often a judge is asked until its reply can be used."""
_GRAMMARS = ("local/", "llamacpp/")
"""Providers whose constrained output can also limit the length of a string."""


@dataclass(frozen=True, slots=True)
class ValidJudgment:
    """A stored judgment that is valid."""

    score: float | None
    at: float


Judgments = Mapping[tuple[str, str], ValidJudgment]
"""The valid judgments of one attempt, by judge and fingerprint."""


@dataclass(frozen=True, slots=True)
class JudgedAttempt:
    """One attempt: its key, the prompt for the judges, and its judgments so far."""

    key: AttemptKey
    prompt: tuple[Message, ...]
    digest: str
    judgments: Judgments

    @classmethod
    def of(
        cls, key: AttemptKey, prompt: tuple[Message, ...], judgments: Judgments
    ) -> JudgedAttempt:
        """Add the hash of the prompt."""
        text = "\0".join(m.content for m in prompt).encode("utf-8", "replace")
        return cls(key, prompt, hashlib.blake2b(text, digest_size=12).hexdigest(), judgments)


@dataclass(frozen=True, slots=True)
class JudgingContext:
    """What the judges of a run share."""

    rubric: Rubric
    prices: Prices
    workforce: Workforce
    higher_is_better: bool = True
    """Whether a high score is always to the advantage of the judged; not so for a must-not."""


@dataclass(slots=True)
class Spent:
    """The tokens, cost and time of the calls for one judgment."""

    tries: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    latency_ms: float | None = None

    def add(self, reply: Reply, cost: float | None) -> None:
        """Add one reply; a value that is unknown for one call is unknown for all."""
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
    """A judge that is ready to be asked."""

    subject: Subject
    model: Model
    settings: Settings
    max_output: int
    """The most tokens that a reply can have."""
    mark: str
    """Identifies the model and its settings in fingerprints."""
    context: JudgingContext

    @classmethod
    def of(cls, subject: Subject, model: Model, context: JudgingContext) -> Judge:
        """Prepare a judge; its output is constrained unless the suite sets another format."""
        options = dict(subject.settings)
        if not options.keys() & {"schema", "response_format"}:
            bounded = not (subject.base_url or subject.served_at) and subject.model.startswith(
                _GRAMMARS
            )
            options["schema"] = schema(context.rubric, bounded=bounded)
        address = subject.base_url or subject.served_at
        mark = json.dumps([subject.model, address, subject.settings], default=str)
        settings = Settings.from_suite(options)
        max_output = model.most_output(settings) or OUTPUT_TOKENS
        return cls(subject, model, settings, max_output, mark, context)

    def fingerprint(self, attempt: JudgedAttempt) -> str:
        """Hash the judge and the prompt, preceded by the mark of the rubric."""
        whole = hashlib.blake2b(f"{self.mark}\0{attempt.digest}".encode(), digest_size=12)
        return f"{self.context.rubric.mark}:{whole.hexdigest()}"

    def judgment(self, attempt: JudgedAttempt) -> ValidJudgment | None:
        """Return this judge's valid judgment of the attempt, if there is one."""
        return attempt.judgments.get((self.subject.name, self.fingerprint(attempt)))

    def outdated(self, attempt: JudgedAttempt) -> bool:
        """Whether this judge judged by the same rubric later, with another prompt or settings."""
        current, rubric = self.judgment(attempt), f"{self.context.rubric.mark}:"
        return current is not None and any(
            judge == self.subject.name and mark.startswith(rubric) and other.at > current.at
            for (judge, mark), other in attempt.judgments.items()
        )

    async def score(self, attempt: JudgedAttempt) -> float | None:
        """Return the score of the valid judgment, or ask for one; None if there is none."""
        if known := self.judgment(attempt):
            return known.score
        rubric, workforce = self.context.rubric, self.context.workforce
        prompt, spent, text = attempt.prompt, Spent(), None
        for number in range(1, ASKS + 1):
            made, calls = await self._call(attempt, prompt, number)
            reading, status, problem = None, "error", str(made.error)
            if reply := made.reply:
                text = reply.text
                spent.add(reply, cost_of(self.context.prices, self.subject, reply))
                try:
                    reading = read(
                        text,
                        rubric,
                        judged_text(attempt.prompt),
                        truncated=reply.truncated,
                        higher_is_better=self.context.higher_is_better,
                    )
                    status, problem = "ok", ""
                except UnreadableError as error:
                    status, problem = "invalid", str(error)
            if text is None or status != "invalid" or number == ASKS:
                break
            await workforce.writer.put(None, calls, then=made.release)
            prompt = again(attempt.prompt, text, problem)
        score = weighted_score(rubric, reading.scores) if reading else None
        values: dict[str, Any] = {
            **attempt.key._asdict(),
            **asdict(spent),
            "judge": self.subject.name,
            "fingerprint": self.fingerprint(attempt),
            "status": status,
            "error": storable(problem or None),
            "score": score,
            "passed": None if rubric.is_question else passes(score, rubric.pass_mark),
            "reply": storable(text),
            "at": time.time(),
        }
        if reading:
            values |= {
                "confidence": reading.confidence,
                "claimed_score": reading.claimed_score,
                "claimed_passed": reading.claimed_passed,
                "items": json.dumps(reading.plain()),
            }
        # One transaction with the call: a judgment is never stored without its cost.
        row = tuple(map(values.get, JUDGMENT_COLUMNS))
        await workforce.writer.put(row, calls, then=made.release)
        return score

    async def _call(
        self, attempt: JudgedAttempt, prompt: tuple[Message, ...], number: int
    ) -> tuple[CallResult, list[Row]]:
        """Ask for the n-th time, with retries where they can help; return the last call, its row.

        A reply from a batch has none: the ledger has it since it was collected.
        """
        key, workforce = attempt.key, self.context.workforce
        label = f"{key.tier}\0{key.task_id}"
        question = f"{key.subject}\0{number}"
        request = Request(prompt, self.settings, key.attempt, label=label, question=question)
        model, payer = self.model, ("judge", self.model.name)

        if model.in_batches:
            budget, most = workforce.budget, self._most(request, "batch")
            try:
                made = await collected(model, request, budget, payer, most, key)
            except UnansweredError as late:
                model = late.live
            else:
                if made.error:
                    workforce.tally.last_error = str(made.error)
                return made, []

        most = self._most(request, "live")

        def ledger_row(made: CallResult) -> Row:
            return call_row("judge", key, model.name, made, workforce.budget.maximum(payer, most))

        async def once() -> tuple[CallResult, list[Row]]:
            try:
                made = await call_once(
                    model, request, payer, most, workforce.budget, workforce.tally, self._used
                )  # fmt: skip
            except (CutError, LateError) as cut:
                workforce.cut.append(ledger_row(cut.result))
                raise
            return made, [ledger_row(made)]

        async def finish(made: CallResult, rows: list[Row], _: int) -> tuple[CallResult, list[Row]]:
            if made.error:
                workforce.tally.last_error = str(made.error)
            return made, rows

        return await workforce.answered(model, once, finish)

    def _used(self, reply: Reply) -> Amount:
        return used_of(self.context.prices, self.subject, reply)

    def _most(self, request: Request, lane: Lane) -> Amount:
        """Return the most that a call can use: prompt, schema and tools, and the longest reply."""
        turns = [{"role": m.role, "content": m.content} for m in request.messages]
        settings = request.settings
        sent = [*settings.tools, *filter(None, (settings.schema, settings.extra))]
        tokens = ceiling(turns, sent)
        prices = self.context.prices.in_lane(lane)
        cost = prices.most(self.subject, tokens, self.max_output)
        return Amount(cost, tokens + self.max_output)
