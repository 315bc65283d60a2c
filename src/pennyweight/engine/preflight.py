"""What a person should know before the first call."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pennyweight.engine.advice import advice
from pennyweight.engine.limiter import open_files
from pennyweight.errors import InputError, UsageError, unknown
from pennyweight.models.model import Message, Model, Request, Settings
from pennyweight.models.prices import Prices
from pennyweight.store.store import RECORD_COLUMNS
from pennyweight.suite.plan import Attempt, settings
from pennyweight.suite.values import Subject, Suite

if TYPE_CHECKING:
    from pennyweight.suite.loader import Mistake


def warnings(suite: Suite, model_of: Callable[[Subject], Model]) -> list[str]:
    """List what a run of a suite would leave out, not know, or not be able to hold."""
    return [
        *_agents(suite),
        *_places(suite),
        *_ignored(suite, model_of),
        *_prices(suite),
        *_loose(suite),
        *advice(suite),
    ]


def fetched(suite: Suite) -> Iterator[str]:
    """Say which models a run has to fetch first, since that takes a while."""
    wanted = {subject.model for subject in suite.subjects if subject.model.startswith("local/")}
    if not wanted:
        return
    from pennyweight.models.gguf import available  # noqa: PLC0415

    for model in available():
        if model.path is None and (name := f"local/{model.name}") in wanted:
            yield f"{name} is fetched first, {model.size / 1e6:,.0f} MB, and kept for later runs."


def _agents(suite: Suite) -> Iterator[str]:
    """Say plainly what each command runs in, and what it will not tell."""
    for subject in suite.subjects:
        if subject.agent:
            from pennyweight.agent.sandbox import described  # noqa: PLC0415

            yield f"{subject.name} runs in this sandbox: {described(subject.agent)}."
            if subject.agent.output == "text":
                yield f"{subject.name} has no 'output' reader: its tokens and cost are null."


def _places(suite: Suite) -> Iterator[str]:
    """Say when the system allows fewer calls at a time than were asked for."""
    asked, most = suite.limits.concurrency, open_files()
    if isinstance(asked, int) and asked > most:
        yield (
            f"{most:,} calls are made at a time, not {asked:,}: a process may not open more files "
            "here ('ulimit -n' says how many)."
        )


def _ignored(suite: Suite, model_of: Callable[[Subject], Model]) -> Iterator[str]:
    """Name the settings that a subject's model is never told."""
    for subject in suite.subjects:
        if subject.agent or subject.model.startswith("replay:"):
            continue
        ignores: frozenset[str] = model_of(subject).ignores
        dropped = sorted(ignores & _asked(suite, subject))
        if dropped:
            yield f"{subject.name} is not told {', '.join(dropped)}: its model does not take it."


def _asked(suite: Suite, subject: Subject) -> set[str]:
    """Collect what the suite asks of a subject, in any tier."""
    names: set[str] = set()
    for tier in suite.tiers:
        names |= set(settings(suite, Attempt(suite.tasks[0], subject, tier, 1)))
        names |= {"system"} if tier.system else set()
        names |= {"examples"} if tier.shown else set()
    names |= {"seed"} if suite.seed is not None else set()
    return names | ({"logprobs"} if suite.confidence == "logprobs" else set())


def check(suite: Suite) -> None:
    """Refuse settings that cannot be sent, and a limit of money that could not be kept."""
    problems = [what for _, what in mistakes(suite)]
    if problems:
        raise InputError(problems)


def mistakes(suite: Suite, by: Sequence[str] = ()) -> Iterator[Mistake]:
    """Say what cannot be sent, held or grouped by, each with its place in the suite."""
    yield from {what: (place, what) for place, what in _unwritable(suite)}.values()
    yield from _unkept(suite)
    if by:
        yield from (((), what) for what in _unknown_columns(suite, by))


def _unkept(suite: Suite) -> Iterator[Mistake]:
    """Say whether a limit of money could not be kept."""
    if suite.limits.usd is None:
        return
    prices = Prices(suite.prices)
    open_ = prices.unknown(s for s in suite.subjects if not _tells_cost(s))
    open_ += [s.model for s in suite.subjects if _is_code(s) and prices.of(s) is None]
    judges = (*suite.judge.judges, *suite.judge.more) if suite.judge else ()
    open_ += [f"the judge {name}" for name in prices.unknown(judges, limited=True)]
    if open_:
        yield (
            ("limits", "usd"),
            f"limits.usd cannot be kept: the price of {', '.join(open_)} is not known. Say it "
            "under 'prices' (0 if nothing is charged), or limit tokens instead.",
        )


def _unknown_columns(suite: Suite, by: Sequence[str]) -> Iterator[str]:
    """Say by what no record of a suite can be grouped."""
    from pennyweight.define import MEASURES  # noqa: PLC0415 - it loads polars
    from pennyweight.record import BY_NAME  # noqa: PLC0415

    own = {name for task in suite.tasks for name in task.extra}
    known = {*BY_NAME, *MEASURES, *RECORD_COLUMNS, *own}
    for name in by:
        if name not in known:
            shown = f"Tasks have: {', '.join(sorted(own))}." if own else ""
            yield unknown("--by column", name, known, shown)


def _unwritable(suite: Suite) -> Iterator[Mistake]:
    """Say which settings a subject's wire format, or a judge's, has no way to write."""
    from pennyweight.engine.execution import check_subject, model_of  # noqa: PLC0415

    for subject in suite.subjects:
        if not subject.agent:
            recorded = subject.model.startswith("replay:")
            model = None if recorded else model_of(subject)
            reasons: dict[str, list[str]] = {}
            for tier in suite.tiers:
                options = settings(suite, Attempt(suite.tasks[0], subject, tier, 1))
                if wrong := _wrong(model, options):
                    reasons.setdefault(wrong, []).append(tier.name)
            for wrong, tiers in reasons.items():
                yield subject, f"{subject.name} cannot be asked in {', '.join(tiers)}: {wrong}"
    for judge in (*suite.judge.judges, *suite.judge.more) if suite.judge else ():
        if check_subject(judge) is None and (wrong := _wrong(model_of(judge), judge.settings)):
            yield judge, f"The judge {judge.name} cannot be asked: {wrong}"


def _wrong(model: Model | None, options: Mapping[str, Any]) -> str | None:
    """Write one request with some settings, and say why that fails."""
    try:
        request = Request((Message("user", ""),), Settings.from_suite(options))
        encoded = model.encode(request) if model else None
        json.dumps(encoded, allow_nan=False)
    except UsageError as error:
        return str(error)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        return f"its settings cannot be written ({type(error).__name__}: {error})."
    return None


def _is_code(subject: Subject) -> bool:
    """Whether a subject is a function, which may call anything."""
    return subject.agent is None and subject.model.startswith("python:")


def _tells_cost(subject: Subject) -> bool:
    """Whether an agent says itself what it cost."""
    output = subject.agent.output if subject.agent else "text"
    return output == "claude-code" or "cost_usd" in output


def _prices(suite: Suite) -> Iterator[str]:
    models = [subject for subject in suite.subjects if not subject.agent]
    for model in Prices(suite.prices).unknown(models):
        yield (
            f"The price of {model} is not known: its cost is null. "
            "The suite may say it under 'prices'."
        )


def _loose(suite: Suite) -> Iterator[str]:
    """Say where a limit of money or tokens rests on a guess."""
    if suite.limits.usd is None and suite.limits.tokens is None:
        return
    for subject in suite.subjects:
        if subject.agent:
            yield (
                f"{subject.name} is an agent: what it takes is known when it ends, so attempts "
                "under way may pass the limit."
            )
            continue
        sides = [Attempt(suite.tasks[0], subject, tier, 1) for tier in suite.tiers]
        if any("max_tokens" not in settings(suite, side) for side in sides):
            yield (
                f"{subject.name} has no max_tokens: a response longer than 4,096 tokens may pass "
                "the limit."
            )
