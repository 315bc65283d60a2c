"""Providers of promptfoo as subjects and judges."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
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
_KINDS = {"chat", "messages", "responses", "completion", "chat-completion"}
_OTHER_KINDS = {
    *("embedding", "embeddings", "image", "assistant", "realtime", "transcription", "tts"),
    *("moderation", "video", "audio", "codex", "agents", "chatkit", "text-generation"),
    *("text-classification", "feature-extraction", "sentence-similarity"),
    "token-classification",
}
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
_NOT_COPIED = "values of environment variables are not copied"
_KEY_NOT_COPIED = "keys are never copied; name a variable under key_env"
_THINKS = re.compile(r"o\d|gpt-5")
DEFAULTS = {"temperature": 0, "max_tokens": 1024}
"""What promptfoo sends to chat models unless a configuration says otherwise."""


def read_providers(source: ForeignSuite, node: Node | None) -> list[dict[str, Any]]:
    """Read the providers of a configuration as subjects."""
    subjects: list[dict[str, Any]] = []
    for one, place in _listed(source, node):
        subject = read_provider(source, one, place)
        if subject is None:
            continue
        last = {k: v for k, v in subject.items() if k in {"settings", "priced_as"}}
        omits = one.is_mapping and (one.get("config", "omitDefaults") or Node(None)).value is True
        defaults = {} if omits else _with_defaults(subject)
        subject = {**_without(subject, *last), **defaults, **last}
        names = {s.get("name", s["model"]) for s in subjects}
        name = subject.get("name", subject["model"])
        if name in names:
            subject = {"name": f"{name} ({len(subjects) + 1})", **_without(subject, "name")}
        subjects.append(subject)
    return subjects


def _listed(source: ForeignSuite, node: Node | None) -> Iterator[tuple[Node, Place]]:
    """Yield each provider with its place; a file may hold one or several."""
    for one in (node.elements() if node.is_list else [node]) if node else ():
        place = source.place.at(one.line)
        name = str(one.value) if one.is_scalar else ""
        if not (name.startswith("file://") and name.endswith((".yaml", ".yml", ".json"))):
            yield one, place
        elif path := source.find(name.removeprefix("file://"), place, "provider"):
            root = source.document(path).root
            own = Place(source.name_of(path))
            for below in root.elements() if root.is_list else [root]:
                yield below, own.at(below.line)


def read_env(source: ForeignSuite, place: Place, what: str, node: Node | None) -> None:
    """List variables of the environment; all but keys may decide which model is called, and how."""
    for name, below in node.items() if node is not None and node.is_mapping else ():
        is_key = name.endswith(("_KEY", "_TOKEN", "_SECRET"))
        tell, why = (source.leave, "set it in your shell") if is_key else (source.miss, _NOT_COPIED)
        tell(place.at(below.line), f"{what}: {name}", why)


def _without(table: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in keys}


def _with_defaults(subject: Mapping[str, Any]) -> dict[str, Any]:
    provider, _, model = subject["model"].partition("/")
    if provider not in {"openai", "openai-responses", "azure", "anthropic"} or _THINKS.match(model):
        return {}
    return {key: value for key, value in DEFAULTS.items() if key not in subject}


def read_provider(source: ForeignSuite, node: Node, place: Place) -> dict[str, Any] | None:
    """Read one provider; None, and a line in the list, if it cannot be carried over."""
    node, table = _table(node)
    if isinstance(table.get("text"), dict | str):
        below = node.get("text")
        return read_provider(source, below, place) if below else None
    name = table.get("id")
    if not isinstance(name, str):
        source.miss(place, "a provider", "it has no id")
        return None
    model = _model(source, name, place)
    if model is None:
        return None
    made: dict[str, Any] = {}
    if isinstance(table.get("label"), str):
        made["name"] = table["label"]
    made["model"] = model
    _miss_others(source, node, name, table, place)
    config = node.get("config")
    if config is not None and config.is_mapping:
        settings = _config(source, name, config, place)
        if settings is None:
            return None
        made |= settings
    if "base_url" in made and source.options.has_price(model):
        made["priced_as"] = model
    return made


def _table(node: Node) -> tuple[Node, dict[str, Any]]:
    """Return the table of a provider, which may be only its name, or stand under its name."""
    table: Any = plain(node)
    if isinstance(table, str):
        return node, {"id": table}
    if not isinstance(table, dict):
        return node, {}
    if "id" not in table and "text" not in table and len(table) == 1:
        name, below = next(iter(table.items()))
        own = below if isinstance(below, dict) else {}
        return node.get(name) or node, {"id": name, **own}
    return node, table


def _miss_others(
    source: ForeignSuite, node: Node, name: str, table: Mapping[str, Any], place: Place
) -> None:
    """List the keys of a provider that are not carried over."""
    for key in sorted(table.keys() - {"id", "label", "config", "delay"}):
        why = "every subject tries every prompt" if key == "prompts" else "there is no such setting"
        if key == "env":
            read_env(source, place, f"provider {name}: env", node.get("env"))
        else:
            source.miss(place.at(node.key_line(key)), f"provider {name}: {key}", why)


def _model(source: ForeignSuite, name: str, place: Place) -> str | None:
    """Return a provider's id as the name of a model here."""
    if name == "echo":
        return "python:builtins:str"
    if name.startswith(_CODE):
        source.miss(place, f"provider {name}", "it is code, and code is not run")
        return None
    if _has_env(name):
        source.miss(place, f"provider {name}", _NOT_COPIED)
        return None
    provider, _, rest = name.partition(":")
    kind, _, model = rest.partition(":")
    if kind in _OTHER_KINDS or provider not in PROVIDERS or not rest:
        why = "there is no such provider here; name one under subjects"
        source.miss(place, f"provider {name}", why)
        return None
    if kind not in _KINDS or not model:
        model = rest if kind not in _KINDS else model
    if not model:
        source.miss(place, f"provider {name}", "it names no model")
        return None
    if kind == "completion" and provider in {"openai", "azure", "azureopenai", "ollama"}:
        source.miss(place, f"provider {name}", "models are called as chats, and complete no texts")
        return None
    if (provider, kind) == ("openai", "responses"):
        return f"openai-responses/{model}"
    return f"{PROVIDERS[provider]}/{model}"


def _config(source: ForeignSuite, name: str, config: Node, place: Place) -> dict[str, Any] | None:
    """Read the settings of a provider; None if its address is not known, so it cannot be called."""
    made: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, node in config.items():
        own = place.at(config.key_line(key))
        value = _content(source, plain(node), own)
        why = _not_copied(key, value)
        if why:
            tell = source.leave if why == _KEY_NOT_COPIED else source.miss
            tell(own, f"provider {name}: {key}", why)
            if key in _ADDRESS:
                return None
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


def _content(source: ForeignSuite, value: Any, place: Place) -> Any:
    """Return the content of a file of data in place of its name, if it can be read."""
    if not (isinstance(value, str) and value.endswith((".json", ".yaml", ".yml"))):
        return value
    if not value.startswith("file://"):
        return value
    path = source.find(value.removeprefix("file://"), place, "file")
    return plain(source.document(path).root) if path else value


def _not_copied(key: str, value: Any) -> str | None:
    """Return why a setting is left out; None if it can be carried over."""
    if key == "apiKey":
        return None if env_name(value) else _KEY_NOT_COPIED
    if key == "apiKeyEnvar":
        return None if re.fullmatch(r"\w+", str(value)) else "it is no name of a variable"
    if _has_env(value):
        return _NOT_COPIED
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
