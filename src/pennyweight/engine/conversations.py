"""A scripted user: several calls of a model that make one attempt.

The later lines of the script stand behind the first question, as messages of their own role, so
that a changed script is a changed attempt. They never reach the model as they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pennyweight.checks.attempt import AttemptView
from pennyweight.checks.behaviour import stored_behaviour
from pennyweight.engine.budget import ceiling
from pennyweight.models.failure import CallError
from pennyweight.models.model import Message, Model, Reply, Request, Usage
from pennyweight.suite.plan import ROUNDS
from pennyweight.suite.scenarios import LATER

NO_TOOL = "This tool gives no result."
MOST_TOOLS = 128
"""So many calls of tools in one reply are answered; nobody who means them makes more."""


class Talk(Model):
    """One conversation of a model with a user who goes on by a script.

    To the engine it is a model that is called once. When a call of it fails, the next try goes on
    with that call: what was answered before is not asked, or paid for, again.

    `room` is how many tokens may be sent in one call of it, `output` how many may come out. A model
    that calls tools again and again gets their results each time: the budget did not reckon with
    so many.
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
        """Let the model answer until the script ends; `paid` is told each of its replies."""
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
        """Go through the script, up to each call of the model."""
        results = next((line["results"] for line in script if "results" in line), None)
        yield from self._rounds(results)
        for line in script:
            said = _said(line, self._replies[-1])
            if said is not None:
                self._hear(Message("user", said))
                yield from self._rounds(results)

    def _rounds(self, results: Mapping[str, str] | None) -> Iterator[bool]:
        """Go on while the model calls tools; they give the results of the script."""
        for _ in range(ROUNDS):
            yield True
            reply = self._replies[-1]
            asked, given = reply.tool_calls, results or {}
            if len(asked) > MOST_TOOLS:
                text = f"The model called {len(asked):,} tools at once; {MOST_TOOLS} are answered."
                raise CallError("too_large", text, sent=False)
            self._hear(
                Message("assistant", reply.text, asked),
                *(
                    Message("tool", given.get(c.name, NO_TOOL), tool_call_id=c.id, name=c.name)
                    for c in asked
                ),
            )
            if not asked or results is None:
                return

    def _hear(self, *messages: Message) -> None:
        """Add to the conversation."""
        self._turns += messages
        self._request = replace(self._request, messages=(*self._request.messages, *messages))

    def _fit(self) -> None:
        """Refuse a call that could take more than was set aside for it."""
        if self._room is None:
            return
        said = [{"content": m.content} for m in self._request.messages if m.role != "assistant"]
        taken = (r.usage.completion_tokens for r in self._replies)
        need = ceiling(said) + sum(self._output if one is None else one for one in taken)
        if need > self._room:
            text = (
                f"The conversation has grown to about {need:,} tokens; {self._room:,} were set "
                "aside for a call of it, since there are limits. The model calls its tools again "
                "and again, or they say much: shorten tool_results, or lift limits.usd and "
                "limits.tokens."
            )
            raise CallError("too_large", text, sent=False)

    def _whole(self) -> Reply:
        """Join the replies: all that was said, every tool, all that it took."""
        last = self._replies[-1]
        texts = [r.text for r in self._replies if r.text.strip()]
        thoughts = [r.reasoning for r in self._replies if r.reasoning]
        turns = [_plain(message) for message in self._turns]
        return replace(
            last,
            text="\n\n".join(texts),
            reasoning="\n\n".join(thoughts) or None,
            tool_calls=tuple(call for r in self._replies for call in r.tool_calls),
            usage=_added([r.usage for r in self._replies]),
            truncated=any(r.truncated for r in self._replies),
            refused=any(r.refused for r in self._replies),
            logprobs=None,
            latency_ms=_sum([r.latency_ms for r in self._replies]),
            cost_usd=_sum([r.cost_usd for r in self._replies]),
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
    said = (
        line["say"]
        if stored_behaviour(line["if"]).verdict(AttemptView(row), {}).holds
        else line.get("else")
    )
    return None if said is None else str(said)


def _added(several: Sequence[Usage]) -> Usage:
    names = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens")
    sums = {name: _sum([getattr(one, name) for one in several]) for name in names}
    return Usage(**sums)


def _sum(values: Sequence[Any]) -> Any:
    """Add up; what is not known of one part is not known of the whole."""
    return None if any(value is None for value in values) else sum(values)
