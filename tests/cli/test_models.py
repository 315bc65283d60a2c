"""`pennyweight models`."""

import pytest

from cli.command import pennyweight, refused


def test_it_lists_models_and_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    said = pennyweight("models", "list")
    assert said.code == 0
    assert "local/smollm2-135m" in said.out
    assert "OPENAI_API_KEY is set" in said.out
    assert "sk-0123" not in said.out + said.err


def test_nothing_is_fetched_for_an_unknown_name():
    assert "Fetching" not in refused("models", "pull", "nomodel")
