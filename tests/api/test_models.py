"""The models that can be called."""

import asyncio
from pathlib import Path

import pytest

import pennyweight
from engine.serving import calls, server
from models.hostile import hang, serve
from pennyweight.api.models import available, provider_keys
from pennyweight.models.failure import CallError


def test_local_models_have_a_name_and_a_size() -> None:
    models = available()
    assert "smollm2-135m" in {model.name for model in models}
    assert all(model.size > 0 and model.about for model in models)


def test_providers_say_whether_their_key_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    keys = {provider.name: provider for provider in provider_keys()}
    assert keys["openai"].key_is_set
    assert not keys["anthropic"].key_is_set
    assert "sk-0123" not in repr(keys)


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


def test_a_server_is_asked_from_one_event_loop_after_another() -> None:
    with server() as address:
        where = f"{address}/v1"
        texts = {
            asyncio.run(pennyweight.ask("openai/m", "2 + 2?", base_url=where))["text"]
            for _ in range(3)
        }
        assert len(texts) == 1
        assert calls(address) == 3


def test_a_server_that_does_not_answer_is_given_up() -> None:
    async def wait() -> None:
        async with serve(hang) as (address, _):
            await pennyweight.ask("openai/m", "Hello", base_url=address, timeout=0.2)

    with pytest.raises(CallError, match=r"within 0\.2 s"):
        asyncio.run(wait())
