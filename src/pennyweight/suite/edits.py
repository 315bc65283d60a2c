"""Changes to the tree of a suite: one value at a path, a model setting everywhere, other models.

Trees share nodes where a document has aliases, so a change copies the nodes on its way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pennyweight.errors import UsageError, unknown
from pennyweight.schema.tree import Node, parse, plain, scalar
from pennyweight.suite.declaration import SETTINGS

MODEL_SETTINGS = frozenset(f.name for f in SETTINGS if f.name != "settings")
_TEMPLATES = ("{{", "{%", "{#")
_NAMES = ("name", "id", "model")
"""The keys by which an element of a list is named."""


def parsed_value(text: str) -> Any:
    """Read a value as a suite would: a number, a word, text, or a list or mapping in brackets.

    >>> [parsed_value(t) for t in ("3", "true", "[a, 1]", "{{ input }}", "Note: be brief")]
    [3, True, ['a', 1], '{{ input }}', 'Note: be brief']
    """
    if text.startswith(("[", "{")) and not text.startswith(_TEMPLATES):
        return plain(parse(text, is_json=False)[0])
    return scalar(text)


def is_model_setting(path: str) -> bool:
    """Whether a path is the bare name of a model setting, which no suite has at its top."""
    return path in MODEL_SETTINGS


def put(root: Node, path: str, value: Any) -> Node:
    """Return a tree with another value at a path of keys, positions and names.

    >>> tree = parse("subjects: [{name: a, model: m/x}]", is_json=False)[0]
    >>> plain(put(tree, "subjects.a.temperature", 0))
    {'subjects': [{'name': 'a', 'model': 'm/x', 'temperature': 0}]}
    """
    keys = path.split(".")
    tasks = root.get("tasks")
    if keys[0] == "tasks" and len(keys) > 1 and tasks is not None and isinstance(tasks.value, str):
        table = Node({"from": tasks}, tasks.line, key_lines={"from": tasks.line})
        root = replaced(root, "tasks", table)
    return _put(root, keys, value)


def everywhere(root: Node, name: str, value: Any) -> Node:
    """Return a tree with a model setting for every call, whatever subjects and tiers set."""
    root = put(root, f"settings.{name}", value)

    def changed(node: Node) -> Node:
        for path in (name, f"settings.{name}"):
            if node.get(*path.split(".")) is not None:
                node = put(node, path, value)
        return node

    for key in ("subjects", "tiers"):
        held = root.get(key)
        if held is not None and held.value is not None:
            root = replaced(root, key, _each(held, changed))
    return root


def with_models(root: Node, models: Sequence[str]) -> Node:
    """Return a tree with these models as subjects; those that it lists keep their settings."""
    held = root.get("subjects")
    listed = list(held.elements()) if held is not None and held.is_list else []
    found = [
        [one for one in listed if model in _names_of(one)] or [Node.of(model)] for model in models
    ]
    return replaced(root, "subjects", Node([one for several in found for one in several]))


def _each(node: Node, change: Callable[[Node], Node]) -> Node:
    if isinstance(node.value, dict):
        return replace(node, value={key: change(below) for key, below in node.value.items()})
    if isinstance(node.value, list):
        return replace(node, value=[change(below) for below in node.value])
    return node


def _put(node: Node, path: Sequence[str], value: Any) -> Node:
    if not path:
        return _tree(value)
    if isinstance(node.value, list):
        return _in_list(node, path, value)
    if isinstance(node.value, str) and node.value:  # a subject: 'provider/model' alone
        node = Node({"model": node}, node.line, key_lines={"model": node.line})
    if node.value is None:
        node = Node({}, node.line, key_lines={})
    if not isinstance(node.value, dict):
        raise UsageError(f"{path[0]!r} cannot be set: there is a value, not a mapping.")
    key, rest = _longest(path, node.value)
    below = node.value.get(key)
    return replaced(node, key, _put(below if below is not None else Node(None), rest, value))


def _in_list(node: Node, path: Sequence[str], value: Any) -> Node:
    elements: list[Node] = node.value
    places = {str(place): place for place in range(len(elements))}
    for place, one in enumerate(elements):
        places |= {name: place for name in _names_of(one) if name not in places}
    key, rest = _longest(path, places)
    if key not in places:
        raise UsageError(unknown("Element", key, places, f"There are: {', '.join(places)}."))
    changed = list(elements)
    changed[places[key]] = _put(elements[places[key]], rest, value)
    return replace(node, value=changed)


def _names_of(node: Node) -> Iterator[str]:
    """Yield the names of a subject, a judge or a task in a list."""
    if isinstance(node.value, str):
        yield node.value
    for key in _NAMES if isinstance(node.value, dict) else ():
        below = node.get(key)
        if below is not None and below.text:
            yield below.text


def _longest(path: Sequence[str], known: Any) -> tuple[str, Sequence[str]]:
    """Split off the first key; known keys may contain dots, as names of models do."""
    for size in range(len(path), 0, -1):
        if (key := ".".join(path[:size])) in known:
            return key, path[size:]
    return path[0], path[1:]


def replaced(node: Node, key: str, below: Node) -> Node:
    """Return a mapping with another value of a key; the value has no line in the file."""
    lines = {**(node.key_lines or {}), key: below.line}
    return replace(node, value={**node.value, key: below}, key_lines=lines)


def _tree(value: Any) -> Node:
    if isinstance(value, dict):
        below = {str(key): _tree(one) for key, one in value.items()}
        return Node(below, key_lines=dict.fromkeys(below, 0))
    if isinstance(value, list | tuple):
        return Node([_tree(one) for one in value])
    return Node.of(value)
