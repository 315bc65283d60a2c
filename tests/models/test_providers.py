"""Names of models, and what is said about wrong ones before any call."""

from typing import Any

import pytest

from models.saved import ask
from pennyweight.errors import UsageError
from pennyweight.models.model import Settings
from pennyweight.models.providers import PROVIDERS, find
from pennyweight.models.remote import RemoteModel


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_missing_key_names_its_variable(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = PROVIDERS[name]
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://ours.openai.azure.com/")
    if not provider.key_env:
        assert find(f"{name}/m").name == f"{name}/m"
        return
    monkeypatch.delenv(provider.key_env, raising=False)
    with pytest.raises(UsageError, match=provider.key_env):
        find(f"{name}/m")
    monkeypatch.setenv(provider.key_env, "k" * 20)
    model = find(f"{name}/vendor/m")
    assert model.name == f"{name}/vendor/m"
    assert provider.key_env in model.account
    assert "kkk" not in model.account


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("opnai/gpt", "Did you mean 'openai'"),
        ("gpt-4o", "is not the name of a model"),
        ("openai/", "is not the name of a model"),
        ("nothing/like", "is not known"),
        ("local/smolm2-135m", "Did you mean 'smollm2-135m'"),
        ("local/absent.gguf", "There is no file"),
        ("python:json", "names no function"),
        ("python:no.such.module:f", "cannot be imported"),
        ("python:json:dumsp", "Did you mean 'dump"),
        ("replay:", "needs a file"),
        ("replay:absent.jsonl", "cannot be read"),
    ],
)
def test_wrong_names(name: str, says: str) -> None:
    from pennyweight.errors import PennyweightError

    if name.startswith("local/"):
        pytest.importorskip("xllamacpp")
    with pytest.raises(PennyweightError, match=says):
        find(name)


def test_another_address_gets_only_a_key_that_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k" * 20)
    assert "no key" in find("openai/m", base_url="http://127.0.0.1:9/v1").account
    with pytest.raises(UsageError, match="OUR_MISSING_KEY"):
        find("openai/m", base_url="http://127.0.0.1:9/v1", key_env="OUR_MISSING_KEY")


@pytest.mark.parametrize("address", ["127.0.0.1:8000", "ftp://x/v1", "http://u:p@host/v1"])
def test_wrong_addresses(address: str) -> None:
    with pytest.raises(UsageError, match="base_url"):
        find("openai/m", base_url=address)


@pytest.mark.parametrize("at", ["127.0.0.1:99999", "host:abc", "host:-1", "host:0", "[::1", "[x]"])
def test_an_address_with_a_wrong_port(at: str) -> None:
    with pytest.raises(UsageError, match="1 to 65535") as caught:
        find("openai/m", base_url=f"https://{at}/v1")
    assert at in str(caught.value)
    with pytest.raises(UsageError, match="1 to 65535") as caught:
        find("openai/m", base_url=f"https://me:0123456789@{at}/v1")
    assert "0123456789" not in str(caught.value)


def test_azure_needs_its_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_OPENAI_ENDPOINT", raising=False)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "k" * 20)
    with pytest.raises(UsageError, match="AZURE_OPENAI_ENDPOINT"):
        find("azure/m")


def test_the_limit_has_the_name_that_the_server_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k" * 20)

    def sent(model: object) -> dict[str, object]:
        assert isinstance(model, RemoteModel)
        return model.encode(ask(max_tokens=5))[1]

    assert "max_completion_tokens" in sent(find("openai/o4-mini"))
    assert "max_tokens" in sent(find("openai/m", base_url="http://127.0.0.1:9/v1"))
    assert "max_tokens" in sent(find("ollama/llama3"))


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1/v1?key=sk-0123456789", "http://127.0.0.1/#a"]
)
def test_an_address_ends_before_its_query(address: str) -> None:
    with pytest.raises(UsageError, match="must end before") as caught:
        find("openai/m", base_url=address)
    assert "sk-0123456789" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "settings", "most"),
    [
        ("openai/m", {}, None),
        ("openai/m", {"max_tokens": 10}, 10),
        ("openai/m", {"max_tokens": 10, "extra": {"n": 3}}, 30),
        ("openai/m", {"extra": {"max_completion_tokens": 9000}}, 9000),
        ("openai-responses/m", {}, None),
        ("openai-responses/m", {"max_tokens": 10, "thinking": "high"}, 10),
        ("anthropic/m", {}, 4096),
        ("anthropic/m", {"max_tokens": 10}, 10),
        ("anthropic/m", {"thinking": 20_000}, 24_096),
        ("anthropic/m", {"max_tokens": 30_000, "thinking": 20_000}, 30_000),
        ("google/m", {}, None),
        ("google/m", {"max_tokens": 10, "thinking": 5}, 10),
        ("google/m", {"thinking": 20_000}, 24_096),
        ("python:json:dumps", {"max_tokens": 10}, 10),
    ],
)
def test_the_most_that_may_come_out(name: str, settings: dict[str, Any], most: int | None) -> None:
    address = None if ":" in name else "http://127.0.0.1:9"
    assert find(name, base_url=address).most_output(Settings.of(settings)) == most
