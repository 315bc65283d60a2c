"""A function as a model."""

import asyncio
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from models.saved import ask
from pennyweight.errors import UsageError
from pennyweight.models.failure import CallError
from pennyweight.models.model import Model, Reply, Request
from pennyweight.models.providers import find


def answer(monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any]) -> Reply:
    module = types.ModuleType("their_agent")
    module.f = function  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "their_agent", module)
    return asyncio.run(find("python:their_agent:f").call(ask("hi", attempt=2)))


async def _async(text: str) -> str:
    return text.upper()


def _request(request: Request) -> str:
    return f"{request.text} {request.attempt}"


def _annotated(what: Request) -> Reply:
    return Reply(what.text, latency_ms=7.0)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda text: text * 2, "hihi"),
        (_async, "HI"),
        (_request, "hi 2"),
        (_annotated, "hi"),
        (lambda text: {"text": "4", "reasoning": "r", "usage": {"prompt_tokens": 3}}, "4"),
    ],
)
def test_what_it_may_return(
    monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any], expected: str
) -> None:
    reply = answer(monkeypatch, function)
    assert reply.text == expected
    assert reply.latency_ms is not None


def test_a_recorded_latency_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    assert answer(monkeypatch, _annotated).latency_ms == 7.0


def _stop(text: str) -> str:
    raise StopIteration


def _cancel(text: str) -> str:
    raise asyncio.CancelledError


def _exit(text: str) -> str:
    sys.exit(3)


async def _exit_async(text: str) -> str:
    sys.exit(3)


@pytest.mark.parametrize(
    "function",
    [
        lambda text: 4,
        lambda text: 1 / 0,
        lambda text: {"txt": ""},
        lambda text: {"text": "4", "usage": {"prompt_tokens": "12"}},
        lambda text: {"text": "4", "usage": {"prompt_tokens": 10**30}},
        lambda text: {"text": "4", "latency_ms": "fast"},
        lambda text: {"text": "4", "model": 5},
        lambda text: Reply("4", model=5),  # type: ignore[arg-type]
        lambda text: Reply(4),  # type: ignore[arg-type]
        _stop,
        _cancel,
        _exit,
        _exit_async,
    ],
)
def test_what_goes_wrong_is_an_error(
    monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any]
) -> None:
    with pytest.raises(CallError) as caught:
        answer(monkeypatch, function)
    assert (caught.value.kind, caught.value.retryable) == ("function", False)


def test_its_keys_stay_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_API_KEY", "sk-0123456789abcdef")

    def leak(text: str) -> str:
        raise RuntimeError("wrong key sk-0123456789abcdef")

    with pytest.raises(CallError) as caught:
        answer(monkeypatch, leak)
    assert "sk-0123" not in str(caught.value)


def test_its_keys_stay_hidden_in_what_it_passes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_API_KEY", "sk-0123456789abcdef")
    reply = answer(monkeypatch, lambda text: {"text": "sk-0123456789abcdef", "reasoning": "why"})
    assert (reply.text, reply.reasoning) == ("[key]", "why")


def test_its_keys_stay_hidden_in_every_field(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-0123456789abcdef"
    monkeypatch.setenv("THEIR_API_KEY", key)
    given = {
        "text": key,
        "model": f"m?{key}",
        "finish": key,
        "tool_calls": [{"id": key, "name": key, "arguments": f'{{"k": "{key}"}}'}],
        "logprobs": [(key, -1.0)],
        "work": {"output": {key: [key]}},
    }
    for value in (given, Reply.of(given)):
        reply = answer(monkeypatch, lambda text, value=value: value)
        assert "sk-0123" not in repr(reply)
        assert reply.model == "m?[key]"
        assert reply.work == {"output": {"[key]": ["[key]"]}}

    def leak(text: str) -> str:
        raise CallError("server", f"It failed with {key}.")

    with pytest.raises(CallError, match=r"It failed with \[key\]\."):
        answer(monkeypatch, leak)


def held(monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any], timeout: float) -> Model:
    module = types.ModuleType("their_agent")
    module.f = function  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "their_agent", module)
    return find("python:their_agent:f", timeout=timeout)


def test_a_function_that_hangs_is_given_up_and_not_called_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    let_go = threading.Event()
    try:
        model = held(monkeypatch, lambda text: str(let_go.wait(60)), 0.05)
        with pytest.raises(CallError, match=r"no answer within 0\.05 s") as caught:
            asyncio.run(model.call(ask("hi")))  # ends though the thread does not
    finally:
        let_go.set()
    assert (caught.value.kind, caught.value.retryable) == ("timeout", False)


def test_an_async_function_that_hangs_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[str] = []

    async def hang(text: str) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            stopped.append(text)
            raise
        return text

    with pytest.raises(CallError) as caught:
        asyncio.run(held(monkeypatch, hang, 0.05).call(ask("hi")))
    assert (caught.value.kind, caught.value.retryable) == ("timeout", True)
    assert stopped == ["hi"]


def test_an_error_of_time_of_its_own_is_no_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    async def late(text: str) -> str:
        raise TimeoutError("the database")

    with pytest.raises(CallError, match="the database") as caught:
        asyncio.run(held(monkeypatch, late, 60).call(ask("hi")))
    assert caught.value.kind == "function"


def test_as_many_run_at_once_as_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(100)
    model = held(monkeypatch, lambda text: str(together.wait(30) >= 0), 60)

    async def main() -> list[Reply]:
        replies = await asyncio.gather(*(model.call(ask("hi")) for _ in range(100)))
        await model.close()
        return replies

    assert {reply.text for reply in asyncio.run(main())} == {"True"}


def test_the_latency_is_the_functions_own(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr("pennyweight.models.threads.perf_counter", lambda: next(clock))
    reply = asyncio.run(held(monkeypatch, lambda text: [next(clock), text][1], 60).call(ask("hi")))
    assert reply.latency_ms == 2000.0


def test_a_function_that_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="must take the prompt"):
        answer(monkeypatch, lambda: "4")


BROKEN = """import json

def helper(text):
    return json.loads("{" + text)

def plain(text):
    return helper(text)

async def later(text):
    return helper(text)

def s3cret_0123456789(text):
    raise ValueError("why")
"""


@pytest.mark.parametrize("name", ["plain", "later"])
def test_a_failure_has_the_last_place_in_the_users_own_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "broken_agent.py").write_text(BROKEN)
    model = find(f"python:broken_agent:{name}", folder=tmp_path)
    with pytest.raises(CallError) as caught:
        asyncio.run(model.call(ask("hi")))
    said = str(caught.value)
    assert said.startswith(f"python:broken_agent:{name} failed with JSONDecodeError: ")
    assert said.endswith(" (broken_agent.py, line 4, in helper)")


def test_the_place_of_a_failure_hides_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_API_KEY", "s3cret_0123456789")
    (tmp_path / "hidden_agent.py").write_text(f"{BROKEN}\nf = s3cret_0123456789\n")
    with pytest.raises(CallError, match=r"line 13, in \[key\]\)"):
        asyncio.run(find("python:hidden_agent:f", folder=tmp_path).call(ask("hi")))


def test_a_failure_outside_the_users_files_has_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CallError, match=r"returns a text, dict or Reply, not 4\.$"):
        answer(monkeypatch, lambda text: 4)
