"""What a suite most likely did not mean: told before the first call, and after the last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from pennyweight.suite.plan import conversation
from pennyweight.suite.templates import variables_of
from pennyweight.suite.values import Suite, Task, Tier
from pennyweight.text.extraction import AnswerRule, answer
from pennyweight.text.matching import are_numbers, targets

LOOKS_AT = frozenset({"tier", "status", "target", "response", "passed"})
"""The columns of records that `unanswered` reads."""
LOOKED_AT = 50
"""The tasks whose prompts are searched for a marker; they share their template."""
_OTHER_RULE = "Take another rule ('answer: last_line' in the suite, --answer last_line for a run)"


def advice(suite: Suite) -> Iterator[str]:
    """Say which prompts and rules of a suite hardly fit its tasks."""
    yield from _prompts(suite)
    yield from _marker(suite)
    yield from _numbers(suite)
    yield from _lists(suite)
    yield from _undecided(suite)


def _prompts(suite: Suite) -> Iterator[str]:
    """Name the tiers in which every task is asked the same."""
    if any(task.before or task.work or task.turns for task in suite.tasks):
        return
    same = [tier.name for tier in suite.tiers if not _tells_task(tier)]
    if same:
        yield (
            f"The prompt of {', '.join(same)} uses nothing of a task: every task is asked the "
            "same. '{{ input }}' stands for what a task asks."
        )


def _tells_task(tier: Tier) -> bool:
    asked = [m.content for m in tier.messages] if tier.messages else [tier.prompt]
    texts = [*asked, tier.system or ""]
    return any(variables_of(text) - {"examples"} for text in texts)


def _marker(suite: Suite) -> Iterator[str]:
    """Name the tiers that never ask for the marker by which answers are found."""
    tasks = [task for task in suite.tasks if task.target is not None][:LOOKED_AT]
    if suite.answer.kind != "marker" or not tasks:
        return
    word = suite.answer.value.strip().rstrip(":").casefold()
    silent = [
        tier.name
        for tier in suite.tiers
        if not any(
            word in turn["content"].casefold()
            for task in tasks
            for turn in conversation(tier, task)
        )
    ]
    if silent:
        yield (
            f"Answers are found by the marker {suite.answer.value!r}, but no prompt of "
            f"{', '.join(silent)} asks for it: responses without it count as wrong. Ask for it in "
            "the prompt, or set another rule, such as 'answer: last_line'."
        )


def _numbers(suite: Suite) -> Iterator[str]:
    """Name the targets that are no numbers where numbers are compared."""
    if suite.match.kind != "numeric":
        return
    told = [task for task in suite.tasks if task.target is not None]
    wrong = pl.Series([task.target for task in told], dtype=pl.String)
    odd = [task for task, number in zip(told, are_numbers(wrong), strict=True) if not number]
    if odd:
        yield f"match: numeric, but {_named(odd)} is no number: it is compared as text."


def _lists(suite: Suite) -> Iterator[str]:
    """Name the targets that are lists where they are compared as one text."""
    if suite.match.kind not in _WHOLE:
        return
    lists = [task for task in suite.tasks if _is_list(task.target)]
    if lists:
        yield (
            f"match: {suite.match.kind}, but {_named(lists)} is a list: it is compared as text. "
            "'match: any_of' takes an answer that is one of them."
        )


_WHOLE = {"exact", "contains", "choice"}
"""Ways to match that know nothing of lists, and for which a list makes little sense."""


def _is_list(target: str | None) -> bool:
    text = (target or "").strip()
    return text.startswith("[") and targets(text) != [text]


def _named(tasks: Sequence[Task]) -> str:
    """Name the targets of tasks by the first of them."""
    more = f" and {len(tasks) - 1:,} more" if len(tasks) > 1 else ""
    return f"the target of task {tasks[0].id!r} ({tasks[0].target!r:.60}){more}"


def _undecided(suite: Suite) -> Iterator[str]:
    """Say that nothing in a suite tells right from wrong.

    A function and a recording may say of an attempt whether it passed.
    """
    told = any(s.model.startswith(("python:", "replay:")) for s in suite.subjects if not s.agent)
    decided = any(map(_decides, suite.tasks)) or any(map(_decides, suite.tiers))
    if suite.judge or told or decided:
        return
    yield (
        "No task has a target, checks or behaviours, and there is no judge: nothing can be right "
        "or wrong, so there will be no accuracy."
    )


def _decides(one: Task | Tier) -> bool:
    """Whether a task or tier has anything by which an attempt can be right or wrong."""
    work = one.work
    if work and (work.verify or work.keep):
        return True
    return not isinstance(one, Tier) and (one.target is not None or one.scenario is not None)


ANSWERED_BY = frozenset({"subject", "status"})
"""The columns of records that `shared` reads."""


def shared(suite: Suite, frames: Iterable[pl.DataFrame] | None = None) -> str | None:
    """Say that a local model's latency is that of a machine busy with several calls.

    Of the run's records only those are named that gave more than one answer.
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
        f"{', '.join(local)} answered several calls at once, which share this machine: the latency "
        "is that under load. 'limits: {concurrency: 1}' measures each call alone."
    )


def unanswered(frames: Iterable[pl.DataFrame], rule: AnswerRule) -> str | None:
    """Say that a rule found no answer in most responses of a tier, and what to do then.

    What has no target, or was decided otherwise, needs no answer.
    """
    counts: dict[str, list[int]] = {}
    for frame in frames:
        there = frame.filter(
            pl.col("response").is_not_null()
            & pl.col("target").is_not_null()
            & pl.col("passed").is_null()
            & (pl.col("status") == "ok")
        )
        found = there.with_columns(answer=answer(pl.col("response"), rule))
        grouped = found.group_by("tier").agg(pl.len(), pl.col("answer").null_count())
        for tier, made, none in grouped.iter_rows():
            one = counts.setdefault(tier or "", [0, 0])
            one[0], one[1] = one[0] + made, one[1] + none
    most = sorted(tier for tier, (made, none) in counts.items() if none > made / 2)
    if not most:
        return None
    none, made = (sum(counts[tier][i] for tier in most) for i in (1, 0))
    where = "" if len(most) == len(counts) else f" of {', '.join(most)}"
    named = f"{rule.kind!r}" + (f" ({rule.value})" if rule.value else "")
    todo = (
        f"{_OTHER_RULE}, or ask for the marker in the prompt."
        if rule.kind == "marker"
        else "Take another rule ('answer' in the suite, --answer for a run), or ask in the prompt "
        "for what it finds."
    )
    return (
        f"No answer was found in {none:,} of {made:,} responses{where} by the rule {named}, and "
        f"they count as wrong. {todo}"
    )
