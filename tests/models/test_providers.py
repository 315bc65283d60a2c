"""Names of models, and what is said about wrong ones before any call."""

from typing import Any
from urllib.parse import urlsplit

import pytest

from models.saved import ask
from pennyweight.errors import UsageError
from pennyweight.models.model import Settings
from pennyweight.models.providers import PROVIDERS, OwnAddress, find, own_address
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


@pytest.mark.parametrize(
    ("model", "variable", "value", "address"),
    [
        ("openai/m", "OPENAI_BASE_URL", "https://gate.example/v1/", "https://gate.example/v1"),
        ("openai-responses/m", "OPENAI_BASE_URL", "http://a:1/v1", "http://a:1/v1"),
        ("anthropic/m", "ANTHROPIC_BASE_URL", "https://gate.example", "https://gate.example"),
        ("google/m", "GOOGLE_GEMINI_BASE_URL", "https://g.example", "https://g.example/v1beta"),
        ("groq/m", "GROQ_BASE_URL", "https://g.example", "https://g.example/openai/v1"),
        ("groq/m", "GROQ_BASE_URL", "https://g.example/openai/v1", "https://g.example/openai/v1"),
        ("mistral/m", "MISTRAL_BASE_URL", "https://g.example/v1", "https://g.example/v1"),
        ("ollama/m", "OLLAMA_HOST", "0.0.0.0:1234", "http://127.0.0.1:1234/v1"),
        ("ollama/m", "OLLAMA_HOST", ":1234", "http://127.0.0.1:1234/v1"),
        ("ollama/m", "OLLAMA_HOST", "[::]:1234", "http://[::1]:1234/v1"),
        ("ollama/m", "OLLAMA_HOST", "box", "http://box:11434/v1"),
    ],
)
def test_the_environment_names_an_address_as_for_the_sdk(
    model: str, variable: str, value: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert own_address(model) is None
    monkeypatch.setenv(variable, value)
    key = PROVIDERS[model.partition("/")[0]].key_env
    if key:
        monkeypatch.setenv(key, "k" * 20)
    assert own_address(model) == OwnAddress(address, variable)
    account = find(model).account
    assert account.endswith(urlsplit(address).netloc + ("" if key else " (no key)"))
    assert account.startswith(key), "the key of the provider goes where the environment says"
    assert "127.0.0.1:9" in find(model, base_url="http://127.0.0.1:9/v1").account


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://api.openai.com/v1", "max_completion_tokens"),
        ("https://eu.api.openai.com/v1/", "max_completion_tokens"),
        ("https://api.openai.com.example/v1", "max_tokens"),
        ("http://127.0.0.1:9/v1", "max_tokens"),
    ],
)
def test_openai_at_its_own_address_gets_its_own_limit(
    address: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k" * 20)
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    model = find("openai/gpt-5-mini")
    assert isinstance(model, RemoteModel)
    assert name in model.encode(ask(max_tokens=7))[1]


@pytest.mark.parametrize("variable", ["OPENAI_API_BASE", "OPENAI_API_URL"])
def test_an_address_that_would_be_ignored_is_a_mistake(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k" * 20)
    monkeypatch.setenv(variable, "https://gate.example/v1")
    with pytest.raises(UsageError, match=f"{variable} is set, but is not read: calls would go to"):
        find("openai/m")
    find("openai/m", base_url="http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gate.example/v1")
    assert "gate.example" in find("openai/m").account


def test_a_wrong_address_of_the_environment_names_its_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k" * 20)
    monkeypatch.setenv("OPENAI_BASE_URL", "gate.example/v1")
    with pytest.raises(UsageError, match=r"^OPENAI_BASE_URL: .* is not an address"):
        find("openai/m")
