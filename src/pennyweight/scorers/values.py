"""Ready-made scorers that compare numbers and JSON with the target, without a model."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from difflib import SequenceMatcher
from functools import partial
from typing import Any

from pennyweight.scorers.declaration import scorer

_NUMBER = re.compile(r"[+-]?(?:[0-9][0-9,]*(?:\.[0-9]+)?|\.[0-9]+)(?:e[+-]?[0-9]+)?", re.IGNORECASE)
_FENCE = re.compile(r"```[a-zA-Z]*\n(.*?)```", re.DOTALL)
_NOTHING: Any = object()
_share = partial(scorer, unit="share", range=(0, 1))


@_share
def numeric_closeness(answer: str | None, target: str | None) -> float | None:
    """How close a number is to the target: 1 − |a − t| / max(|a|, |t|), at least 0.

    The number is the last one in the answer; without any, the score is 0.

    >>> numeric_closeness("about 90", "100"), numeric_closeness("-5", "5")
    (0.9, 0.0)
    """
    wanted = _number(target)
    if wanted is None:
        return None
    said = _number(answer)
    return 0.0 if said is None else _closeness(said, wanted)


def _number(text: str | None) -> float | None:
    found = _NUMBER.findall(text or "")
    number = float(found[-1].replace(",", "")) if found else math.nan
    return number if math.isfinite(number) else None


def _closeness(one: float, other: float) -> float:
    size = max(abs(one), abs(other))
    return max(0.0, 1 - abs(one - other) / size) if size else 1.0


@_share
def json_similarity(
    answer: str | None, target: str | None, response: str | None = None
) -> float | None:
    """How similar the JSON of a reply is to that of the target, value by value.

    Objects are compared key by key and lists place by place, each as the mean of its parts, where
    what only one of them has counts 0. Numbers are as similar as they are close, texts by the
    characters that they share; other values are equal or not. A reply without JSON scores 0.

    >>> json_similarity('{"name": "Ann", "age": 40}', '{"name": "Ann", "age": 50}')
    0.9
    """
    wanted = _json(target)
    if wanted is _NOTHING:
        return None
    said = _json(answer)
    said = _json(response) if said is _NOTHING else said
    return 0.0 if said is _NOTHING else similarity(said, wanted)


def _json(text: str | None) -> Any:
    for part in (text or "", *_FENCE.findall(text or "")):
        try:
            return json.loads(part)
        except (ValueError, RecursionError):
            continue
    return _NOTHING


def similarity(one: Any, other: Any) -> float:
    """Return how similar two values of JSON are, from 0 to 1.

    >>> similarity([1, 2], [1, 2, 3]), similarity({"a": 1}, {"a": True})
    (0.6666666666666666, 0.0)
    """
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        keys = {*one, *other}
        return _mean([_part(one, other, key) for key in keys])
    if isinstance(one, list) and isinstance(other, list):
        rows = [similarity(a, b) for a, b in zip(one, other, strict=False)]
        return _mean([*rows, *[0.0] * abs(len(one) - len(other))])
    if isinstance(one, str) and isinstance(other, str):
        return SequenceMatcher(None, one, other, autojunk=False).ratio()
    if isinstance(one, bool) or isinstance(other, bool):
        return float(one is other)
    if isinstance(one, int | float) and isinstance(other, int | float):
        return _closeness(one, other)
    return float(one == other)


def _part(one: Mapping[str, Any], other: Mapping[str, Any], key: str) -> float:
    return similarity(one[key], other[key]) if key in one and key in other else 0.0


def _mean(parts: list[float]) -> float:
    return math.fsum(parts) / len(parts) if parts else 1.0
