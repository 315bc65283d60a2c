"""Whether a context supports what an answer says: a screen by overlap, numbers and quotations.

It compares letters, not meaning: a paraphrase may look unsupported, and a negation supported.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

TAU = 0.5
"""The share of a sentence's trigrams that a passage must have to support it."""

_SENTENCE = re.compile(r"(?<=[.!?])(?:[\"'”’)\]]*)\s+|\n+")
_CITED = re.compile(r"[\[【]\^?(\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*)[\]】]")
_CITED_AFTER = re.compile(rf"([.!?])((?:[ \t]*{_CITED.pattern})+)(?=\s|$)")
"""Citations after a full stop belong to the sentence before."""
_PLACES = re.compile(r"(\d+)(?:\s*[–-]\s*(\d+))?")
_WORD = re.compile(r"\w+(?:[.,]\d+)*")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?")
_QUOTED = re.compile(r"[\"“]([^\"“”\n]{2,200})[\"”]")
_FEWEST_WORDS = 3
_LONGEST = 200_000


class Support(NamedTuple):
    """The sentences of an answer, and the citations in them."""

    sentences: int = 0
    unsupported: int = 0
    citations: int = 0
    right_citations: int = 0
    """Citations of a passage that supports the sentence."""
    cited: int = 0
    """Supported sentences that cite a passage which supports them."""


def passages(context: str) -> list[str]:
    """Return the passages of a context: the strings of a JSON list, else the text itself.

    >>> passages('["one", "two"]'), passages("one text")
    (['one', 'two'], ['one text'])
    """
    if context.startswith("["):
        try:
            found = json.loads(context)
        except (ValueError, RecursionError):
            return [context]
        if isinstance(found, list) and all(isinstance(one, str) for one in found):
            return found
    return [context]


def support(context: str, answer: str, tau: float = TAU) -> Support:
    """Check each sentence of an answer against a context.

    A sentence is unsupported if no passage has the share `tau` of its letter trigrams, or if a
    number or a quotation in it is nowhere in the context. Sentences of one or two words do not
    count.

    >>> support("The mill opened in 1887.", "It opened in 1887. It closed in 1990.")
    Support(sentences=2, unsupported=1, citations=0, right_citations=0, cited=0)
    """
    if len(context) > _LONGEST or len(answer) > _LONGEST:
        context, answer = context[:_LONGEST], answer[:_LONGEST]
    known = passages(context)
    trigrams = [_trigrams(one) for one in known]
    numbers = {_plain(n) for one in known for n in _NUMBER.findall(one)}
    whole = " ".join(_words(one) for one in known)
    sentences = unsupported = citations = right = cited = 0
    for sentence in _SENTENCE.split(_CITED_AFTER.sub(r"\2\1", answer)):
        places = [n for group in _CITED.findall(sentence) for n in _places(group)]
        bare = _CITED.sub("", sentence)
        if len(_WORD.findall(bare)) < _FEWEST_WORDS:
            continue
        sentences += 1
        own = _trigrams(bare)
        holding = {i for i, other in enumerate(trigrams, 1) if _share(own, other) >= tau}
        named = all(_plain(n) in numbers for n in _NUMBER.findall(bare))
        quoted = all(_words(q) in whole for q in _QUOTED.findall(bare))
        supported = bool(holding) and named and quoted
        unsupported += not supported
        hits = [place in holding for place in places]
        citations, right = citations + len(hits), right + sum(hits)
        cited += supported and any(hits)
    return Support(sentences, unsupported, citations, right, cited)


def _places(group: str) -> list[int]:
    """List the passages that a citation names, of a range at most twenty.

    >>> _places("1, 3-5")
    [1, 3, 4, 5]
    """
    ends = [(int(low), int(high or low)) for low, high in _PLACES.findall(group)]
    return [place for low, high in ends for place in range(low, min(high, low + 19) + 1)]


def overlap(context: str, sentence: str) -> float:
    """Return the largest share of a sentence's trigrams that a passage has.

    >>> overlap("The mill opened in 1887.", "The mill opened.")
    1.0
    """
    own = _trigrams(sentence)
    return max((_share(own, _trigrams(one)) for one in passages(context)), default=0.0)


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))


def _trigrams(text: str) -> set[str]:
    words = _words(text)
    return {words[i : i + 3] for i in range(len(words) - 2)}


def _share(own: set[str], other: set[str]) -> float:
    return len(own & other) / len(own) if own else 0.0


def _plain(number: str) -> str:
    text = number.replace(",", "")
    return text.rstrip("0").rstrip(".") if "." in text else text
