"""A function as a model."""

import asyncio
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest

from assay.errors import UsageError
from assay.models.failure import CallError
from assay.models.model import Reply, Request
from assay.models.providers import find
from models.saved import ask


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


@pytest.mark.parametrize("function", [lambda text: 4, lambda text: 1 / 0, lambda text: {"txt": ""}])
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


def test_a_function_that_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="takes nothing"):
        answer(monkeypatch, lambda: "4")
