"""`pennyweight models`."""

import pytest

from cli.command import pennyweight


def test_it_lists_models_and_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    said = pennyweight("models", "list")
    assert said.code == 0
    assert "local/smollm2-135m" in said.out
    assert "OPENAI_API_KEY is set" in said.out
    assert "sk-0123" not in said.out + said.err
