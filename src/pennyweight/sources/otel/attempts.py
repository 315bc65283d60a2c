"""The attempts of a trace: each tree of spans with a call to a model, or an agent, is one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pennyweight.errors import UsageError, unknown
from pennyweight.sources.log_values import check, count, first, number, verdict
from pennyweight.sources.otel.messages import Exchange, Turn, as_text, exchange, parsed
from pennyweight.sources.otel.spans import Span, SpanEvent

Row = dict[str, Any]

EVALUATION = "gen_ai.evaluation.result"
RESPONSE_ID = "gen_ai.response.id"
_OPERATION = "gen_ai.operation.name"
_CALLS = {"chat", "generate_content", "text_completion", "completion"}
_AGENTS = {"invoke_agent", "invoke_workflow"}
_CUT = {"length", "max_tokens", "MAX_TOKENS"}
_PASSED = {"pass", "passed", "true", "yes", "correct", "success"}
_FAILED = {"fail", "failed", "false", "no", "incorrect", "failure"}
_SECRET = re.compile(r"key|secret|token|password|authori[sz]ation|headers?|cookie", re.IGNORECASE)
_LONGEST = 200
_TOKENS = {
    "prompt_tokens": (
        *("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        *("llm.token_count.prompt", "llm.usage.prompt_tokens"),
    ),
    "completion_tokens": (
        *("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
        *("llm.token_count.completion", "llm.usage.completion_tokens"),
    ),
    "cached_tokens": (
        *("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"),
        "llm.token_count.prompt_details.cache_read",
    ),
    "cache_write_tokens": (
        *("gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens"),
        "llm.token_count.prompt_details.cache_write",
    ),
    "reasoning_tokens": (
        *("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens"),
        "llm.token_count.completion_details.reasoning",
    ),
}
_COST = ("gen_ai.usage.cost", "llm.cost.total", "operation.cost")
_MODEL = ("gen_ai.response.model", "llm.model_name", "gen_ai.request.model")
_AGENT = ("gen_ai.agent.name", "agent.name", "gen_ai.workflow.name")
_TASK = ("gen_ai.conversation.id", "session.id", "traceloop.association.properties.session_id")


@dataclass(slots=True)
class Trace:
    """The spans and log events of one trace, as they come."""

    spans: dict[str, Span] = field(default_factory=dict)
    events: list[SpanEvent] = field(default_factory=list)
    size: int = 0
    """How many were added; a span that was exported twice counts twice."""

    def add(self, one: Span | SpanEvent) -> None:
        """Add a span or an event."""
        self.size += 1
        if isinstance(one, Span):
            self.spans[one.id] = one
        else:
            self.events.append(one)


@dataclass(frozen=True, slots=True)
class Tree:
    """The spans of one attempt: the agent or what else is at its head, and all below it."""

    root: Span
    head: Span
    spans: tuple[Span, ...]
    events: Mapping[str, Sequence[SpanEvent]]
    """The log events of each span."""
    results: tuple[SpanEvent, ...]
    """The results of evaluations."""

    @property
    def calls(self) -> list[Span]:
        """The calls to models in their order; one that only wraps another is left out."""
        calls = [one for one in self.spans if is_call(one)]
        wrapped = {one.parent for one in calls}
        found = [one for one in calls if one.id not in wrapped]
        return sorted(found, key=lambda one: one.start or 0)


def is_call(span: Span) -> bool:
    """Whether a span is a call to a model."""
    return (
        span.attributes.get(_OPERATION) in _CALLS
        or span.attributes.get("llm.request.type") in _CALLS
        or span.attributes.get("openinference.span.kind") == "LLM"
    )


def is_agent(span: Span) -> bool:
    """Whether a span is a run of an agent."""
    return (
        span.attributes.get(_OPERATION) in _AGENTS
        or span.attributes.get("openinference.span.kind") == "AGENT"
        or span.attributes.get("traceloop.span.kind") in {"agent", "workflow"}
    )


def is_tool(span: Span) -> bool:
    """Whether a span is a call of a tool."""
    return (
        span.attributes.get(_OPERATION) == "execute_tool"
        or span.attributes.get("openinference.span.kind") == "TOOL"
        or span.attributes.get("traceloop.span.kind") == "tool"
    )


def trees(trace: Trace, late: Mapping[str, Sequence[SpanEvent]]) -> Iterator[Tree]:
    """Yield the attempts of a trace.

    `late` are results of evaluations that name a response in place of a span.
    """
    spans = trace.spans or _made_up(trace.events)
    below: dict[str, list[Span]] = {}
    roots = []
    for one in spans.values():
        if one.parent in spans and one.parent != one.id:
            below.setdefault(one.parent, []).append(one)
        else:
            roots.append(one)
    found = [(root, all_of) for root in roots for all_of in _split(root, below)]
    chosen = [(root, s) for root, s in found if any(is_call(o) or is_agent(o) for o in s)]
    for root, mine in chosen:
        ids = {one.id for one in mine}
        replies = {one.get(RESPONSE_ID) for one in mine} - {None}
        events: dict[str, list[SpanEvent]] = {}
        results = [e for one in mine for e in one.events if e.name == EVALUATION]
        for event in trace.events:
            if event.name != EVALUATION:
                events.setdefault(event.span, []).append(event)
            elif _belongs(event, ids, spans, replies, alone=len(chosen) == 1):
                results.append(event)
        results += [event for reply in sorted(replies) for event in late.get(reply, ())]
        head = next((one for one in mine if is_agent(one)), mine[0])
        yield Tree(root, head, tuple(mine), events, tuple(results))


def _belongs(
    event: SpanEvent, ids: set[str], spans: Mapping[str, Span], replies: set[Any], *, alone: bool
) -> bool:
    if event.span in spans:
        return event.span in ids
    reply = event.attributes.get(RESPONSE_ID)
    return reply in replies if reply is not None else alone


def _split(root: Span, below: Mapping[str, list[Span]]) -> Iterator[list[Span]]:
    """Yield the spans of a tree, from the root on.

    Agents below one root that have each a conversation of their own are each a tree.
    """
    agents = list(_top_agents(root, below))
    conversations = {one.get(*_TASK) for one in agents}
    several = len(agents) > 1 and len(conversations) == len(agents) and None not in conversations
    for head in agents if several else [root]:
        found = [head]
        for one in found:
            found += below.get(one.id, ())
        yield found


def _top_agents(root: Span, below: Mapping[str, list[Span]]) -> Iterator[Span]:
    waiting = [root]
    for one in waiting:
        if is_agent(one):
            yield one
        else:
            waiting += below.get(one.id, ())


def _made_up(events: Iterable[SpanEvent]) -> dict[str, Span]:
    """Return spans that only log events tell of: they have the attributes of a call."""
    return {
        e.span: Span(e.trace, e.span, "", e.name, None, None, e.attributes)
        for e in events
        if e.span and e.attributes.get(_OPERATION) in _CALLS
    }


def row_of(tree: Tree, scorer: str | None, wanted: frozenset[str] | None) -> Row:
    """Return the record of one attempt."""
    head, calls = tree.head, tree.calls
    chatty = _wants(wanted, "messages", "tool_calls")
    opens = calls[:1] if _wants(wanted, "input") and len(calls) > 1 else []
    asked = calls if chatty else [*opens, *calls[-1:]]
    said = [exchange(one, tree.events.get(one.id, ())) for one in asked]
    whole = exchange(head, tree.events.get(head.id, ())) if head not in calls else Exchange()
    opening, closing = (said[0], said[-1]) if said else (whole, whole)
    model = first(one.get(*_MODEL) for one in [*reversed(calls), head])
    row: Row = {
        "subject": first((_agent_name(head), model, head.service)),
        "model": model,
        "service": head.service,
        "task_id": str(first(one.get(*_TASK) for one in tree.spans) or head.trace),
        "trace_id": head.trace,
        "input": whole.question or opening.question or _plain(head, "input"),
        "response": whole.reply or closing.reply or _plain(head, "output"),
        "reasoning": closing.reasoning,
        "finish": closing.finish,
        "truncated": closing.finish in _CUT if closing.finish else None,
        **_usage(calls, head),
        **_times(head),
        **_status(tree, calls),
        **_verdict(tree.results, scorer, wanted),
    }
    if chatty:
        in_order = sorted(tree.spans, key=lambda s: s.start or 0)
        tools = [_tool(one) for one in in_order if is_tool(one)]
        chat = conversation(said or [whole])
        named = [c for one in chat for c in one.get("tool_calls", ())]
        row |= {"messages": chat or None, "tool_calls": tools or named or None}
    for name, value in tree.head.attributes.items():
        if _kept(name, value, wanted) and name not in row:
            row[name] = value
    return row


def _agent_name(head: Span) -> Any:
    named = head.get(*_AGENT)
    return named if named is not None or not is_agent(head) else head.get("traceloop.entity.name")


def _wants(wanted: frozenset[str] | None, *columns: str) -> bool:
    return wanted is None or any(column in wanted for column in columns)


def _kept(name: str, value: Any, wanted: frozenset[str] | None) -> bool:
    """Whether an attribute of the head becomes a column: if asked for, or short and no secret."""
    if wanted is not None:
        return name in wanted
    short = isinstance(value, bool | int | float) or (
        isinstance(value, str) and len(value) <= _LONGEST
    )
    return short and not _SECRET.search(name)


def _plain(span: Span, way: str) -> str | None:
    """Return the input or the output of a span that has no messages."""
    value = span.get(f"{way}.value", f"traceloop.entity.{way}", f"gen_ai.{way}")
    return as_text(value)


def _usage(calls: Sequence[Span], head: Span) -> Row:
    """Return the sums over all calls; the head's own where no call has any."""
    made: Row = {}
    for column, names in _TOKENS.items():
        counts = [count(one.get(*names)) for one in calls]
        known = [one for one in counts if one is not None]
        made[column] = sum(known) if known else count(head.get(*names))
    costs = [cost for one in calls if (cost := number(one.get(*_COST))) is not None]
    made["cost_usd"] = sum(costs) if costs else number(head.get(*_COST))
    return made


def _times(head: Span) -> Row:
    start, end = head.start, head.end
    took = end - start if start is not None and end is not None and end >= start else None
    return {
        "latency_ms": None if took is None else took / 1e6,
        "duration_seconds": None if took is None else took / 1e9,
        "start_time": _iso(start),
        "end_time": _iso(end),
    }


def _iso(nanoseconds: int | None) -> str | None:
    if nanoseconds is None:
        return None
    try:
        return datetime.fromtimestamp(nanoseconds / 1e9, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return None


def _status(tree: Tree, calls: Sequence[Span]) -> Row:
    """Return the status: an error if the last call, the agent or the root ended with one."""
    for one in (*calls[-1:], tree.head, tree.root):
        if one.error is not None:
            kind = one.get("error.type") or tree.head.get("error.type")
            return {"status": "error", "error": one.error, "error_kind": kind}
    return {"status": "ok"}


def _verdict(
    results: Sequence[SpanEvent], scorer: str | None, wanted: frozenset[str] | None
) -> Row:
    """Return the verdict of the first evaluation, or of the chosen one, and all scores."""
    named = {str(e.attributes.get("gen_ai.evaluation.name") or e.name): e for e in results}
    if not named:
        return {}
    if scorer is not None and scorer not in named:
        hint = f"The log has {', '.join(named)}."
        raise UsageError(f"--scorer: {unknown('Evaluation', scorer, set(named), hint)}")
    chosen = scorer or next(iter(named))
    value, holds = _result(named[chosen])
    row: Row = verdict(value, holds)
    if "passed" not in row:
        row["undecided"] = [chosen]
    if _wants(wanted, "scores"):
        row["scores"] = {name: first(_score(e)) for name, e in named.items()}
    if _wants(wanted, "checks"):
        why = "gen_ai.evaluation.explanation"
        row["checks"] = [
            check(name, verdict(*_result(e)).get("passed"), e.attributes.get(why), _result(e)[0])
            for name, e in named.items()
        ]
    return row


def _score(event: SpanEvent) -> tuple[Any, Any]:
    score = "gen_ai.evaluation.score"
    return event.attributes.get(f"{score}.value"), event.attributes.get(f"{score}.label")


def _result(event: SpanEvent) -> tuple[Any, bool | None]:
    value, label = _score(event)
    word = str(label).strip().lower()
    return value, True if word in _PASSED else False if word in _FAILED else None


def _tool(span: Span) -> Row:
    arguments = span.get(
        *("gen_ai.tool.call.arguments", "tool.parameters"),
        *("input.value", "traceloop.entity.input"),
    )
    result = span.get("gen_ai.tool.call.result", "output.value", "traceloop.entity.output")
    name = span.get("gen_ai.tool.name", "tool.name", "traceloop.entity.name") or span.name
    made = {"name": str(name), "arguments": parsed(arguments), "result": result}
    made |= {"error": span.error, "id": span.get("gen_ai.tool.call.id")}
    return {key: value for key, value in made.items() if value is not None}


def conversation(said: Iterable[Exchange]) -> list[Turn]:
    """Return the messages of several calls in their order, each once.

    A call repeats what was said before it; only what is new in it is added.
    """
    made: list[Turn] = []
    known: Counter[str] = Counter()
    for one in said:
        here: Counter[str] = Counter()
        for turn in (*one.asked, *one.said):
            calls = [call["name"] for call in turn.get("tool_calls", ())]
            key = repr((turn["role"], turn["content"], turn.get("tool_call_id"), calls))
            here[key] += 1
            if here[key] > known[key]:
                known[key] += 1
                made.append(turn)
    return made
