"""A model that is asked from a user's own code."""

import asyncio
from pathlib import Path

import pytest

import pennyweight


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    code = "def answer(request):\n    return f'{len(request.messages)} {request.text}'\n"
    (tmp_path / "asked_model.py").write_text(code, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return "python:asked_model:answer"


def test_a_text_or_a_list_of_messages_is_answered_with_a_dict(model: str) -> None:
    reply = asyncio.run(pennyweight.ask(model, "Hello", temperature=0))
    assert reply["text"] == "1 Hello"
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    assert asyncio.run(pennyweight.ask(model, turns))["text"] == "2 Hi"
