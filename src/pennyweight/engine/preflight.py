"""Checks and warnings before the first call."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pennyweight.engine.advice import advice
from pennyweight.engine.batches.pending import in_lane
from pennyweight.engine.limiter import open_files
from pennyweight.errors import InputError, UsageError, unknown
from pennyweight.models.model import Message, Model, Request, Settings
from pennyweight.models.prices import Prices
from pennyweight.models.providers import PROVIDERS, own_address
from pennyweight.models.published_prices import NotPublishedError, published
from pennyweight.record import TASK_PREFIX
from pennyweight.store.store import RECORD_COLUMNS
from pennyweight.suite.plan import Attempt, settings
from pennyweight.suite.values import LoadedSuite, Subject, Task, Tier

if TYPE_CHECKING:
    from pennyweight.suite.loader import Mistake


def warnings(suite: LoadedSuite, model_of: Callable[..., Model]) -> list[str]:
    """List what a run of a suite ignores, cannot know, or cannot guarantee."""
    first = [
        *_addresses(suite),
        *_hidden(suite),
        *_agents(suite),
        *_places(suite),
        *_ignored(suite, model_of),
    ]
    return [*first, *_prices(suite), *_loose(suite), *advice(suite)]


def missing_keys(suite: LoadedSuite, model_of: Callable[..., Model]) -> Iterator[str]:
    """Yield a note for each key that a run of a suite would need and that is not set."""
    judges = (*suite.judge.judges, *suite.judge.more) if suite.judge else ()
    told = set()
    for subject in (*suite.subjects, *judges):
        if subject.agent is None and subject.model.partition("/")[0] in PROVIDERS:
            try:
                model_of(subject)
            except UsageError as error:
                told.add(str(error))
    yield from sorted(told)


def fetched(suite: LoadedSuite) -> Iterator[str]:
    """Yield a note for each model that a run has to download first."""
    wanted = {subject.model for subject in suite.subjects if subject.model.startswith("local/")}
    if not wanted:
        return
    from pennyweight.models.gguf import available  # noqa: PLC0415

    for model in available():
        if model.path is None and (name := f"local/{model.name}") in wanted:
            yield f"{name} is downloaded first ({model.size / 1e6:,.0f} MB), once for all runs."


def _addresses(suite: LoadedSuite) -> Iterator[str]:
    """Say which models are called at an address that the environment names."""
    judges = (*suite.judge.judges, *suite.judge.more) if suite.judge else ()
    for subject in dict.fromkeys(one.model for one in (*suite.subjects, *judges) if one.served_at):
        if own := own_address(subject):
            yield f"{subject} is called at {own.url} ({own.variable})."


def _hidden(suite: LoadedSuite) -> Iterator[str]:
    """Name the columns of tasks that are other columns in records."""
    from pennyweight.record import BY_NAME  # noqa: PLC0415

    own = dict.fromkeys(name for task in suite.tasks for name in task.extra)
    known = {*BY_NAME, *RECORD_COLUMNS} - {"context", "choices"}
    hidden = [name for name in own if name in known]
    if hidden:
        verb = "is another column" if len(hidden) == 1 else "are other columns"
        listed = ", ".join(TASK_PREFIX + name for name in hidden)
        yield f"In records, {', '.join(hidden)} {verb}. Group by those of the tasks as {listed}."


def _agents(suite: LoadedSuite) -> Iterator[str]:
    """Describe the sandbox of each agent, and what the agent does not report."""
    for subject in suite.subjects:
        if subject.agent:
            from pennyweight.agent.sandbox import described  # noqa: PLC0415

            yield f"{subject.name} runs in this sandbox: {described(subject.agent)}."
            if subject.agent.output == "text":
                yield f"{subject.name} has no 'output' reader: its tokens and cost are null."


def _places(suite: LoadedSuite) -> Iterator[str]:
    """Warn if the system allows fewer concurrent calls than the suite sets."""
    wanted, most = suite.limits.concurrency, open_files()
    if isinstance(wanted, int) and wanted > most:
        yield (
            f"Concurrency is {most:,}, not {wanted:,}: the system limits the number of open files "
            "('ulimit -n' shows the limit)."
        )


def _ignored(suite: LoadedSuite, model_of: Callable[..., Model]) -> Iterator[str]:
    """Warn about settings that have no effect on a subject's model."""
    for subject in suite.subjects:
        if subject.agent or subject.model.startswith("replay:"):
            continue
        ignored = sorted(model_of(subject, keyless=True).ignores & _settings_of(suite, subject))
        if ignored:
            yield f"{subject.name} ignores {', '.join(ignored)}: its model has no such setting."


def _settings_of(suite: LoadedSuite, subject: Subject) -> set[str]:
    """Return the names of all settings that the suite sets for a subject, in any tier."""
    used = {
        "system": any(tier.system for tier in suite.tiers),
        "examples": any(tier.shown for tier in suite.tiers),
        "seed": suite.seed is not None,
        "logprobs": suite.confidence == "logprobs",
    }
    names = {name for tier in suite.tiers for name in _options(suite, subject, tier)}
    return names | {name for name, is_used in used.items() if is_used}


def _options(suite: LoadedSuite, subject: Subject, tier: Tier) -> Mapping[str, Any]:
    """Return the settings of a subject in a tier."""
    return settings(suite, Attempt(Task("", ""), subject, tier, 1))


def check(suite: LoadedSuite) -> None:
    """Raise InputError for settings that cannot be sent and limits that cannot be enforced."""
    problems = [what for _, what in mistakes(suite)]
    if problems:
        raise InputError(problems)


def mistakes(suite: LoadedSuite, by: Sequence[str] = ()) -> Iterator[Mistake]:
    """Yield what cannot be sent, enforced or grouped by, each with its place in the suite.

    A subject whose key is missing is checked like the others, one that does not exist is not.
    """
    suite = replace(suite, subjects=tuple(s for s in suite.subjects if _exists(s)))
    yield from {what: (place, what) for place, what in _unwritable(suite)}.values()
    yield from _without_batches(suite)
    yield from _unenforceable(suite)
    yield from _priced_as_nothing(suite)
    if by and suite.tasks:
        yield from (((), what) for what in _unknown_columns(suite, by))


def _exists(subject: Subject) -> bool:
    """Whether a subject can be called once its key is set; recordings are opened later."""
    from pennyweight.engine.execution import model_of  # noqa: PLC0415

    if subject.agent or subject.model.startswith("replay:"):
        return True
    try:
        model_of(subject, keyless=True)
    except UsageError:
        return False
    return True


def _without_batches(suite: LoadedSuite) -> Iterator[Mistake]:
    """Yield a mistake for each subject or judge of the batch lane whose provider has none."""
    from pennyweight.engine.execution import model_of  # noqa: PLC0415

    judges = (*suite.judge.judges, *suite.judge.more) if suite.judge else ()
    for subject in (*suite.subjects, *filter(_exists, judges)):
        if not in_lane(subject, suite.limits):
            continue
        alone = subject.agent or subject.model.startswith("replay:")
        if alone or model_of(subject, keyless=True).batches() is None:
            what = "agents" if subject.agent else subject.model
            known = ", ".join(name for name, one in PROVIDERS.items() if one.batches)
            text = (
                f"{subject.name}: there are no batches of {what}. Providers with batches: {known}, "
                "and servers of your own with OpenAI's /batches. 'limits: {lane: live}' in a "
                "subject calls it live."
            )
            yield subject, text


def _unenforceable(suite: LoadedSuite) -> Iterator[Mistake]:
    """Yield a mistake if a cost limit cannot be enforced because prices are not known."""
    if suite.limits.usd is None:
        return
    prices = Prices(suite.prices)
    unpriced = prices.unknown(s for s in suite.subjects if not _reports_cost(s))
    code = filter(_is_code, suite.subjects)
    unpriced |= {s.model: why for s in code if (why := prices.why_unknown(s))}
    judges = (*suite.judge.judges, *suite.judge.more) if suite.judge else ()
    for name, why in prices.unknown(judges, limited=True).items():
        unpriced[f"the judge {name}"] = why
    if unpriced:
        yield ("limits", "usd"), unenforceable(unpriced)


def _priced_as_nothing(suite: LoadedSuite) -> Iterator[Mistake]:
    """Yield a mistake for each `priced_as` that has no published price."""
    judges = (*suite.judge.judges, *suite.judge.more) if suite.judge else ()
    for subject in (*suite.subjects, *judges):
        if subject.priced_as:
            try:
                published(subject.priced_as)
            except NotPublishedError as why:
                yield subject, f"priced_as: {why}. Write the price under 'prices' instead."


def unenforceable(unpriced: Mapping[str, str]) -> str:
    """Say that a cost limit needs the prices of these models, and why they are not known."""
    reasons = "; ".join(unpriced.values())
    return (
        f"limits.usd cannot be enforced: the price of {', '.join(unpriced)} is not known "
        f"({reasons}). Set it under 'prices' (0 if nothing is charged) or with 'priced_as', or "
        "limit tokens instead."
    )


def _unknown_columns(suite: LoadedSuite, by: Sequence[str]) -> Iterator[str]:
    """Yield an error for each column that no record of a suite has."""
    from pennyweight.define import MEASURES  # noqa: PLC0415 - it loads polars
    from pennyweight.record import BY_NAME  # noqa: PLC0415

    own = {name for task in suite.tasks for name in task.extra}
    known = {*BY_NAME, *MEASURES, *RECORD_COLUMNS, *own}
    known |= {TASK_PREFIX + name for name in own}
    for name in by:
        if name not in known:
            shown = f"Tasks have: {', '.join(sorted(own))}." if own else ""
            yield unknown("--by column", name, known, shown)


def _unwritable(suite: LoadedSuite) -> Iterator[Mistake]:
    """Yield the settings that cannot be sent in the wire format of a subject or judge."""
    from pennyweight.engine.execution import model_of  # noqa: PLC0415

    for subject in suite.subjects:
        if not subject.agent:
            recorded = subject.model.startswith("replay:")
            model = None if recorded else model_of(subject, keyless=True)
            reasons: dict[str, list[str]] = {}
            for tier in suite.tiers:
                if wrong := _wrong(model, _options(suite, subject, tier)):
                    reasons.setdefault(wrong, []).append(tier.name)
            for wrong, tiers in reasons.items():
                yield subject, f"{subject.name} cannot be called in {', '.join(tiers)}: {wrong}"
    for judge in (*suite.judge.judges, *suite.judge.more) if suite.judge else ():
        if not _exists(judge):
            continue
        if wrong := _wrong(model_of(judge, keyless=True), judge.settings):
            yield judge, f"The judge {judge.name} cannot be called: {wrong}"


def _wrong(model: Model | None, options: Mapping[str, Any]) -> str | None:
    """Encode a request with these settings; return why that fails."""
    try:
        request = Request((Message("user", ""),), Settings.from_suite(options))
        encoded = model.encode(request) if model else None
        json.dumps(encoded, allow_nan=False)
    except UsageError as error:
        return str(error)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        return f"its settings cannot be sent ({type(error).__name__}: {error})."
    return None


def _is_code(subject: Subject) -> bool:
    """Whether a subject is a function, which may call anything."""
    return subject.agent is None and subject.model.startswith("python:")


def _reports_cost(subject: Subject) -> bool:
    """Whether an agent reports its own cost."""
    output = subject.agent.output if subject.agent else "text"
    return output == "claude-code" or "cost_usd" in output


def _prices(suite: LoadedSuite) -> Iterator[str]:
    for model, why in Prices(suite.prices).unknown(suite.subjects).items():
        yield (
            f"The price of {model} is not known, so its cost is null: {why}. "
            "Set it under 'prices' in the suite, or name a model with the same price: 'priced_as'."
        )


def _loose(suite: LoadedSuite) -> Iterator[str]:
    """Warn where a limit of money or tokens can be exceeded."""
    if suite.limits.usd is None and suite.limits.tokens is None:
        return
    for subject in suite.subjects:
        if subject.agent:
            yield (
                f"{subject.name} is an agent: its usage is known when it ends, so attempts in "
                "flight may exceed the limit."
            )
        elif any("max_tokens" not in _options(suite, subject, tier) for tier in suite.tiers):
            yield (
                f"{subject.name} has no max_tokens: a response longer than 4,096 tokens may exceed "
                "the limit."
            )
