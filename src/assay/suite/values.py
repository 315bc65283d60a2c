"""A suite as frozen values: what is measured, at which tasks, in which configurations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from assay.text.extract import AnswerRule
from assay.text.match import MatchRule

if TYPE_CHECKING:
    from collections.abc import Mapping

Role = Literal["system", "user", "assistant"]
NO_EXTRA: Mapping[str, Any] = {}
"""One empty mapping for all; a hundred thousand tasks need not have their own."""
DEFAULT_PROMPT = "{{ input }}"


@dataclass(frozen=True, slots=True)
class Message:
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
    before: tuple[Message, ...] = ()
    """The turns of a conversation before the last one."""
    extra: Mapping[str, Any] = field(default_factory=lambda: NO_EXTRA)
    """Every other column, under its own name; prompts may use them."""


@dataclass(frozen=True, slots=True)
class Example:
    """A task already done, shown before the one to do."""

    input: str
    output: str
    context: Any = None
    extra: Mapping[str, Any] = field(default_factory=lambda: NO_EXTRA)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is being measured: a model with its settings. The key itself is never part of it."""

    name: str
    model: str
    base_url: str | None = None
    key_env: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tier:
    """A named configuration; what it extends and the suite's own texts are already in it."""

    name: str
    system: str | None = None
    prompt: str = DEFAULT_PROMPT
    examples: tuple[Example, ...] = ()
    messages: tuple[Message, ...] = ()
    """The turns that replace the prompt, if any."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    extends: str | None = None
    shown: tuple[Message, ...] = ()
    """The examples as turns, unless the prompt shows them itself."""


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
    """US dollars for a million tokens."""

    input: float
    output: float


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
    prompt: str = DEFAULT_PROMPT
    system: str | None = None
    examples: tuple[Example, ...] = ()
    messages: tuple[Message, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    answer: AnswerRule = field(default_factory=AnswerRule)
    match: MatchRule = field(default_factory=MatchRule)
    confidence: Literal["stated", "logprobs"] | None = None
    """Where `prob_correct` comes from, if the suite asks for it."""
    runs: int = 1
    seed: int | None = None
    limits: Limits = field(default_factory=Limits)
    prices: Mapping[str, Price] = field(default_factory=dict)
