"""Find a model by its name: `provider/model`, `local/…`, `litellm/…`, `python:…`, `replay:…`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from pennyweight.errors import UsageError, unknown
from pennyweight.models.keys import Key
from pennyweight.models.model import Model

DEFAULT_TIMEOUT = 120.0
LOOPBACK = {"localhost", "127.0.0.1", "::1"}


@dataclass(frozen=True, slots=True)
class Provider:
    """An address that serves models, and the variable that holds its key ("" if it needs none).

    `base_env` names a variable that holds the address, for providers with an address per customer.
    """

    name: str
    base_url: str
    key_env: str = ""
    wire: Literal["openai", "responses", "anthropic", "google"] = "openai"
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    base_env: str = ""
    batches: bool = False
    """Whether it has batches. Any other address may have them; it is asked first."""
    own_env: str = ""
    """The variable by which its SDK is told another address, if that is not NAME_BASE_URL."""
    path: str = ""
    """What its SDK appends to such an address."""

    @property
    def prefix(self) -> str:
        """Return what the names of its variables begin with."""
        return self.key_env.removesuffix("_API_KEY") or self.name.upper()


@dataclass(frozen=True, slots=True)
class OwnAddress:
    """An address that the environment names in place of a provider's public one."""

    url: str
    variable: str


PROVIDERS: dict[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider(
            "openai",
            "https://api.openai.com/v1",
            "OPENAI_API_KEY",
            limit="max_completion_tokens",
            batches=True,
        ),
        Provider(
            "openai-responses",
            "https://api.openai.com/v1",
            "OPENAI_API_KEY",
            "responses",
            batches=True,
        ),
        Provider(
            "anthropic",
            "https://api.anthropic.com",
            "ANTHROPIC_API_KEY",
            "anthropic",
            batches=True,
        ),
        Provider(
            "google",
            "https://generativelanguage.googleapis.com/v1beta",
            "GEMINI_API_KEY",
            "google",
            batches=True,
            own_env="GOOGLE_GEMINI_BASE_URL",
            path="/v1beta",
        ),
        Provider("ollama", "http://127.0.0.1:11434/v1", own_env="OLLAMA_HOST", path="/v1"),
        Provider("vllm", "http://127.0.0.1:8000/v1"),
        Provider("sglang", "http://127.0.0.1:30000/v1"),
        Provider("lmstudio", "http://127.0.0.1:1234/v1"),
        Provider("llamacpp", "http://127.0.0.1:8080/v1"),
        Provider(
            "azure",
            "",
            "AZURE_OPENAI_API_KEY",
            limit="max_completion_tokens",
            base_env="AZURE_OPENAI_ENDPOINT",
        ),
        Provider("cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", path="/v1"),
        Provider("cohere", "https://api.cohere.ai/compatibility/v1", "COHERE_API_KEY"),
        Provider("deepinfra", "https://api.deepinfra.com/v1/openai", "DEEPINFRA_API_KEY"),
        Provider("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
        Provider("fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
        Provider("glm", "https://api.z.ai/api/paas/v4", "ZAI_API_KEY"),
        Provider("grok", "https://api.x.ai/v1", "XAI_API_KEY"),
        Provider(
            "groq",
            "https://api.groq.com/openai/v1",
            "GROQ_API_KEY",
            batches=True,
            path="/openai/v1",
        ),
        Provider("huggingface", "https://router.huggingface.co/v1", "HF_TOKEN"),
        Provider("minimax", "https://api.minimax.io/v1", "MINIMAX_API_KEY"),
        Provider("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
        Provider("moonshot", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
        Provider("nvidia", "https://integrate.api.nvidia.com/v1", "NVIDIA_API_KEY"),
        Provider("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        Provider("perplexity", "https://api.perplexity.ai", "PERPLEXITY_API_KEY"),
        Provider(
            "qwen",
            "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
            "DASHSCOPE_API_KEY",
            batches=True,
        ),
        Provider("sambanova", "https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY"),
        Provider("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    )
}

_REACHED = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
"""Where a server is reached that listens on all addresses."""
_LEGACY = ("_API_BASE", "_API_URL")
"""Endings of variables that name an address, which only some libraries read."""
_FORMS = (
    "A model is written provider/model, local/…, litellm/…, python:module:function or replay:FILE."
)


def find(
    name: str,
    *,
    base_url: str | None = None,
    more_urls: Sequence[str] = (),
    key_env: str | None = None,
    timeout: float | None = None,
    slots: int | None = None,
    context: int | None = None,
    folder: Path | None = None,
    keyless: bool = False,
) -> Model:
    """Return a model by its name. Errors in its name, address or key are raised here, not later.

    `more_urls` are further addresses of the same model: calls go to the least loaded one.
    `slots` (concurrent replies) and `context` (tokens of each) apply to `local/…` only; `folder`
    (the suite's, in which modules and files are searched first) to `python:…`, `replay:…` and
    `local/…`. Nothing is sent, fetched or started before the first call. A `keyless` model cannot
    be called where a key is needed; it only shows what would be sent.
    """
    scheme, colon, rest = name.partition(":")
    if colon and scheme in {"python", "replay"}:
        if scheme == "replay":
            from pennyweight.models.replay import Recording  # noqa: PLC0415

            return Recording.named(rest, folder)
        from pennyweight.models.function import FunctionModel  # noqa: PLC0415

        return FunctionModel(rest, timeout or DEFAULT_TIMEOUT, folder)
    provider, slash, model = name.partition("/")
    if not slash or not model:
        raise UsageError(f"{name!r} is not the name of a model. {_FORMS}")
    if provider == "local":
        from pennyweight.models.local import LocalModel  # noqa: PLC0415

        return LocalModel(model, slots=slots, context=context, timeout=timeout, folder=folder)
    if provider == "litellm":
        from pennyweight.models.litellm import LiteLLMModel  # noqa: PLC0415

        return LiteLLMModel(model, timeout or DEFAULT_TIMEOUT)
    if provider not in PROVIDERS:
        known = [*PROVIDERS, "local", "litellm"]
        others = f"Providers: {', '.join(PROVIDERS)}. Any other server: openai/MODEL with base_url."
        raise UsageError(unknown("Provider", provider, known, f"{_FORMS} {others}"))
    given = PROVIDERS[provider]
    key = None if keyless else _key(given, name, base_url is not None, key_env)

    own = own_address(name) if base_url is None else None

    def at(address: str | None) -> Model:
        try:
            own_url = own.url if own else None
            return _remote(given, model, address or own_url, key, timeout or DEFAULT_TIMEOUT)
        except UsageError as error:
            raise UsageError(f"{own.variable}: {error}" if own else str(error)) from None

    if base_url is None or not (more_urls or base_url.startswith("dns+")):
        return at(base_url)
    from pennyweight.models.servers.replicas import ReplicatedModel  # noqa: PLC0415

    return ReplicatedModel((base_url, *more_urls), at)


def own_address(name: str) -> OwnAddress | None:
    """Return the address that the environment names for a model's provider; None if it names none.

    A variable that only some libraries read is an error: whoever set it wants another address than
    the public one, and what is sent there cannot be taken back.
    """
    provider = PROVIDERS.get(name.partition("/")[0])
    if provider is None or provider.base_env:
        return None
    for variable in filter(None, (provider.own_env, f"{provider.prefix}_BASE_URL")):
        if url := os.environ.get(variable, "").strip().rstrip("/"):
            return OwnAddress(_completed(url, provider, variable), variable)
    for ending in _LEGACY:
        if os.environ.get(variable := provider.prefix + ending, "").strip():
            raise UsageError(
                f"{variable} is set, but is not read: calls would go to {provider.base_url}. "
                f"Set {provider.prefix}_BASE_URL instead, or base_url in the suite."
            )
    return None


def _completed(url: str, provider: Provider, variable: str) -> str:
    """Return an address as the provider's SDK completes it."""
    if variable == "OLLAMA_HOST":
        url = url if "://" in url else f"http://{url}"
        parts = _split(url)
        port = parts.port or {"http": 11434, "https": 443}.get(parts.scheme, 11434)
        host = _REACHED.get(parts.hostname or "", parts.hostname or "")
        host = f"[{host}]" if ":" in host else host
        url = f"{parts.scheme}://{host}:{port}{parts.path}".rstrip("/")
    has_path = provider.path and url.endswith(provider.path)
    return url if has_path or not provider.path else url + provider.path


def in_folder(folder: Path | None, name: str) -> Path:
    """Return a file that a suite names: in the suite's folder if it exists there, else as it is."""
    path = Path(name).expanduser()
    inside = folder / path if folder else path
    return inside if inside.exists() else path


def _remote(
    provider: Provider, model: str, base_url: str | None, key: Key | None, timeout: float
) -> Model:
    from pennyweight.models.remote import RemoteModel  # noqa: PLC0415
    from pennyweight.models.wires import anthropic, google, openai, responses  # noqa: PLC0415

    name = f"{provider.name}/{model}"
    address = _address(provider, base_url)
    own = f".{urlsplit(provider.base_url).hostname}"
    is_own = base_url is None or f".{urlsplit(address).hostname}".endswith(own)
    limit = provider.limit if is_own else "max_tokens"
    others = {"anthropic": anthropic, "google": google, "responses": responses}
    wire = others.get(provider.wire, openai)
    encode = wire.encode if wire is not openai else partial(openai.encode, limit=limit)
    host = urlsplit(address).netloc
    account = f"{key.variable} at {host}" if key else f"{host} (no key)"
    dialect = provider.wire if provider.batches or base_url else None
    return RemoteModel(name, model, address, wire, encode, key, account, timeout, dialect)


def _address(provider: Provider, base_url: str | None) -> str:
    address = base_url or provider.base_url
    if not address:
        resource = os.environ.get(provider.base_env, "").strip().rstrip("/")
        if not resource:
            raise UsageError(
                f"{provider.name} has a separate address for each customer: set base_url, or the "
                f"environment variable {provider.base_env}."
            )
        address = resource if resource.endswith("/v1") else f"{resource}/openai/v1"
    parts = _split(address)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(f"base_url {address!r} is not an address; write http://… or https://….")
    if parts.username or parts.password:
        raise UsageError("base_url must not hold a user name or password; name a key with key_env.")
    if parts.query or parts.fragment:
        raise UsageError(
            "base_url must end before '?' or '#': paths are added to it. A key goes into the "
            "variable that key_env names."
        )
    return address


def _split(address: str) -> SplitResult:
    """Split an address. A wrong one is not repeated in the error if it may contain a password."""
    with suppress(ValueError):
        parts = urlsplit(address)
        if parts.port != 0:
            return parts
    shown = "" if "@" in address else f" {address!r}"
    raise UsageError(
        f"base_url{shown} is not an address: write http://host:port/… or https://…, with a port of "
        "1 to 65535 or without one."
    )


def _key(provider: Provider, name: str, elsewhere: bool, key_env: str | None) -> Key | None:
    """Read the key. An address other than the provider's own only gets a key that was named."""
    variable = key_env or ("" if elsewhere else provider.key_env)
    if not variable:
        return None
    key = Key.read(variable)
    if key is None:
        raise UsageError(f"{name} needs a key: set the environment variable {variable}.")
    return key
