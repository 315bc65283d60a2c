"""The attempts of a suite, the messages of each, and an estimate of their tokens."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from typing import Any

from pennyweight.suite.scenarios import LATER
from pennyweight.suite.tasks import HIDDEN
from pennyweight.suite.templates import render, variables_of
from pennyweight.suite.values import NO_EXTRA, Example, LoadedSuite, Subject, Task, Tier, Workspace

CHARACTERS_PER_TOKEN = 4
ROUNDS = 8
"""How many times in a row tool calls are answered within one turn."""
SAMPLE = 200
"""How many tasks an estimate is based on."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of one subject in one tier at one task."""

    task: Task
    subject: Subject
    tier: Tier
    number: int
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class UsageEstimate:
    """An estimate of the tokens of one subject in one tier."""

    subject: Subject
    tier: Tier
    attempts: int
    prompt_tokens: int
    output_tokens: int | None
    """The upper limit of output tokens; None if the settings have no limit."""
    example: list[dict[str, str]]


def attempts(suite: LoadedSuite) -> Iterator[Attempt]:
    """Yield the attempts: run by run, task by task, all subjects and tiers of a task together.

    If a run stops early, its tiers have tried the same tasks, except for the last one. The seed
    depends only on task and number, so all tiers use the same seeds, and adding runs changes none.
    """
    sides = [(subject, tier) for subject in suite.subjects for tier in suite.tiers]
    for number in range(1, suite.runs + 1):
        for task in suite.tasks:
            seed = _seed(suite.seed, task.id, number)
            for subject, tier in sides:
                yield Attempt(task, subject, tier, number, seed)


@dataclass(frozen=True, slots=True)
class SubjectPlan:
    """The attempts of one subject by number, in the order of `attempts`."""

    suite: LoadedSuite
    subject: Subject

    def __len__(self) -> int:
        return len(self.suite.tasks) * len(self.suite.tiers) * self.suite.runs

    def __getitem__(self, index: int) -> Attempt:
        rest, tier = divmod(index, len(self.suite.tiers))
        before, task = divmod(rest, len(self.suite.tasks))
        chosen, number = self.suite.tasks[task], before + 1
        seed = _seed(self.suite.seed, chosen.id, number)
        return Attempt(chosen, self.subject, self.suite.tiers[tier], number, seed)


def count(suite: LoadedSuite) -> int:
    """Count the attempts."""
    return len(suite.tasks) * len(suite.subjects) * len(suite.tiers) * suite.runs


def _seed(seed: int | None, task: str, number: int) -> int | None:
    if seed is None:
        return None
    text = f"{seed}\0{number}\0{task}".encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest()) >> 1


def conversation(tier: Tier, task: Task) -> list[dict[str, str]]:
    """Return the messages of a task in a tier: system text, examples, earlier turns, question."""
    values = variables(task, tier.examples, tier.aliases)
    turns: list[dict[str, str]] = []
    system = render(tier.system, values) if tier.system else ""
    if system.strip():
        turns.append({"role": "system", "content": system})
    if tier.shown or task.before:
        turns += [{"role": m.role, "content": m.content} for m in (*tier.shown, *task.before)]
    if tier.messages:
        turns += [{"role": m.role, "content": render(m.content, values)} for m in tier.messages]
    else:
        turns.append({"role": "user", "content": render(tier.prompt, values)})
    if task.turns:
        turns += [{"role": LATER, "content": line} for line in task.turns]
    return turns


def variables(
    task: Task | Example, examples: Sequence[Example] = (), aliases: Mapping[str, str] = NO_EXTRA
) -> dict[str, Any]:
    """Return the variables of a template; never the target or the checks.

    `aliases` are columns that became fields, under their own names.
    """
    values = {name: value for name, value in task.extra.items() if name not in HIDDEN}
    if isinstance(task, Task):
        own = dict(zip(FIELDS, _fields(task), strict=True))
    else:
        own = {name: getattr(task, name, None) for name in FIELDS}
    if aliases:
        values |= {name: own[field] for name, field in aliases.items() if name not in own}
    values |= own
    values["examples"] = [
        {**example.extra, "input": example.input, "output": example.output} for example in examples
    ]
    return values


FIELDS = ("id", "input", "context", "category", "capability", "name")
_fields = attrgetter(*FIELDS)


def shows_examples(texts: Sequence[str]) -> bool:
    """Return whether templates show the worked examples themselves."""
    return any("examples" in variables_of(text) for text in texts)


def example_turns(
    prompt: str, examples: Sequence[Example], aliases: Mapping[str, str] = NO_EXTRA
) -> list[tuple[str, str]]:
    """Return worked examples as turns: the prompt rendered for each of them, and its output."""
    values = (variables(example, aliases=aliases) for example in examples)
    return [
        (render(prompt, each), example.output)
        for each, example in zip(values, examples, strict=True)
    ]


def settings(suite: LoadedSuite, attempt: Attempt) -> dict[str, Any]:
    """Merge the settings of a call: those of the tier override the subject's and the suite's."""
    joined = {**suite.settings, **attempt.subject.settings, **attempt.tier.settings}
    return {**joined, "logprobs": True} if suite.confidence == "logprobs" else joined


def fingerprint(suite: LoadedSuite, attempt: Attempt) -> str:
    """Hash everything that determines a call: model, address, settings, messages, seed.

    A resumed run compares these hashes to decide which records to reuse.
    """
    mark = side_mark(attempt, settings(suite, attempt))
    turns = json.dumps(conversation(attempt.tier, attempt.task))
    return fingerprint_of(mark, attempt.seed, turns, work_of(attempt))


def side_mark(attempt: Attempt, options: Mapping[str, Any]) -> str:
    """Return what all calls of one subject in one tier have in common, as JSON."""
    subject = attempt.subject
    shared = [subject.model, subject.base_url or subject.served_at, options]
    if subject.agent:
        shared.append(asdict(subject.agent))
    return json.dumps(shared, sort_keys=True, default=str)


def work_of(attempt: Attempt) -> Workspace | None:
    """Return the workspace of an attempt; None if the suite has no agents."""
    tier, task = attempt.tier.work, attempt.task
    if tier is None:
        return None
    return replace(tier.joined(task.work), task=task.id, target=task.target)


def fingerprint_of(side: str, seed: int | None, turns: str, work: Workspace | None = None) -> str:
    """Hash a call, given its parts; `turns` are its messages as JSON."""
    text = f"{side}\0{seed}\0{turns}"
    if work is not None:
        text += "\0" + json.dumps(work.identity(), sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def tokens_of(turns: Sequence[Mapping[str, str]]) -> int:
    """Estimate the tokens of messages: one for four characters, and a few for each turn.

    >>> tokens_of([{"role": "user", "content": "How much is 2 + 2?"}])
    9
    """
    return sum(-(-len(t["content"]) // CHARACTERS_PER_TOKEN) + 4 for t in turns)


def most_calls(script: Sequence[str]) -> int:
    """Return the largest number of calls that an attempt makes."""
    if not script:
        return 1
    lines = [json.loads(line) for line in script]
    replies = 1 + sum("say" in line for line in lines)
    return replies * (ROUNDS if any("results" in line for line in lines) else 1)


def _sent(turns: Sequence[Mapping[str, str]], output: int) -> int:
    """Estimate the tokens sent; in a scripted conversation, each call sends all turns before."""
    first = [turn for turn in turns if turn["role"] != LATER]
    sent = so_far = tokens_of(first)
    for line in (json.loads(turn["content"]) for turn in turns[len(first) :]):
        if "say" in line:
            so_far += output + tokens_of([{"content": str(line["say"])}])
            sent += so_far
    return sent


def estimates(suite: LoadedSuite) -> list[UsageEstimate]:
    """Estimate the tokens of each subject in each tier from an even sample of the tasks."""
    step = max(1, len(suite.tasks) // SAMPLE)
    sample = suite.tasks[::step]
    number = len(suite.tasks) * suite.runs
    usages = []
    for subject in suite.subjects:
        for tier in suite.tiers:
            first = Attempt(sample[0], subject, tier, 1)
            limit = settings(suite, first).get("max_tokens")
            limit = limit if isinstance(limit, int) else None
            tokens = sum(_sent(conversation(tier, task), limit or 0) for task in sample)
            calls = sum(most_calls(task.turns) for task in sample)
            usages.append(
                UsageEstimate(
                    subject=subject,
                    tier=tier,
                    attempts=number,
                    prompt_tokens=round(tokens * number / len(sample)),
                    output_tokens=None if limit is None else limit * calls * number // len(sample),
                    example=conversation(tier, sample[0]),
                )
            )
    return usages
