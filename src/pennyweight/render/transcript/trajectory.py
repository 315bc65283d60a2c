"""What an agent did, step by step: thoughts, texts, tool calls with their results, time and cost.

Steps come from logs of many tools, so every key may be missing or hold anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pennyweight.render.page import visible
from pennyweight.render.transcript.code import arguments, code_blocks
from pennyweight.render.transcript.folds import NOTHING, Folded, fitting, fold
from pennyweight.render.transcript.markdown import document, plain
from pennyweight.text.format import duration, money

TIME_KEYS = ("at", "started", "timestamp", "time")
"""Keys under which logs store when something happened."""
TOOK_KEYS = ("latency_ms", "duration_ms")
RESULT_KEYS = ("result", "output", "response")
"""Keys under which logs store the result of a tool."""
MAX_STEPS = 1_200
"""More steps are not listed."""
FEW, FIRST = 60, 24
"""Of more than a few steps a page can have the first ones, and fetch the others when asked for."""
MAX_BYTES = 56_000
"""The size of all steps on the page. Longer texts are cut and loaded when asked for."""
MIN_BYTES, MAX_STEP_BYTES = 60, 12_000
MIN_COLOURED = 400
"""The least size of a text that is worth its colours."""
ALONE_BYTES, MANY = 200_000, 16
"""The size of a step that is shown alone, or of several together; how many of them at most."""


@dataclass(frozen=True, slots=True)
class StepCall:
    """A call of a tool; what the log does not contain is empty."""

    name: str
    given: str
    """The arguments as a person reads them."""
    language: str
    result: str | None = None
    failed: bool = False
    time: str = ""


@dataclass(frozen=True, slots=True)
class TrajectoryStep:
    """One turn: what was thought and said, and the tools that were called."""

    number: int
    role: str
    text: str = ""
    thought: str = ""
    calls: tuple[StepCall, ...] = ()
    at: float | None = None
    """Seconds since the first step."""
    took: float | None = None
    """Seconds."""
    cost: float | None = None
    tokens: int | None = None
    failed: bool = False

    @property
    def title(self) -> str:
        """What the step is in a few words, for the list of steps."""
        first = self.calls[0] if self.calls else None
        words = f"{first.name} {gist(first.given)}" if first else self.text or self.thought
        more = f" +{len(self.calls) - 1}" if len(self.calls) > 1 else ""
        return " ".join(words[:200].split())[:60] + more

    @property
    def facts(self) -> str:
        """When it happened, how long it took and what it cost."""
        at = None if self.at is None else f"+{_passed(self.at)}"
        took = None if self.took is None else f"took {duration(self.took * 1000)}"
        cost = None if self.cost is None else money(self.cost)
        tokens = None if self.tokens is None else f"{self.tokens:,} tokens"
        return ", ".join(filter(None, (at, took, cost, tokens)))


_FIELD = re.compile(r"[\w-]{1,40}: (?:\|\n\s*)?")
_FOLDERS = re.compile(r"(?:/[^/\s]+)+(?=/[^/\s]+/[^/\s]+)")


def gist(given: str) -> str:
    r"""Return what distinguishes arguments: without the name of the first one and outer folders.

    >>> gist("file_path: /home/me/work/src/calc.py\nlimit: 5"), gist("pytest -q")
    ('src/calc.py limit: 5', 'pytest -q')
    """
    name = _FIELD.match(given)
    words = " ".join(given[name.end() if name else 0 :][:200].split())
    return _FOLDERS.sub("", words, count=1).removeprefix("/") if words.startswith("/") else words


def _passed(seconds: float) -> str:
    """Write how long after the first step something happened.

    >>> _passed(0.0), _passed(6.25), _passed(192.0)
    ('0 s', '6.25 s', '3 min 12 s')
    """
    return f"{seconds:.3g} s" if abs(seconds) < 60 else duration(seconds * 1000)


def trajectory(row: Mapping[str, Any]) -> list[TrajectoryStep]:
    """Read the steps of a record: its turns, or the tool calls that it lists."""
    work = read_json(row.get("work"))
    turns = _mappings(work.get("turns")) if isinstance(work, dict) else []
    if turns:
        steps = list(_steps(turns))
    else:
        sent = _mappings(read_json(row.get("messages")))
        results = {str(m["tool_call_id"]): m for m in sent if m.get("tool_call_id")}
        steps = [
            TrajectoryStep(0, "tool", calls=(_with_result(_call(one), one, results),),
                           at=_moment(one), took=_took(one), cost=_number(one.get("cost_usd")))
            for one in listed_calls(row)
        ]  # fmt: skip
    first = next((step.at for step in steps if step.at is not None), 0.0)
    return [
        replace(step, number=n, at=None if step.at is None else step.at - first)
        for n, step in enumerate(steps, 1)
    ]


def listed_calls(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the tool calls that a record lists, in their order."""
    work = read_json(row.get("work"))
    if isinstance(work, dict):
        work = next((work[n] for n in ("tool_calls", "calls", "trace") if work.get(n)), None)
    return [*_mappings(read_json(row.get("tool_calls"))), *_mappings(work)]


def _steps(turns: Sequence[Mapping[str, Any]]) -> Iterator[TrajectoryStep]:
    """Make a step of each turn; results of tools become part of the step that called them."""
    open_step: TrajectoryStep | None = None
    ids: list[str] = []
    for turn in turns:
        if turn.get("role") == "tool" and open_step:
            index = _answered(open_step, ids, turn)
            if index is not None:
                open_step = _answer(open_step, index, turn)
                continue
        if open_step:
            yield open_step
        open_step, ids = _step(turn), [str(c.get("id")) for c in _mappings(turn.get("tool_calls"))]
    if open_step:
        yield open_step


def _step(turn: Mapping[str, Any]) -> TrajectoryStep:
    role = str(turn.get("role") or "step")
    name = f" {turn['name']}" if role == "tool" and turn.get("name") else ""
    usage = turn.get("usage") if isinstance(turn.get("usage"), dict) else {}
    tokens = turn.get("tokens", (usage or {}).get("total_tokens"))
    return TrajectoryStep(
        0,
        role + name,
        as_text(turn.get("content")),
        as_text(turn.get("reasoning")),
        tuple(_call(one) for one in _mappings(turn.get("tool_calls"))),
        _moment(turn),
        _took(turn),
        _number(turn.get("cost_usd")),
        tokens if isinstance(tokens, int) and not isinstance(tokens, bool) else None,
        bool(turn.get("error")),
    )


def _answered(step: TrajectoryStep, ids: Sequence[str], turn: Mapping[str, Any]) -> int | None:
    """Find the call that a result belongs to: by its id, else the first one without a result."""
    place = str(turn.get("tool_call_id"))
    if turn.get("tool_call_id") and place in ids:
        index = ids.index(place)
        return index if step.calls[index].result is None else None
    return next((n for n, call in enumerate(step.calls) if call.result is None), None)


def _answer(step: TrajectoryStep, index: int, turn: Mapping[str, Any]) -> TrajectoryStep:
    took, at = _took(turn), _moment(turn)
    if took is None and at is not None and step.at is not None and at >= step.at:
        took = at - step.at
    done = replace(
        step.calls[index],
        result=as_text(turn.get("content")),
        failed=_failed(turn),
        time=step.calls[index].time or (duration(took * 1000) if took is not None else ""),
    )
    calls = (*step.calls[:index], done, *step.calls[index + 1 :])
    return replace(step, calls=calls, failed=step.failed or done.failed)


def _call(call: Mapping[str, Any]) -> StepCall:
    named = call.get("function") if isinstance(call.get("function"), dict) else call
    assert isinstance(named, Mapping)
    name = str(next((named[n] for n in ("name", "tool", "kind") if named.get(n)), "call"))
    given, language = arguments(named.get("arguments", named.get("input")) or "")
    result = next((call[n] for n in RESULT_KEYS if call.get(n) is not None), None)
    took = _took(call)
    shown = None if result is None else "[]" if result == [] else as_text(result)
    time = "" if took is None else duration(took * 1000)
    return StepCall(name, given, language, shown, _failed(call), time)


def _with_result(
    call: StepCall, given: Mapping[str, Any], results: Mapping[str, Mapping[str, Any]]
) -> StepCall:
    """Add the result that the conversation has for a call without one."""
    found = results.get(str(given.get("id")))
    if call.result is not None or found is None:
        return call
    return replace(call, result=as_text(found.get("content")), failed=_failed(found))


def _failed(one: Mapping[str, Any]) -> bool:
    return bool(one.get("error") or one.get("is_error"))


def _moment(one: Mapping[str, Any]) -> float | None:
    """Read a time: seconds, or ISO 8601."""
    for name in TIME_KEYS:
        value = one.get(name)
        if (number := _number(value)) is not None:
            return number / 1000 if number > 1e11 else number
        if isinstance(value, str):
            try:
                return datetime.fromisoformat(value).timestamp()
            except (ValueError, OverflowError, OSError):
                continue
    return None


def _took(one: Mapping[str, Any]) -> float | None:
    found = next((n for name in TOOK_KEYS if (n := _number(one.get(name))) is not None), None)
    return None if found is None else found / 1000


def _number(value: Any) -> float | None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15
    return float(value) if good else None


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def read_json(text: Any) -> Any:
    """Parse a JSON cell; None where it is not JSON."""
    try:
        return json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return None


def as_text(value: Any) -> str:
    """Return a value of a log as text; parts of a message are joined.

    >>> as_text([{"type": "text", "text": "Yes."}]), as_text([]), as_text([1])
    ('Yes.', '', '[1]')
    """
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and all(map(_is_part, value)):
        return "\n".join(str(part.get("text", f"[{part.get('type')}]")) for part in value)
    return json.dumps(value, ensure_ascii=False)


_PICTURES = ("image", "image_url", "input_image", "input_audio", "audio", "video", "file")


def _is_part(part: Any) -> bool:
    """Whether it is a part of a message: a text, or a picture or sound that is only named."""
    return isinstance(part, dict) and ("text" in part or part.get("type") in _PICTURES)


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A tool call as HTML."""

    call: StepCall
    given: Folded
    result: Folded | None


@dataclass(frozen=True, slots=True)
class ShownStep:
    """A step as HTML; `cut` if some of its texts are not complete, a `stub` if it has none."""

    step: TrajectoryStep
    text: Folded
    thought: Folded
    calls: tuple[ShownCall, ...]
    stub: bool = False

    @property
    def cut(self) -> bool:
        """Whether the page of the step shows more."""
        if self.stub:
            return True
        parts = [self.text, self.thought, *(c.given for c in self.calls)]
        return any(p.cut for p in (*parts, *(c.result for c in self.calls if c.result)))


def shown_steps(
    steps: Sequence[TrajectoryStep], most: int = MAX_BYTES, *, fetched: bool = False
) -> list[ShownStep]:
    """Return steps as HTML. The more there are, the less of each is shown.

    Where they can be `fetched`, all but the first of many are stubs.
    """
    listed = steps[:MAX_STEPS]
    whole = listed[:FIRST] if fetched and len(listed) > FEW else listed
    each = min(MAX_STEP_BYTES, max(MIN_BYTES, most // max(1, len(whole))))
    nothing = Folded(NOTHING)
    stubs = (ShownStep(step, nothing, nothing, (), True) for step in listed[len(whole) :])
    return [*(shown_step(step, each) for step in whole), *stubs]


def some_steps(steps: Sequence[TrajectoryStep], first: int, last: int) -> list[ShownStep]:
    """Return steps from one number to another as HTML, at most `MANY`; one alone is longer."""
    chosen = steps[first - 1 : min(last, first + MANY - 1)]
    each = ALONE_BYTES // max(1, len(chosen))
    return [shown_step(s, each if len(chosen) == 1 else min(each, MAX_STEP_BYTES)) for s in chosen]


def shown_step(step: TrajectoryStep, most: int = ALONE_BYTES) -> ShownStep:
    """Return a step as HTML of about so many bytes."""
    texts = [step.text, step.thought]
    texts += [text for call in step.calls for text in (call.given, call.result or "")]
    each = _fair([len(text) for text in texts], most)
    return ShownStep(
        step,
        _written(step.text, each),
        _written(step.thought, each),
        tuple(
            ShownCall(call, _listing(call.given, call.language, each),
                      None if call.result is None else _listing(call.result, "", each))
            for call in step.calls
        ),
    )  # fmt: skip


def _fair(lengths: Sequence[int], most: int) -> int:
    """Return how long texts may be to share the room; the short ones leave theirs to the long.

    >>> _fair([10, 50, 300, 400], 260), _fair([10, 20], 260)
    (100, 20)
    """
    each, left = 0, most
    for rest, length in zip(range(len(lengths), 0, -1), sorted(lengths), strict=True):
        each = min(length, max(left, 0) // rest)
        left -= each
    return each


_PLAIN = re.compile(r"[\w ,.:;?!'\"()/%-]*")
"""A line that Markdown would not change."""


def _cut(text: str, most: int) -> str:
    return f"{text[:most]}…" if len(text) > most else text


def _written(text: str, most: int) -> Folded:
    """Return a text as Markdown; of a long one, only the beginning."""
    if not text:
        return Folded(NOTHING)
    part = [(_cut(text, most), "")]
    shown = plain(part) if _PLAIN.fullmatch(part[0][0]) else document(part, 2 * most)
    return replace(shown, cut=shown.cut or len(text) > most)


def _listing(text: str, language: str, most: int) -> Folded:
    """Return what a tool was given or gave, with a fixed-width face."""
    if text.startswith(("diff --git ", "--- a/")):
        language = "diff"
    shown, coloured = visible(_cut(text, most)), most >= MIN_COLOURED
    blocks, more = fitting(
        code_blocks(shown, language if coloured else ""), 4 * most if coloured else 2 * most
    )
    return fold(blocks, cut=more or len(text) > most, head=10, tail=4)
