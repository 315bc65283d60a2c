"""Warnings about likely mistakes in a suite, before the first call and after the last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from pennyweight.suite.choices import choices_of
from pennyweight.suite.implied import rule_words
from pennyweight.suite.plan import conversation
from pennyweight.suite.tasks import INPUTS
from pennyweight.suite.templates import variables_of
from pennyweight.suite.values import LoadedSuite, Task, Tier
from pennyweight.text.extraction import AnswerRule, answer
from pennyweight.text.matching import are_numbers, targets

LOOKS_AT = frozenset({"tier", "status", "target", "response", "passed"})
"""The columns of records that `unanswered` reads."""
MAX_LISTED = 5
"""The most missing parts of a suite that are listed."""
SEARCHED_TASKS = 50
"""How many tasks' prompts are searched for a marker; all share their template."""


def advice(suite: LoadedSuite) -> Iterator[str]:
    """Yield a warning for each prompt or rule of a suite that does not fit its tasks."""
    if suite.implied:  # nobody wrote its rules
        yield from rule_words(suite)
        yield from (*_choices(suite), *_inputs(suite))
        if suite.implied.targets:
            yield from _marker(suite)
        return
    for check in (_partial, _prompts, _choices, _inputs, _marker, _numbers, _lists, _undecided):
        yield from check(suite)


def _partial(suite: LoadedSuite) -> Iterator[str]:
    """Say what is missing of the suite that this one was made from."""
    if suite.partial:
        listed = "; ".join(suite.partial[:MAX_LISTED])
        more = len(suite.partial) - MAX_LISTED
        yield (
            "This suite is a part of the one it was made from. Missing: "
            f"{listed}{f'; and {more:,} more' if more > 0 else ''}."
        )


def unfit(suite: LoadedSuite) -> Iterator[str]:
    """Yield what is wrong with the prompts of a suite, or that nothing decides its tasks.

    A function, a recording or an agent may ask for an answer in its own way.
    """
    own = ("python:", "replay:")
    if suite.implied:
        return
    if not any(subject.agent or subject.model.startswith(own) for subject in suite.subjects):
        yield from _prompts(suite)
        yield from _marker(suite)
    yield from _undecided(suite)


def _prompts(suite: LoadedSuite) -> Iterator[str]:
    """Warn about tiers that send the same prompt for every task."""
    if any(task.before or task.work or task.turns for task in suite.tasks):
        return
    same = [tier.name for tier in suite.tiers if not _uses_task(tier)]
    if same:
        yield (
            f"The prompt of {', '.join(same)} uses no value of the task, so every task gets the "
            "same prompt. '{{ input }}' inserts the task's input."
        )


def _uses_task(tier: Tier) -> bool:
    return any(variables_of(text) - {"examples"} for text in tier.texts)


def _choices(suite: LoadedSuite) -> Iterator[str]:
    """Warn about tiers that do not show the choices of tasks."""
    tasks = [(task, choices) for task in suite.tasks if (choices := choices_of(task))]
    if not tasks or all(subject.agent for subject in suite.subjects):
        return

    def shows(tier: Tier) -> bool:
        for task, choices in tasks[:SEARCHED_TASKS]:
            text = "\n".join(turn["content"] for turn in conversation(tier, task))
            if not all(choice.strip() in text for choice in choices):
                return False
        return True

    blind = [tier.name for tier in suite.tiers if not shows(tier)]
    if blind:
        yield (
            f"The tasks have choices, but the prompt of {', '.join(blind)} does not show them. "
            "'{{ choices | lettered }}' in the prompt does."
        )


def _inputs(suite: LoadedSuite) -> Iterator[str]:
    """Warn about a further column that is called like an input and that no prompt shows."""
    shown = {name for tier in suite.tiers for text in tier.texts for name in variables_of(text)}
    hidden = (  # an input made of other columns shows them
        name
        for task in suite.tasks[:SEARCHED_TASKS]
        for name, value in task.extra.items()
        if str(value).strip() not in task.input
    )
    for name in dict.fromkeys(hidden):
        if name in INPUTS and name not in shown:
            yield (
                f"The tasks have an input, and also a column {name!r} that no prompt shows. "
                f"'{{{{ {name} }}}}' in the prompt shows it."
            )


def _marker(suite: LoadedSuite) -> Iterator[str]:
    """Warn about tiers that never ask for the marker by which answers are found."""
    tasks = [task for task in _matched(suite) if task.target is not None][:SEARCHED_TASKS]
    if suite.answer.kind != "marker" or not tasks:
        return
    word = suite.answer.value.strip().rstrip(":").casefold()

    def asks(tier: Tier) -> bool:
        turns = (turn for task in tasks for turn in conversation(tier, task))
        return any(word in turn["content"].casefold() for turn in turns)

    silent = [tier.name for tier in suite.tiers if not asks(tier)]
    if silent:
        yield (
            f"Answers are found by the marker {suite.answer.value!r}, but no prompt of "
            f"{', '.join(silent)} asks for it: responses without it count as wrong. Ask for it in "
            "the prompt, or set another rule, such as 'answer: last_line'."
        )


def _matched(suite: LoadedSuite) -> Sequence[Task]:
    """Return the tasks whose replies are compared: not those of agents that a command verifies."""
    if suite.states_rules or not all(subject.agent for subject in suite.subjects):
        return suite.tasks
    if any(tier.work and tier.work.verify for tier in suite.tiers):
        return ()
    return [task for task in suite.tasks if not (task.work and task.work.verify)]


def _numbers(suite: LoadedSuite) -> Iterator[str]:
    """Warn about targets that are not numbers where numbers are compared."""
    if suite.match.kind != "numeric":
        return
    tasks = [task for task in suite.tasks if task.target is not None]
    numbers = are_numbers(pl.Series([task.target for task in tasks], dtype=pl.String))
    wrong = [task for task, number in zip(tasks, numbers, strict=True) if not number]
    if wrong:
        yield f"match: numeric, but {_named(wrong)} is not a number: it is compared as text."


def _lists(suite: LoadedSuite) -> Iterator[str]:
    """Warn about targets that are lists where they are compared as one text."""
    if suite.match.kind not in {"exact", "text", "verbatim", "contains", "choice"}:
        return
    lists = [task for task in suite.tasks if _is_list(task.target)]
    if lists:
        yield (
            f"match: {suite.match.kind}, but {_named(lists)} is a list: it is compared as text. "
            "'match: any_of' accepts an answer that is one of its items."
        )


def _is_list(target: str | None) -> bool:
    text = (target or "").strip()
    return text.startswith("[") and targets(text) != [text]


def _named(tasks: Sequence[Task]) -> str:
    """Describe the targets of tasks by the first of them."""
    more = f" and {len(tasks) - 1:,} more" if len(tasks) > 1 else ""
    return f"the target of task {tasks[0].id!r} ({tasks[0].target!r:.60}){more}"


def _undecided(suite: LoadedSuite) -> Iterator[str]:
    """Warn if nothing decides whether an attempt is right.

    A function or a recording may report whether an attempt passed.
    """
    models = [subject.model for subject in suite.subjects if not subject.agent]
    reported = any(model.startswith(("python:", "replay:")) for model in models)
    matched = suite.match.kind != "none" and any(t.target is not None for t in suite.tasks)
    decided = matched or any(map(_decides, suite.tasks)) or any(map(_decides, suite.tiers))
    if not (suite.judge or reported or decided):
        yield (
            "No task has a target, checks or behaviours, and there is no judge: nothing can be "
            "right or wrong, so there will be no accuracy."
        )


def _decides(part: Task | Tier) -> bool:
    """Whether a task or tier has more than a target by which an attempt can be right or wrong."""
    if part.work and (part.work.verify or part.work.keep):
        return True
    return isinstance(part, Task) and part.scenario is not None


ANSWERED_BY = frozenset({"subject", "status"})
"""The columns of records that `shared` reads."""


def shared(suite: LoadedSuite, frames: Iterable[pl.DataFrame] | None = None) -> str | None:
    """Warn that concurrent calls share this machine, which affects a local model's latency.

    If records are given, name only the models that answered more than once.
    """
    local = [s.name for s in suite.subjects if not s.agent and s.model.startswith("local/")]
    if not local or suite.limits.concurrency == 1:
        return None
    if frames is not None:
        answered: Counter[str] = Counter()
        for frame in frames:
            answered.update(frame.filter(pl.col("status") == "ok")["subject"].to_list())
        local = [name for name in local if answered[name] > 1]
    if not local:
        return None
    return (
        f"{', '.join(local)} answered several calls at once on this machine, so latency is "
        "measured under load. 'limits: {concurrency: 1}' measures each call alone."
    )


def unanswered(
    frames: Iterable[pl.DataFrame], rule: AnswerRule, *, asked: bool = False
) -> str | None:
    """Warn if a rule found no answer in most responses of a tier, and suggest what to do.

    `asked` if the prompt asked for what the rule finds. Only responses that are scored by a target
    count.
    """
    scored = (
        pl.col("response").is_not_null()
        & pl.col("target").is_not_null()
        & pl.col("passed").is_null()
        & (pl.col("status") == "ok")
    )
    missing = answer(pl.col("response"), rule).is_null().alias("missing")
    parts = [frame.filter(scored).select(pl.col("tier").fill_null(""), missing) for frame in frames]
    if not parts:
        return None
    tiers = pl.concat(parts).group_by("tier").agg(pl.len(), pl.col("missing").sum()).sort("tier")
    most = tiers.filter(pl.col("missing") > pl.col("len") / 2)
    if most.is_empty():
        return None
    where = "" if len(most) == len(tiers) else f" of {', '.join(most['tier'])}"
    named = f"{rule.kind!r}" + (f" ({rule.value})" if rule.value else "")
    if asked:
        todo = "The prompt asked for it. --answer scores these replies by another rule."
    elif rule.kind == "marker":
        todo = (
            "Use another rule ('answer: last_line' in the suite, --answer last_line for a run), or "
            "ask for the marker in the prompt."
        )
    else:
        todo = (
            "Use another rule ('answer' in the suite, --answer for a run), or ask in the prompt "
            "for what it finds."
        )
    return (
        f"The rule {named} found no answer in {most['missing'].sum():,} of {most['len'].sum():,} "
        f"responses{where}; they count as wrong. {todo}"
    )
