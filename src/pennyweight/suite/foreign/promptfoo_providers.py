"""Providers of promptfoo as subjects and judges."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pennyweight.schema.tree import Node, plain
from pennyweight.suite.foreign.suite_format import ForeignSuite, Place, env_name

_SAME = (
    *("openai", "anthropic", "google", "ollama", "mistral", "groq", "deepseek", "openrouter"),
    *("perplexity", "cohere", "cerebras", "nvidia", "sambanova", "deepinfra", "litellm", "vllm"),
    *("huggingface", "azure", "moonshot", "minimax"),
)
PROVIDERS = {
    **{name: name for name in _SAME},
    "azureopenai": "azure",
    "togetherai": "together",
    "together": "together",
    "fireworks": "fireworks",
    "fireworks-ai": "fireworks",
    "xai": "grok",
    "alibaba": "qwen",
    "palm": "google",
    "bedrock": "litellm/bedrock",
    "vertex": "litellm/vertex_ai",
}
"""The names of providers here, by their names in promptfoo."""
_KINDS = {"chat", "messages", "responses", "completion", "text-generation", "chat-completion"}
_OTHER_KINDS = {"embedding", "embeddings", "image", "assistant", "realtime", "transcription", "tts"}
_CODE = ("file://", "exec:", "python:", "javascript:", "package:", "ruby:", "golang:")
_SETTINGS = {
    **{n: n for n in ("temperature", "max_tokens", "top_p", "top_k", "stop")},
    **{n: n for n in ("frequency_penalty", "presence_penalty", "reasoning_effort")},
    **{n: n for n in ("response_format", "tools")},
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "maxOutputTokens": "max_tokens",
    "topP": "top_p",
    "topK": "top_k",
    "stopSequences": "stop",
}
_IN_SETTINGS = {"seed": "seed", "passthrough": "extra"}
"""Settings that a subject has under `settings`."""
_ADDRESS = ("apiBaseUrl", "apiHost", "baseUrl")
_SILENT = {"showThinking", "omitDefaults", "maxRetries", "organization"}
_THINKS = re.compile(r"o\d|gpt-5")
DEFAULTS = {"temperature": 0, "max_tokens": 1024}
"""What promptfoo sends to chat models unless a configuration says otherwise."""


def read_providers(source: ForeignSuite, node: Node | None) -> list[dict[str, Any]]:
    """Read the providers of a configuration as subjects."""
    given = list(node.elements()) if node and node.is_list else [node] if node else []
    subjects: list[dict[str, Any]] = []
    for one in given:
        subject = read_provider(source, one, source.place.at(one.line))
        if subject is None:
            continue
        last = {k: v for k, v in subject.items() if k in {"settings", "priced_as"}}
        subject = {**_without(subject, *last), **_with_defaults(subject), **last}
        names = {s.get("name", s["model"]) for s in subjects}
        name = subject.get("name", subject["model"])
        if name in names:
            subject = {"name": f"{name} ({len(subjects) + 1})", **_without(subject, "name")}
        subjects.append(subject)
    return subjects


def _without(table: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in keys}


def _with_defaults(subject: Mapping[str, Any]) -> dict[str, Any]:
    provider, _, model = subject["model"].partition("/")
    if provider not in {"openai", "openai-responses", "azure", "anthropic"} or _THINKS.match(model):
        return {}
    return {key: value for key, value in DEFAULTS.items() if key not in subject}


def read_provider(source: ForeignSuite, node: Node, place: Place) -> dict[str, Any] | None:
    """Read one provider; None, and a line in the list, if it cannot be carried over."""
    table: Any = plain(node)
    if isinstance(table, str):
        table = {"id": table}
    elif isinstance(table, dict) and "id" not in table and len(table) == 1:
        name, below = next(iter(table.items()))
        table = {"id": name, **(below if isinstance(below, dict) else {})}
        node = node.get(name) or node
    if isinstance(table, dict) and isinstance(table.get("text"), dict | str):
        below = node.get("text")
        return read_provider(source, below, place) if below else None
    name = table.get("id") if isinstance(table, dict) else None
    if not isinstance(name, str):
        source.leave(place, "a provider", "it has no id")
        return None
    model = _model(source, name, place)
    if model is None:
        return None
    made: dict[str, Any] = {}
    if isinstance(table.get("label"), str):
        made["name"] = table["label"]
    made["model"] = model
    for key in sorted({"prompts", "transform", "delay", "inputs", "env"} & set(table)):
        why = "every subject tries every prompt" if key == "prompts" else "there is no such setting"
        source.leave(place.at(node.key_line(key)), f"provider {name}: {key}", why)
    config = node.get("config")
    if config is not None and config.is_mapping:
        made |= _config(source, name, config, place)
    if "base_url" in made and source.options.has_price(model):
        made["priced_as"] = model
    return made


def _model(source: ForeignSuite, name: str, place: Place) -> str | None:
    """Return a provider's id as the name of a model here."""
    if name == "echo":
        return "python:builtins:str"
    if name.startswith(_CODE):
        source.leave(place, f"provider {name}", "it is code, and code is not run")
        return None
    provider, _, rest = name.partition(":")
    kind, _, model = rest.partition(":")
    if kind in _OTHER_KINDS or provider not in PROVIDERS or not rest:
        why = "there is no such provider here; name one under subjects"
        source.leave(place, f"provider {name}", why)
        return None
    if kind not in _KINDS or not model:
        model = rest if kind not in _KINDS else model
    if not model:
        source.leave(place, f"provider {name}", "it names no model")
        return None
    if kind == "completion" and provider in {"openai", "azure", "azureopenai"}:
        source.note(f"{name} is called as a chat: there are no completions of a text here.")
    if (provider, kind) == ("openai", "responses"):
        return f"openai-responses/{model}"
    return f"{PROVIDERS[provider]}/{model}"


def _config(source: ForeignSuite, name: str, config: Node, place: Place) -> dict[str, Any]:
    made: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, node in config.items():
        value = plain(node)
        why = _not_copied(key, value)
        if why:
            source.leave(place.at(config.key_line(key)), f"provider {name}: {key}", why)
        elif key in {"apiKey", "apiKeyEnvar"}:
            made["key_env"] = env_name(value) or value
        elif key in _ADDRESS:
            made["base_url"] = value if "://" in str(value) else f"https://{value}"
        elif key == "reasoning":
            made["reasoning_effort"] = value["effort"]
        elif key in _IN_SETTINGS:
            extra[_IN_SETTINGS[key]] = value
        elif key in _SETTINGS:
            made[_SETTINGS[key]] = value
    return {**made, **({"settings": extra} if extra else {})}


def _not_copied(key: str, value: Any) -> str | None:
    """Return why a setting is left out; None if it can be carried over."""
    if key == "apiKey":
        return None if env_name(value) else "keys are never copied; name a variable under key_env"
    if key == "apiKeyEnvar":
        return None if re.fullmatch(r"\w+", str(value)) else "it is no name of a variable"
    if _has_env(value):
        return "the value of an environment variable is not copied"
    if _is_file(value):
        return "write the content of the file here"
    if key == "reasoning" and not (isinstance(value, dict) and "effort" in value):
        return "there is no such setting"
    if key == "passthrough" and not isinstance(value, dict):
        return "it is no mapping"
    known = {*_ADDRESS, *_IN_SETTINGS, *_SETTINGS, *_SILENT, "reasoning"}
    return None if key in known else "there is no such setting"


def _has_env(value: Any) -> bool:
    return isinstance(value, str) and bool(re.search(r"\{\{\s*env\.|\$\{?\w+\}?", value))


def _is_file(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_is_file, value.values()))
    if isinstance(value, list):
        return any(map(_is_file, value))
    return isinstance(value, str) and value.startswith("file://")
