"""Conversations with a scripted user: several calls of a model that make one attempt.

The later lines of the script follow the first question as messages with their own role, so that a
changed script is a changed attempt. They are never sent in that form.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from pennyweight.checks.attempt import AttemptView
from pennyweight.checks.behaviour import stored_behaviour
from pennyweight.engine.budget import ceiling
from pennyweight.models.failure import CallError
from pennyweight.models.model import Message, Model, Reply, Request, ToolCall, Usage
from pennyweight.suite.plan import ROUNDS
from pennyweight.suite.scenarios import LATER

NO_TOOL = "This tool gives no result."
MAX_TOOL_CALLS = 128
"""Tool calls that are answered in one reply."""

_COUNTS = tuple(one.name for one in fields(Usage))


class Conversation(Model):
    """One conversation of a model with a scripted user.

    To the engine it is a model that is called once. After a failed call, the next try repeats that
    call: earlier answers are neither requested nor paid for again.

    `room` is the maximum number of tokens sent in one call, `output` the maximum number returned. A
    model that keeps calling tools could otherwise exceed what is reserved for it.
    """

    def __init__(
        self,
        model: Model,
        request: Request,
        paid: Callable[[Reply], None] = lambda _: None,
        room: int | None = None,
        output: int = 0,
    ) -> None:
        self.name, self.account = model.name, model.account
        self._room, self._output = room, output
        self.ended = False
        self._model, self._paid = model, paid
        self._request = replace(
            request, messages=tuple(m for m in request.messages if m.role != LATER)
        )
        self._replies: list[Reply] = []
        self._turns: list[Message] = [self._request.messages[-1]]
        script = [json.loads(m.content) for m in request.messages if m.role == LATER]
        self._steps = self._play(script)
        self._is_asked = False

    async def call(self, _: Request | None = None) -> Reply:
        """Let the model answer until the script ends; pass each reply to `paid`."""
        while self._is_asked or next(self._steps, None):
            self._fit()
            self._is_asked = True
            reply = await self._model.call(self._request)
            self._is_asked = False
            self._replies.append(reply)
            self._paid(reply)
        self.ended = True
        return self._whole()

    def _play(self, script: Sequence[Mapping[str, Any]]) -> Iterator[bool]:
        """Play the script, up to each call of the model."""
        results = next((line["results"] for line in script if "results" in line), None)
        yield from self._rounds(results)
        for line in script:
            text = _next_text(line, self._replies[-1])
            if text is not None:
                self._add(Message("user", text))
                yield from self._rounds(results)

    def _rounds(self, results: Mapping[str, str] | None) -> Iterator[bool]:
        """Continue while the model calls tools, which return the results of the script."""
        for _ in range(ROUNDS):
            yield True
            reply = self._replies[-1]
            calls, known = reply.tool_calls, results or {}
            if len(calls) > MAX_TOOL_CALLS:
                text = f"The model called {len(calls):,} tools at once, over {MAX_TOOL_CALLS}."
                raise CallError("too_large", text, sent=False)
            self._add(
                Message("assistant", reply.text, calls),
                *(
                    Message("tool", known.get(c.name, NO_TOOL), tool_call_id=c.id, name=c.name)
                    for c in calls
                ),
            )
            if not calls or results is None:
                return

    def _add(self, *messages: Message) -> None:
        """Add to the conversation."""
        self._turns += messages
        self._request = replace(self._request, messages=(*self._request.messages, *messages))

    def _fit(self) -> None:
        """Refuse a call that could use more than was reserved for it."""
        if self._room is None:
            return
        sent = [{"content": m.content} for m in self._request.messages if m.role != "assistant"]
        outputs = (r.usage.completion_tokens for r in self._replies)
        need = ceiling(sent) + sum(self._output if n is None else n for n in outputs)
        if need > self._room:
            text = (
                f"The conversation has grown to about {need:,} tokens, but only {self._room:,} are "
                "reserved for one of its calls. The model keeps calling tools, or their results "
                "are long: shorten tool_results, or remove limits.usd and limits.tokens."
            )
            raise CallError("too_large", text, sent=False)

    def _whole(self) -> Reply:
        """Join the replies: their texts, tool calls and usage."""
        last = self._replies[-1]
        texts = [r.text for r in self._replies if r.text.strip()]
        thoughts = [r.reasoning for r in self._replies if r.reasoning]
        turns = [_plain(message) for message in self._turns]
        return replace(
            last,
            text="\n\n".join(texts),
            reasoning="\n\n".join(thoughts) or None,
            tool_calls=tuple(call for r in self._replies for call in r.tool_calls),
            usage=Usage(
                *(
                    sum_known([getattr(r.usage, f.name) for r in self._replies])
                    for f in fields(Usage)
                )
            ),
            truncated=any(r.truncated for r in self._replies),
            refused=any(r.refused for r in self._replies),
            logprobs=None,
            latency_ms=sum_known([r.latency_ms for r in self._replies]),
            ttft_ms=self._replies[0].ttft_ms,
            lane="batch" if all(r.lane == "batch" for r in self._replies) else "live",
            cost_usd=sum_known([r.cost_usd for r in self._replies]),
            work={**(last.work or {}), "turns": turns},
        )


def _plain(message: Message) -> dict[str, Any]:
    """Return a message as plain data, with the tools that it calls or that it comes from."""
    optional = {"name": message.name, "tool_calls": _calls(message.tool_calls)}
    return {
        "role": message.role,
        "content": message.content,
        **{name: value for name, value in optional.items() if value},
    }


def _calls(calls: Sequence[ToolCall]) -> list[dict[str, str]]:
    return [{"name": c.name, "arguments": c.arguments} for c in calls]


def _next_text(line: Mapping[str, Any], reply: Reply) -> str | None:
    """Return the user's next message; None if the script skips it."""
    if "say" not in line:
        return None
    if "if" not in line:
        return str(line["say"])
    row = {
        "response": reply.text,
        "reasoning": reply.reasoning,
        "tool_calls": _calls(reply.tool_calls),
        "refused": reply.refused,
        "latency_ms": reply.latency_ms,
        "prompt_tokens": reply.usage.prompt_tokens,
        "completion_tokens": reply.usage.completion_tokens,
    }
    holds = stored_behaviour(line["if"]).verdict(AttemptView(row), {}).holds
    text = line["say"] if holds else line.get("else")
    return None if text is None else str(text)


def sum_known(values: Sequence[Any]) -> Any:
    """Add values; None if one of them is not known."""
    return None if any(value is None for value in values) else sum(values)
