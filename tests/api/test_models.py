"""The models that can be called."""

import pytest

from pennyweight.api.models import local_models, provider_keys


def test_local_models_have_a_name_and_a_size() -> None:
    models = local_models()
    assert "smollm2-135m" in {model.name for model in models}
    assert all(model.size > 0 and model.about for model in models)


def test_providers_say_whether_their_key_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    keys = {provider.name: provider for provider in provider_keys()}
    assert keys["openai"].key_is_set
    assert not keys["anthropic"].key_is_set
    assert "sk-0123" not in repr(keys)
