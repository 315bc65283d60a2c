"""Ready-made scorers that compare a text with the target, without a model."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

from pennyweight.errors import UsageError
from pennyweight.scorers.declaration import scorer

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_CURRENCY = re.compile(r"[$€£¥₹]|\b(?:usd|eur|gbp|jpy|inr|dollars?|euros?|pounds?|cents?)\b")
_UNITS = re.compile(
    r"(?<=[0-9])\s*(?:%|percent|km|cm|mm|m|kg|g|mg|l|ml|s|ms|h|min|hours?|minutes?|seconds?|days?"
    r"|miles?|feet|inches|metres?|meters?|degrees?|°[cf]?)(?![a-z])"
)
_THOUSANDS = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")
_share = partial(scorer, unit="share", range=(0, 1))


def plain(
    text: str,
    *,
    punctuation: bool = True,
    articles: bool = True,
    currency: bool = False,
    units: bool = False,
) -> str:
    """Return a text in lower case, without what does not count in a comparison.

    >>> plain("The  Eiffel Tower."), plain("$1,200.50", currency=True), plain("5 km", units=True)
    ('eiffel tower', '1200.50', '5')
    """
    text = _THOUSANDS.sub("", text.lower())
    if currency:
        text = _CURRENCY.sub(" ", text)
    if units:
        text = _UNITS.sub("", text)
    if punctuation:
        kept = "." if re.search(r"[0-9]\.[0-9]", text) else ""
        text = text.translate({k: v for k, v in _PUNCTUATION.items() if chr(k) != kept})
        text = re.sub(r"(?<![0-9])\.|\.(?![0-9])", "", text)
    if articles:
        text = _ARTICLES.sub(" ", text)
    return " ".join(text.split())


def _targets(target: str, separator: str | None) -> list[str]:
    return target.split(separator) if separator else [target]


@scorer
def exact_match(
    answer: str | None,
    target: str | None,
    *,
    punctuation: bool = True,
    articles: bool = True,
    currency: bool = False,
    units: bool = False,
    separator: str | None = None,
) -> bool | None:
    """Whether the answer equals the target, apart from case, white space and what is named.

    Punctuation and articles are ignored unless switched off; signs of currencies and units after
    numbers if switched on. With `separator`, the target lists several right answers.

    >>> exact_match("The Eiffel Tower!", "eiffel tower"), exact_match("$5", "5", currency=True)
    (True, True)
    """
    if target is None:
        return None
    settings = {"punctuation": punctuation, "articles": articles}
    settings |= {"currency": currency, "units": units}
    said = None if answer is None else plain(answer, **settings)
    return any(said == plain(one, **settings) for one in _targets(target, separator))


@_share
def token_f1(
    answer: str | None, target: str | None, *, separator: str | None = None
) -> float | None:
    """F1 of the words that answer and target share, as in SQuAD.

    Case, punctuation and articles are ignored. With `separator`, the target lists several right
    answers, of which the most similar one counts.

    >>> round(token_f1("in Paris, France", "Paris"), 3)
    0.5
    """
    if target is None:
        return None
    said = plain(answer or "").split()
    return max(_f1(said, plain(one).split()) for one in _targets(target, separator))


def _f1(said: Sequence[str], wanted: Sequence[str]) -> float:
    if not said or not wanted:
        return float(not said and not wanted)
    shared = sum((Counter(said) & Counter(wanted)).values())
    return 2 * shared / (len(said) + len(wanted))


@_share
def rouge_l(answer: str | None, target: str | None, response: str | None = None) -> float | None:
    """ROUGE-L: F1 of the longest sequence of words that the text and the target have in common.

    The text is the answer, or the whole reply if no answer was found.

    >>> rouge_l("the cat is on the mat", "the cat sat on the mat")
    0.8333333333333334
    """
    if target is None:
        return None
    said, wanted = _words(answer or response or ""), _words(target)
    if not said or not wanted:
        return 0.0
    return 2 * _longest(said, wanted) / (len(said) + len(wanted))


def _words(text: str) -> list[str]:
    return re.sub(r"[^a-z0-9]+", " ", text.lower()).split()


def _longest(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the longest common subsequence."""
    row = [0] * (len(other) + 1)
    for word in one:
        before = 0
        for at, there in enumerate(other, 1):
            before, row[at] = row[at], before + 1 if word == there else max(row[at], row[at - 1])
    return row[-1]


def _sacrebleu() -> Any:
    try:
        return import_module("sacrebleu")
    except ImportError as error:
        hint = "pip install 'pennyweight[bleu]'"
        raise UsageError(f"BLEU and chrF need sacrebleu: {hint}.") from error


@_share
def bleu(answer: str | None, target: str | None, response: str | None = None) -> float | None:
    """BLEU of one text, by sacrebleu, from 0 to 1; orders without a match are left out.

    The mean of many is not the BLEU of a corpus. Needs the extra `bleu`.

    >>> round(bleu("the cat sat", "the cat sat"), 6)  # doctest: +SKIP
    1.0
    """
    if target is None:
        return None
    found = _sacrebleu().sentence_bleu(answer or response or "", [target])
    return float(found.score) / 100


@_share
def chrf(answer: str | None, target: str | None, response: str | None = None) -> float | None:
    """Score how many sequences of characters a text shares with the target: chrF by sacrebleu.

    Needs the extra `bleu`.

    >>> round(chrf("the cat sat", "the cat sat"), 6)  # doctest: +SKIP
    1.0
    """
    if target is None:
        return None
    return float(_sacrebleu().sentence_chrf(answer or response or "", [target]).score) / 100
