"""A suite as frozen values: what is measured, at which tasks, in which configurations."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pennyweight.text.extraction import AnswerRule
from pennyweight.text.matching import MatchRule

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pennyweight.checks.scenario import Scenario
    from pennyweight.suite.rubric import Rubric

Role = Literal["system", "user", "assistant"]
NO_EXTRA: Mapping[str, Any] = {}
"""One empty mapping for all; a hundred thousand tasks need not have their own."""
DEFAULT_PROMPT = "{{ input }}"


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation; in a suite its content is a template."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to do."""

    id: str
    input: str
    """What is asked; of a conversation, its last turn."""
    target: str | None = None
    context: Any = None
    category: str | None = None
    capability: str | None = None
    name: str | None = None
    expected_behaviors: tuple[Any, ...] = ()
    must_not: tuple[Any, ...] = ()
    checks: tuple[Any, ...] = ()
    pass_score: float | None = None
    weight: float = 1.0
    required: bool = False
    scenario: Scenario | None = None
    """What its attempts are checked for, made of the behaviours and checks above."""
    turns: tuple[str, ...] = ()
    """What a scripted user says after the replies, each line with its condition as JSON."""
    before: tuple[Turn, ...] = ()
    """The turns of a conversation before the last one."""
    extra: Mapping[str, Any] = field(default_factory=lambda: NO_EXTRA)
    """Every other column, under its own name; prompts may use them."""
    work: Workspace | None = None
    """What an agent finds at this task and how its work is checked, beside what the tier says."""


@dataclass(frozen=True, slots=True)
class Example:
    """A task already done, shown before the one to do."""

    input: str
    output: str
    context: Any = None
    extra: Mapping[str, Any] = field(default_factory=lambda: NO_EXTRA)


@dataclass(frozen=True, slots=True)
class Caps:
    """What one attempt of an agent may leave behind."""

    output_kb: int = 1024
    """Kilobytes kept of each output: half from its start, half from its end."""
    disk_mb: int = 1024
    """Megabytes that the workspace, the home and the temporary folder may grow by."""
    files: int = 50_000
    """Files that may be added."""


@dataclass(frozen=True, slots=True)
class Agent:
    """A command that works in a folder, and how it is run."""

    command: tuple[str, ...]
    """The words of the command; a text for the shell is one word, with `shell` set."""
    shell: bool = False
    prompt: Literal["argument", "file", "stdin"] = "argument"
    env: tuple[str, ...] = ()
    """Names of the variables it may see; their values are never part of it."""
    timeout: float = 600.0
    sandbox: Literal["bubblewrap", "container", "none"] = "bubblewrap"
    image: str | None = None
    network: bool = False
    read: tuple[str, ...] = ()
    """Files and folders of this machine that it may read, as absolute paths."""
    output: str | Mapping[str, str] = "text"
    """How its output is read: the name of a reader, or a JSON path for each value."""
    caps: Caps = field(default_factory=Caps)
    serves: str | None = None
    """A local model that is served to it."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where an agent works, and how what it leaves behind is checked."""

    copy: str | None = None
    """The folder that is copied, as an absolute path."""
    git: str | None = None
    """The repository whose commit is taken, as an absolute path."""
    mark: str = ""
    """What tells contents apart: a hash of the folder, or the commit."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Files placed in the workspace, by path."""
    verify: tuple[tuple[str, ...], ...] = ()
    """Commands that must succeed when the agent is done."""
    keep: tuple[tuple[str, ...], ...] = ()
    """Commands that must still succeed, where they did before."""
    verify_files: Mapping[str, bytes] = field(default_factory=dict)
    """Files placed in the workspace for the checks alone; the agent does not see them."""
    task: str = ""
    target: str | None = None

    def identity(self) -> list[Any]:
        """Give what tells it apart, as plain data; where on this machine it lies does not."""
        files, hidden = (
            {name: hashlib.sha256(held).hexdigest() for name, held in held_by.items()}
            for held_by in (self.files, self.verify_files)
        )
        return [self.mark, files, self.verify, self.keep, hidden]

    def joined(self, other: Workspace | None) -> Workspace:
        """Join a tier's work with a task's: the task's workspace, the tier's files over its own."""
        if other is None:
            return self
        place = other if other.copy or other.git else self
        return Workspace(
            place.copy,
            place.git,
            place.mark,
            {**other.files, **self.files},
            (*self.verify, *other.verify),
            (*self.keep, *other.keep),
            {**self.verify_files, **other.verify_files},
        )


@dataclass(frozen=True, slots=True)
class Subject:
    """What is being measured: a model or an agent with its settings, but never its keys."""

    name: str
    model: str
    base_url: str | None = None
    key_env: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    agent: Agent | None = None
    folder: Path | None = field(default=None, compare=False, repr=False)
    """Where its suite is: a function that answers is looked for there first."""


@dataclass(frozen=True, slots=True)
class Tier:
    """A named configuration; what it extends and the suite's own texts are already in it."""

    name: str
    system: str | None = None
    prompt: str = DEFAULT_PROMPT
    examples: tuple[Example, ...] = ()
    messages: tuple[Turn, ...] = ()
    """The turns that replace the prompt, if any."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    extends: str | None = None
    shown: tuple[Turn, ...] = ()
    """The examples as turns, unless the prompt shows them itself."""
    work: Workspace | None = None
    """The suite's workspace and checks with the tier's files; None where nothing is an agent."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may use; None is no limit."""

    concurrency: Literal["auto"] | int = "auto"
    usd: float | None = None
    tokens: int | None = None
    seconds: float | None = None
    timeout: float = 120.0
    """Seconds for one call."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens, where that was found, and the day it held."""

    input: float
    output: float
    source: str = "suite"
    date: str | None = None

    @property
    def origin(self) -> str:
        """Give source and day, as records keep them.

        >>> Price(1, 2).origin, Price(1, 2, "price list", "2026-10-01").origin
        ('suite', 'price list, 2026-10-01')
        """
        return f"{self.source}, {self.date}" if self.date else self.source


@dataclass(frozen=True, slots=True)
class Judging:
    """Who judges attempts, by which rubric, and how several judges become one score."""

    judges: tuple[Subject, ...]
    rubric: Rubric
    more: tuple[Subject, ...] = ()
    """Those that are asked too where the judges disagree."""
    consensus: Literal["mean", "confidence"] = "mean"
    disagreement: float = 0.3
    """The range of scores beyond which judges disagree."""
    scores: bool = True
    """Whether attempts are scored by the rubric; else judges are only asked about sentences."""

    def plain(self) -> dict[str, Any]:
        """Describe it as a run keeps it: what scores need, and the rubric."""
        return {
            "judges": [judge.name for judge in self.judges],
            "more": [judge.name for judge in self.more],
            "consensus": self.consensus,
            "disagreement": self.disagreement,
            "mark": self.rubric.mark,
            "rubric": asdict(self.rubric),
        }


@dataclass(frozen=True, slots=True)
class Suite:
    """Everything a person wrote, checked, with the tasks it names."""

    name: str
    path: str
    text: str
    """The source as it was read; a run keeps it."""
    data_hash: str
    """A hash of tasks and examples as values: how their files are laid out does not matter."""
    tasks: tuple[Task, ...]
    subjects: tuple[Subject, ...]
    tiers: tuple[Tier, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    answer: AnswerRule = field(default_factory=AnswerRule)
    match: MatchRule = field(default_factory=MatchRule)
    confidence: Literal["stated", "logprobs"] | None = None
    """Where `prob_correct` comes from, if the suite asks for it."""
    runs: int = 1
    seed: int | None = None
    limits: Limits = field(default_factory=Limits)
    prices: Mapping[str, Price] = field(default_factory=dict)
    judge: Judging | None = None
    is_part: bool = False
    """Whether it has only some of its tasks or runs: records of the others stand too."""
