"""Recognise what a judge copied from the judged text, also if it is encoded there."""

from __future__ import annotations

import binascii
import codecs
import html
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote_plus

SCORES = ("score", "achieved", "points")
"""The keys that hold a score."""
_KEYS = {*SCORES, "evidence", "reason", "items", "item", "id"}
_TAIL = 8
"""How many characters of the evidence must be quoted along with a score."""
_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*"|[^\s"{}\[\]:,]+)(\s*:)?', re.DOTALL)
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
_QUOTES = str.maketrans(dict.fromkeys("'`´‘’‚‛“”„‟«»‹›′″ʺ", '"'))
_INVISIBLE = (
    r"\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    r"\U000e0000-\U000e0fff"
)
_HIDDEN = re.compile(rf"[{_INVISIBLE}]+")
_IGNORED = re.compile(rf"[\s\\{_INVISIBLE}]+")
_BLANK = re.compile(r"\\[nrt]")
_WORD = re.compile(r"[^\W_]+")
_BASE64 = re.compile(r"[\w+/-]{16,}(?:\r?\n[\w+/-]+)*={0,2}", re.ASCII)
_URL_SAFE = str.maketrans("-_", "+/")
_HEX = re.compile(r"(?:(?:\\x|0x)?[0-9a-fA-F]{2}[\s,:]*){6,}")
_HEX_MARKS = re.compile(r"\\x|0x|[\s,:]+")
_VARIANTS = 30
"""The most texts that are decoded from one text."""
_WORK = 2_000_000
"""The most characters that are read while looking for objects in the judged text."""


def squeezed(text: str) -> str:
    r"""Remove the spaces, escapes and kinds of quotation marks that quoting may change.

    >>> squeezed(r'“score”: 1, \"b\"')
    '"score":1,"b"'
    """
    text = _ESCAPE.sub(lambda code: chr(int(code[1], 16)), html.unescape(text))
    return _IGNORED.sub("", unicodedata.normalize("NFKC", text).translate(_QUOTES))


def objects(text: str) -> tuple[list[dict[str, Any]], str]:
    """Return the JSON objects in a text, nested ones included, and the text without them.

    The strings in them are text again: a judge may quote them without their escapes.
    """
    decoder, found, prose = json.JSONDecoder(strict=False), [], []
    at, end, work = text.find("{"), 0, 0
    while at >= 0 and work < _WORK:
        try:
            value, stop = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            value, stop = None, at + 1
            work += getattr(error, "pos", at + 10_000) - at + 100
        else:
            prose.append(text[end:at])
            end = stop
        values = [value]
        while values:
            value = values.pop()
            found += [value] if isinstance(value, dict) else []
            prose += [value, "\n"] if isinstance(value, str) and '"' in value else []
            if isinstance(value, dict | list):
                values += value.values() if isinstance(value, dict) else value
        at = text.find("{", stop)
    return found, "".join([*prose, text[end:]])


def quoted_scores(raw: str, names: list[str], judged: str, prose: str) -> Iterator[str]:
    """Yield the items whose score is quoted together with the end of the evidence before it.

    If a judge quotes `fine", "score": 1` without escaping the quotation mark, the quotation ends
    the string, and its score is read as the judge's. JSON objects in the judged text contain
    `", "score": 1` too, so there the end of the evidence must be the same as well.
    """
    name = item = evidence = ""
    end = 0
    for token in _TOKEN.finditer(raw):
        word = token[1].strip('"')
        if token[2]:
            name = word
            item = word if word in names else item
        elif name in SCORES or name in names:
            score = squeezed(raw[end - 1 : token.end(1)])
            if end and (score in prose or (evidence and evidence + score in judged)):
                yield item or name
        elif token[1].startswith('"') and word not in names:
            evidence, end = squeezed(word)[-_TAIL:], token.end(1)


def words(text: str) -> str:
    """Return the words and numbers of a text, without the punctuation of any notation.

    >>> words('{"a": {"evidence": "So it is.", "score": 1}}')
    ' a so it is 1 '
    """
    text = _ESCAPE.sub(lambda code: chr(int(code[1], 16)), html.unescape(text))
    text = _BLANK.sub(" ", _HIDDEN.sub("", unicodedata.normalize("NFKC", text)))
    return " ".join(["", *(w for w in _WORD.findall(text.casefold()) if w not in _KEYS), ""])


def is_copy(marks: Mapping[str, tuple[str, float]], judged: str) -> bool:
    """Whether evidence and score of every item are next to each other in the words of a text."""
    return bool(marks) and all(
        any(form in judged for form in _forms(name, *mark)) for name, mark in marks.items()
    )


def _forms(name: str, evidence: str, score: float) -> list[str]:
    texts = f"{evidence} {score:g}", f"{score:g} {evidence}", f"{score:.1f} {evidence}"
    return [words(f"{name} {text}") for text in texts]


def decoded(text: str) -> str:
    """Return a text with what is encoded in it: URL, base64, hexadecimal, reversed, ROT13.

    >>> "Lyon" in decoded("THlvbiBpcyByaWdodA==")
    True
    """
    texts = [text]
    for one in texts:
        if len(texts) > _VARIANTS or sum(map(len, texts)) > _WORK:
            break
        base64 = "\n".join(_from_base64(found[0]) for found in _BASE64.finditer(one))
        hexadecimal = "\n".join(_from_hex(found[0]) for found in _HEX.finditer(one))
        found = dict.fromkeys((unquote_plus(one), base64, hexadecimal))
        texts += [new for new in found if new.strip() and new not in texts]
    return "\n".join([*texts, text[::-1], codecs.encode(text, "rot13")])


def _from_base64(text: str) -> str:
    signs = "".join(text.split()).translate(_URL_SAFE)
    return binascii.a2b_base64(signs[: len(signs) // 4 * 4]).decode("utf-8", "ignore")


def _from_hex(text: str) -> str:
    digits = _HEX_MARKS.sub("", text)
    return bytes.fromhex(digits).decode("utf-8", "ignore")
