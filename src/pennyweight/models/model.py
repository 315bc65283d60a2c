"""Models, requests and replies. The values are frozen and independent of providers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from pennyweight.errors import UsageError, unknown
from pennyweight.models.reply_schema import read_reply

if TYPE_CHECKING:
    from pennyweight.models.batch.service import BatchService
    from pennyweight.suite.values import Workspace

Lane = Literal["live", "batch"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call that the model requested.

    `arguments` is the JSON text as the model wrote it, because a model may write invalid JSON.
    """

    id: str
    name: str
    arguments: str

    def parsed(self) -> dict[str, Any] | None:
        """Return the arguments; None if they are not a JSON object."""
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
    """How to answer. A value of None is left to the provider.

    `tools` are objects with `name`, `description` and `parameters` (a JSON schema). `schema` is a
    JSON schema that the output must satisfy. `thinking` is a budget in tokens (0: none) or a level
    such as `low`. With `stream` the reply comes piece by piece, which tells when the first came.
    `extra` goes into the body of the request as it is.
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
    stream: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_suite(cls, options: Mapping[str, Any]) -> Settings:
        """Make settings from those of a suite. Names that are not settings go into `extra`."""
        extra = dict(options.get("extra") or {})
        known = {f.name: options[f.name] for f in fields(cls) if f.name in options}
        extra |= {name: value for name, value in options.items() if name not in known}
        return cls.of({**known, "extra": extra})

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Settings:
        """Make settings from a mapping. An unknown name is an error."""
        known = [f.name for f in fields(cls)]
        for name in values:
            if name not in known:
                hint = "Settings of one provider go under 'extra'."
                raise UsageError(unknown("Setting", name, known, hint))
        stop = values.get("stop")
        tuples = {
            "stop": (stop,) if isinstance(stop, str) else tuple(stop or ()),
            "tools": tuple(values.get("tools") or ()),
        }
        return cls(**{**values, **tuples, "extra": dict(values.get("extra") or {})})


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is asked, and for which attempt, so that a recording can tell attempts apart."""

    messages: tuple[Message, ...]
    settings: Settings = field(default_factory=Settings)
    attempt: int = 1
    work: Workspace | None = None
    """The workspace of an agent, and how its result is checked."""
    label: str = ""
    """The tier and task, so that a recording can tell equal prompts apart. It is never sent."""
    question: str = ""
    """Which of a judge's questions it is: in batches, equal ones have a reply each."""

    @property
    def text(self) -> str:
        """The text of the last message."""
        return self.messages[-1].content if self.messages else ""

    @property
    def system(self) -> str:
        """The system prompt; empty if there is none."""
        return "\n\n".join(m.content for m in self.messages if m.role == "system")

    def plain(self) -> dict[str, Any]:
        """Return the request as plain data, with what identifies its workspace."""
        values = asdict(replace(self, work=None))
        del values["work"], values["question"]
        if not self.settings.stream:  # it does not change what is answered
            del values["settings"]["stream"]
        if not self.label:
            del values["label"]
        if self.work and any(identity := self.work.identity()):
            values["work"] = [self.work.task, *identity]
        return values


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them. An unreported count is None, never 0.

    `prompt_tokens` includes the tokens that were read from a cache or written to it, and
    `completion_tokens` includes reasoning. `cache_write_tokens` includes those kept for an hour.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_1h_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply of a model or an agent. `finish` is the provider's own reason for stopping.

    `status` is `timeout` or `budget` if the subject itself exceeded a limit, and `error` if its
    work could not be judged, for the reason in `error`. An agent also reports whether its result
    `passed`, its own cost, and its `work`: exit code, output and diff.
    `reported` is the kind of that error, or of a failure that it reported in an earlier try.
    `ttft_ms` is the time until the first output of a streamed reply, thinking included. `lane`
    tells a reply that came in a provider's batch, at the price of batches.
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
    status: Literal["ok", "timeout", "budget", "error"] = "ok"
    error: str | None = None
    passed: bool | None = None
    cost_usd: float | None = None
    work: Mapping[str, Any] | None = None
    reported: str | None = None
    ttft_ms: float | None = None
    lane: Lane = "live"

    def plain(self) -> dict[str, Any]:
        """Return the reply as plain data."""
        return asdict(self)

    @classmethod
    def of(
        cls, values: Mapping[str, Any] | Reply, redact: Callable[[Any], Any] = lambda fields: fields
    ) -> Reply:
        """Make a reply from plain data, as `plain` or a user's function returns it.

        An invalid field is an error that names it. `redact` removes keys from the valid fields.
        """
        read = redact(read_reply(values))
        read["tool_calls"] = tuple(ToolCall(**call) for call in read["tool_calls"])
        read["usage"] = Usage(**read.get("usage", {}))
        if "logprobs" in read:
            read["logprobs"] = tuple(map(tuple, read["logprobs"]))
        return cls(**read)


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

    @property
    def in_batches(self) -> bool:
        """Whether its requests go into a provider's batches."""
        return False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

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

    def batches(self) -> BatchService | None:
        """Return the provider's batches of this model; None if there are none."""
        return None

    async def call(self, request: Request) -> Reply:
        """Answer once, without retrying. Raise CallError if there is no reply."""
        raise NotImplementedError

    async def close(self) -> None:
        """Release connections and processes. May be called twice."""
