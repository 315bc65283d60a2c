"""A scripted user: several calls of a model that make one attempt.

The later lines of the script stand behind the first question, as messages of their own role, so
that a changed script is a changed attempt. They never reach the model as they are.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from assay.checks.behaviour import kept
from assay.checks.seen import Seen
from assay.models.failure import CallError
from assay.models.model import Message, Reply, Usage
from assay.suite.scenarios import LATER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.models.model import Model, Request

ROUNDS = 8
"""How often in a row tools are answered before the model has to go on without them."""
NO_TOOL = "This tool gives no result."


def most_calls(script: Sequence[str]) -> int:
    """Say how many calls an attempt makes at most; what they may take is reserved before."""
    lines = [json.loads(line) for line in script]
    said = 1 + sum("say" in line for line in lines)
    return said * (ROUNDS if any("results" in line for line in lines) else 1)


class Scripted:
    """A model with a user who goes on by a script; without one it is the model itself."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.name = model.name
        self.account = model.account
        self.limit = model.limit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def call(self, request: Request) -> Reply:
        """Answer, and go on until the script ends."""
        script = [json.loads(m.content) for m in request.messages if m.role == LATER]
        if not script:
            return await self._model.call(request)
        first = tuple(m for m in request.messages if m.role != LATER)
        talk = _Talk(self._model, replace(request, messages=first))
        results = next((line["results"] for line in script if "results" in line), None)
        await talk.go(results)
        for line in script:
            said = _said(line, talk.replies[-1])
            if said is not None:
                talk.hear(Message("user", said))
                await talk.go(results)
        return talk.whole()

    async def close(self) -> None:
        """Close the model."""
        await self._model.close()


class _Talk:
    """One conversation as it goes on."""

    def __init__(self, model: Model, request: Request) -> None:
        self.model, self.request = model, request
        self.replies: list[Reply] = []
        self.turns: list[Message] = [request.messages[-1]]

    def hear(self, message: Message) -> None:
        """Add a message to the conversation."""
        self.turns.append(message)
        self.request = replace(self.request, messages=(*self.request.messages, message))

    async def go(self, results: Mapping[str, str] | None) -> None:
        """Let the model answer; tools that it calls give the results of the script."""
        for _ in range(ROUNDS):
            try:
                reply = await self.model.call(self.request)
            except CallError as error:
                error.usage = self._paid(error)
                raise
            self.replies.append(reply)
            self.hear(Message("assistant", reply.text, reply.tool_calls))
            for call in reply.tool_calls:
                given = (results or {}).get(call.name, NO_TOOL)
                self.hear(Message("tool", given, tool_call_id=call.id, name=call.name))
            if not reply.tool_calls or results is None:
                return

    def _paid(self, error: CallError) -> Usage | None:
        """Add up what earlier turns took, and what the failed one is known to have taken."""
        known = [r.usage for r in self.replies] + ([error.usage] if error.usage else [])
        return _added(known) if known else None

    def whole(self) -> Reply:
        """Join the replies: all that was said, every tool, all that it took."""
        last = self.replies[-1]
        texts = [r.text for r in self.replies if r.text.strip()]
        thoughts = [r.reasoning for r in self.replies if r.reasoning]
        turns = [_plain(message) for message in self.turns]
        return replace(
            last,
            text="\n\n".join(texts),
            reasoning="\n\n".join(thoughts) or None,
            tool_calls=tuple(call for r in self.replies for call in r.tool_calls),
            usage=_added([r.usage for r in self.replies]),
            truncated=any(r.truncated for r in self.replies),
            refused=any(r.refused for r in self.replies),
            logprobs=None,
            latency_ms=_sum([r.latency_ms for r in self.replies]),
            cost_usd=_sum([r.cost_usd for r in self.replies]),
            work={**(last.work or {}), "turns": turns},
        )


def _plain(message: Message) -> dict[str, Any]:
    """Write a message down, with the tools that it calls or that it comes from."""
    calls = [{"name": c.name, "arguments": c.arguments} for c in message.tool_calls]
    named = {"name": message.name} if message.name else {}
    return {
        "role": message.role,
        "content": message.content,
        **named,
        **({"tool_calls": calls} if calls else {}),
    }


def _said(line: Mapping[str, Any], reply: Reply) -> str | None:
    """Decide what the user says next: what the script says, something else, or nothing."""
    if "say" not in line:
        return None
    if "if" not in line:
        return str(line["say"])
    row = {
        "response": reply.text,
        "reasoning": reply.reasoning,
        "tool_calls": [{"name": c.name, "arguments": c.arguments} for c in reply.tool_calls],
        "refused": reply.refused,
        "latency_ms": reply.latency_ms,
        "prompt_tokens": reply.usage.prompt_tokens,
        "completion_tokens": reply.usage.completion_tokens,
    }
    said = line["say"] if kept(line["if"]).verdict(Seen(row), {}).holds else line.get("else")
    return None if said is None else str(said)


def _added(several: Sequence[Usage]) -> Usage:
    names = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens")
    sums = {name: _sum([getattr(one, name) for one in several]) for name in names}
    return Usage(**sums)


def _sum(values: Sequence[Any]) -> Any:
    """Add up; what is not known of one part is not known of the whole."""
    return None if any(value is None for value in values) else sum(values)
