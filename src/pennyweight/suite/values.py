"""A suite as frozen values: what is measured, at which tasks, in which configurations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pennyweight.text.extraction import AnswerRule
from pennyweight.text.matching import MatchRule

if TYPE_CHECKING:
    from pennyweight.checks.scenario import Scenario
    from pennyweight.scorers.declaration import Scorer
    from pennyweight.suite.implied import ImpliedTasks
    from pennyweight.suite.narrowing import Narrowing
    from pennyweight.suite.rubric import Rubric

Role = Literal["system", "user", "assistant"]
NO_EXTRA: Mapping[str, Any] = {}
"""A shared empty mapping, to save memory in suites with many tasks."""
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
    """The question; in a conversation, its last turn."""
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
    """The behaviours and checks above, ready to be checked."""
    turns: tuple[str, ...] = ()
    """The later turns of a scripted user, each with its condition, as JSON."""
    before: tuple[Turn, ...] = ()
    """The earlier turns of a conversation."""
    extra: Mapping[str, Any] = field(default_factory=lambda: NO_EXTRA)
    """All other columns; prompts may use them."""
    work: Workspace | None = None
    """The workspace of an agent at this task, in addition to that of the tier."""
    solution: Solution | None = None
    """What solves it: an audit tries whether that passes. Runs do not use it."""


@dataclass(frozen=True, slots=True)
class Solution:
    """What solves a task: a reply, or what an agent would do in its workspace."""

    reply: str | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Files written in the workspace, by path."""
    patch: str | None = None
    """A diff that is applied in the workspace."""
    commands: tuple[tuple[str, ...], ...] = ()
    """Commands that are run in the workspace, after files and patch."""

    @property
    def works(self) -> bool:
        """Whether it changes a workspace."""
        return bool(self.files or self.patch or self.commands)


@dataclass(frozen=True, slots=True)
class Example:
    """A worked example, shown before the task."""

    input: str
    output: str
    context: Any = None
    extra: Mapping[str, Any] = field(default_factory=lambda: NO_EXTRA)


@dataclass(frozen=True, slots=True)
class Caps:
    """Limits of one attempt of an agent."""

    output_kb: int = 1024
    disk_mb: int = 1024
    files: int = 50_000
    memory_mb: int = 8192
    processes: int = 1024
    cpu_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Agent:
    """A command that works in a folder, and its settings."""

    command: tuple[str, ...]
    """The words of the command; a shell command is one word, with `shell` set."""
    shell: bool = False
    prompt: Literal["argument", "file", "stdin"] = "argument"
    env: tuple[str, ...] = ()
    """Names of the environment variables it may see; never their values."""
    timeout: float = 600.0
    sandbox: Literal["bubblewrap", "container", "none"] = "bubblewrap"
    image: str | None = None
    network: bool = False
    read: tuple[str, ...] = ()
    """Absolute paths of files and folders outside the workspace that it may read."""
    output: str | Mapping[str, str] = "text"
    caps: Caps = field(default_factory=Caps)
    serves: str | None = None
    """A local model that is served to it."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folder in which an agent works, and the commands that check its work."""

    copy: str | None = None
    """The folder that is copied, as an absolute path."""
    git: str | None = None
    """The git repository, as an absolute path."""
    mark: str = ""
    """The version of the content: a hash of the folder, or the commit."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Files placed in the workspace, by path."""
    verify: tuple[tuple[str, ...], ...] = ()
    keep: tuple[tuple[str, ...], ...] = ()
    verify_files: Mapping[str, bytes] = field(default_factory=dict)
    answer_paths: tuple[str, ...] | None = None
    """Patterns of the files that count as the agent's answer; None for all that are safe."""
    verify_in: Literal["fresh", "workspace"] | None = None
    """Where checks run: in a fresh copy with the answer, or where the agent worked."""
    verify_before: Literal["fails", "any"] | None = None
    """How `verify` ends before the agent begins; anything else is a mistake of the suite."""
    task: str = ""
    target: str | None = None

    def identity(self) -> list[Any]:
        """Return its content as plain data, without paths of this machine."""
        files, hidden = (
            {name: hashlib.sha256(held).hexdigest() for name, held in held_by.items()}
            for held_by in (self.files, self.verify_files)
        )
        rules = [self.answer_paths, self.verify_in]
        own = [] if rules == [None, None] else rules
        return [self.mark, files, self.verify, self.keep, hidden, *own]

    def joined(self, other: Workspace | None) -> Workspace:
        """Merge the workspace of a tier with that of a task; files of the tier win."""
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
            self.answer_paths if other.answer_paths is None else other.answer_paths,
            other.verify_in or self.verify_in,
            other.verify_before or self.verify_before,
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
    """The folder of its suite, in which a function is looked up first."""
    priced_as: str | None = None
    """The model whose published price it has, as provider/name."""
    more_urls: tuple[str, ...] = ()
    """Further addresses of the same model. They do not determine what is sent."""
    lane: Literal["live", "batch"] | None = None
    """Whether its calls go into the provider's batches; None as the suite says."""
    resources: Mapping[str, float] = field(default_factory=dict)
    """What a worker of it needs of a cluster's node, by the names that Ray has for it."""
    served_at: str | None = None
    """The address that the environment names in place of its provider's public one."""


@dataclass(frozen=True, slots=True)
class Tier:
    """A named configuration, merged with what it extends and with the texts of the suite."""

    name: str
    system: str | None = None
    prompt: str = DEFAULT_PROMPT
    examples: tuple[Example, ...] = ()
    messages: tuple[Turn, ...] = ()
    """The turns that replace the prompt, if any."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    extends: str | None = None
    shown: tuple[Turn, ...] = ()
    """The examples as messages, unless the prompt shows them itself."""
    work: Workspace | None = None
    """The workspace of the suite with the files of the tier; None without agents."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Columns that became fields of tasks, by their own names, where a template uses them."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Its templates."""
        prompts = [turn.content for turn in self.messages] or [self.prompt]
        return (*([self.system] if self.system else ()), *prompts)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a run; None means no limit."""

    concurrency: Literal["auto"] | int = "auto"
    usd: float | None = None
    tokens: int | None = None
    seconds: float | None = None
    timeout: float = 120.0
    """Seconds for one call."""
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    """What each account gets, whoever calls it."""
    lane: Literal["live", "batch"] = "live"
    """Whether calls go into the providers' batches."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens, with the source and date of the price.

    Cached input and cache writes without a rate of their own cost what other input does.
    """

    input: float
    output: float
    source: str = "suite"
    date: str | None = None
    cached_input: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None
    """Writes that the provider keeps for an hour."""
    longer: tuple[tuple[int, Price], ...] = ()
    """The prices of longer prompts, each with the number of tokens that is exceeded."""

    def at(self, prompt_tokens: int) -> Price:
        """Return the price of a prompt of this length, all of whose tokens cost the same.

        >>> Price(1, 2, longer=((200_000, Price(3, 4)),)).at(200_001).input
        3
        """
        higher = (price for start, price in reversed(self.longer) if prompt_tokens > start)
        return next(higher, self) if self.longer else self

    @property
    def origin(self) -> str:
        """Return source and date, as records store them.

        >>> Price(1, 2).origin, Price(1, 2, "price list", "2026-10-01").origin
        ('suite', 'price list, 2026-10-01')
        """
        return f"{self.source}, {self.date}" if self.date else self.source


def judge_identities(*judges: Subject) -> list[list[Any]]:
    """Return which models judges are, with their settings, whatever their names."""
    told = ([one.model, one.base_url, dict(one.settings)] for one in judges)
    return sorted(told, key=lambda one: json.dumps(one, sort_keys=True, default=str))


@dataclass(frozen=True, slots=True)
class Judging:
    """The judges, their rubric, and how several scores are combined."""

    judges: tuple[Subject, ...]
    rubric: Rubric
    more: tuple[Subject, ...] = ()
    """Judges that are asked as well if the others disagree."""
    consensus: Literal["mean", "confidence"] = "mean"
    disagreement: float = 0.3
    """The range of scores beyond which judges disagree."""
    scores: bool = True
    """Whether attempts are scored by the rubric, or judges are only asked about sentences."""

    def plain(self) -> dict[str, Any]:
        """Return it as plain data, as a run stores it."""
        return {
            "judges": [judge.name for judge in self.judges],
            "more": [judge.name for judge in self.more],
            "consensus": self.consensus,
            "disagreement": self.disagreement,
            "mark": self.rubric.mark,
            "rubric": asdict(self.rubric),
            "models": judge_identities(*self.judges),
            "more_models": judge_identities(*self.more),
        }


@dataclass(frozen=True, slots=True)
class LoadedSuite:
    """A suite that was checked, with its tasks."""

    name: str
    path: str
    text: str
    """The text of the file; a run stores it."""
    data_hash: str
    """A hash of tasks and examples as values, independent of the format of their files."""
    tasks: tuple[Task, ...]
    subjects: tuple[Subject, ...]
    tiers: tuple[Tier, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    answer: AnswerRule = field(default_factory=AnswerRule)
    match: MatchRule = field(default_factory=MatchRule)
    states_rules: bool = False
    """Whether it says how answers are found or matched: then those of verified agents are, too."""
    confidence: Literal["stated", "logprobs"] | None = None
    """The source of `prob_correct`, if the suite asks for it."""
    runs: int = 1
    seed: int | None = None
    limits: Limits = field(default_factory=Limits)
    prices: Mapping[str, Price] = field(default_factory=dict)
    judge: Judging | None = None
    narrowing: Narrowing | None = None
    """How it differs from its file, if a run was started with options."""
    scorers: tuple[Scorer, ...] = ()
    named_scorers: tuple[Any, ...] = ()
    """The scorers as the suite names them."""
    partial: tuple[str, ...] = ()
    """What could not be carried over from the suite that it was made from."""
    work: Workspace | None = None
    """The workspace that the suite gives to all tiers; None without agents."""
    implied: ImpliedTasks | None = None
    """Its tasks, if nobody wrote it: it stands for a file of tasks, or for a question."""
    is_part: bool = False
    """Whether it has only some of its tasks or runs; records of the others remain valid."""
