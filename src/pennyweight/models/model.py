"""What a model is: a request in, a reply out. The values are frozen and know no provider."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from pennyweight.errors import UsageError, unknown
from pennyweight.models.reply_schema import read_reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pennyweight.suite.values import Workspace


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool that the model asked for.

    `arguments` is the JSON text as the model wrote it, since a model may well write it wrongly.
    """

    id: str
    name: str
    arguments: str

    def parsed(self) -> dict[str, Any] | None:
        """Read the arguments; null when they are no JSON object."""
        try:
            value = json.loads(self.arguments or "{}")
        except ValueError:
            return None
        return value if isinstance(value, dict) else None


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation; `role` is system, user, assistant or tool."""

    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """How to answer. What is None is left to the provider.

    `tools` are objects with `name`, `description` and `parameters` (a JSON schema). `schema` is a
    JSON schema that the output must satisfy. `thinking` is a budget in tokens (0: none) or a level
    such as `low`. `extra` goes into the body of the request as it is.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    logprobs: bool = False
    tools: tuple[Mapping[str, Any], ...] = ()
    schema: Mapping[str, Any] | None = None
    thinking: int | str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_suite(cls, options: Mapping[str, Any]) -> Settings:
        """Make settings from those of a suite: names that no wire knows go as they are."""
        names = {f.name for f in fields(cls)}
        known = {name: value for name, value in options.items() if name in names}
        rest = {name: value for name, value in options.items() if name not in names}
        return cls.of({**known, "extra": {**(known.get("extra") or {}), **rest}})

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Settings:
        """Make settings from what a person wrote; a name that is not known is an error."""
        known = [f.name for f in fields(cls)]
        for name in values:
            if name not in known:
                hint = "What only one provider knows goes under 'extra'."
                raise UsageError(unknown("Setting", name, known, hint))
        given = dict(values)
        stop = given.get("stop")
        given["stop"] = (stop,) if isinstance(stop, str) else tuple(stop or ())
        given["tools"] = tuple(given.get("tools") or ())
        given["extra"] = dict(given.get("extra") or {})
        return cls(**given)


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is asked, and which attempt it is (so that a recording tells them apart)."""

    messages: tuple[Message, ...]
    settings: Settings = field(default_factory=Settings)
    attempt: int = 1
    work: Workspace | None = None
    """Where an agent works, and how what it leaves behind is checked."""
    label: str = ""
    """Which tier and task ask, so that a recording tells equal prompts apart; it is never sent."""

    @property
    def text(self) -> str:
        """The text of the last message."""
        return self.messages[-1].content if self.messages else ""

    def plain(self) -> dict[str, Any]:
        """Give the request as plain data; of the work, what tells it apart from others."""
        values = asdict(replace(self, work=None))
        del values["work"]
        if not self.label:
            del values["label"]
        if self.work and any(told := self.work.identity()):
            values["work"] = [self.work.task, *told]
        return values


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them; what it did not say is None, never 0.

    `prompt_tokens` includes the cached ones, `completion_tokens` the reasoning.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model or an agent answered. `finish` is the provider's own word for why it stopped.

    `status` is `timeout` or `budget` where the subject itself ran out of it. An agent also says
    whether what it left behind `passed`, what it cost by its own account, and its `work`: exit
    code, output, the difference it made.
    """

    text: str
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    truncated: bool = False
    refused: bool = False
    finish: str | None = None
    logprobs: tuple[tuple[str, float], ...] | None = None
    model: str | None = None
    latency_ms: float | None = None
    status: Literal["ok", "timeout", "budget"] = "ok"
    passed: bool | None = None
    cost_usd: float | None = None
    work: Mapping[str, Any] | None = None

    def plain(self) -> dict[str, Any]:
        """Give the reply as plain data."""
        return asdict(self)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Reply:
        """Make a reply from plain data, as `plain` gives it or as a person's function does.

        A field that is not what it must be is an error that names it.
        """
        given = read_reply(values)
        given["tool_calls"] = tuple(ToolCall(**call) for call in given["tool_calls"])
        given["usage"] = Usage(**given.get("usage", {}))
        if "logprobs" in given:
            given["logprobs"] = tuple(given["logprobs"])
        return cls(**given)


class Model:
    """The base class of everything that answers requests: models and agents.

    A subclass sets `name` and `account` and implements `call`.
    """

    name: str
    """The model's name in records and tables."""
    account: str
    """The account that is rate-limited: calls of one account are throttled together."""
    limit: int | None = None
    """The useful number of concurrent calls; None if it has to be found out by trying."""
    ignores: frozenset[str] = frozenset()
    """The settings that have no effect on this model."""

    def encode(self, request: Request) -> tuple[str, dict[str, Any]] | None:
        """Return the path and the JSON body of a request; None if the model does not use HTTP.

        Raise UsageError if the settings cannot be expressed in the provider's format.
        """
        del request
        return None

    def most_output(self, settings: Settings) -> int | None:
        """Return the maximum number of output tokens of a call; None if nothing limits it.

        This is more than `max_tokens` where thinking has a budget of its own.
        """
        return settings.max_tokens

    async def call(self, request: Request) -> Reply:
        """Answer once, without retrying. Raise CallError if there is no reply."""
        raise NotImplementedError

    async def close(self) -> None:
        """Release connections and processes. May be called twice."""
