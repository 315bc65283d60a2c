"""The question that a scorer puts to a judge, and how replies become a score."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pennyweight.errors import UsageError, unknown
from pennyweight.metrics.scores import MAX_LABELS
from pennyweight.scorers.pairing import EQUAL, ORDERS, OTHER, OWN, Pairing

MAX_SCORE = 100
_COLUMN = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_SCALE = re.compile(r"\s*([0-9]{1,3})\s*[-–]\s*([0-9]{1,3})\s*")
_CRITERIA = """\
Criteria: {criteria}
First work out for yourself which steps these criteria call for, and take each of them. Then say \
how far {{{{ response }}}}, the reply to {{{{ input }}}}, meets the criteria.
"""
_COMPARED = """\
Criteria: {criteria}
First work out for yourself which steps these criteria call for, and take each of them for both \
replies. Then say which reply to {{{{ input }}}} meets the criteria better.
"""
_SETTINGS = ("prompt", "criteria", "rubric", "choice", "pairwise", "better")
_WAYS = ("rubric", "choice", "pairwise")


@dataclass(frozen=True, slots=True)
class Question:
    """What a judge is asked about a record: a score, which label fits, or which reply is better."""

    prompt: str
    """The question. `{{ column }}` names what the judge is shown."""
    lowest: int = 1
    highest: int = 5
    labels: tuple[str, ...] = ()
    """The labels to choose from; a judge names the number of one, from 1 on."""
    pair: Pairing | None = None
    """What the reply is compared with; then the labels say which of the two is better."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Question:
        """Read a question as a suite writes it; raise UsageError for a mistake."""
        for key in given:
            if key not in _SETTINGS:
                raise UsageError(unknown("Setting", str(key), _SETTINGS))
        if len(given.keys() & {"prompt", "criteria"}) != 1:
            raise UsageError("write either 'prompt' or 'criteria'.")
        text = given.get("prompt", given.get("criteria"))
        if not isinstance(text, str) or not text.strip():
            raise UsageError("'prompt' and 'criteria' are texts.")
        if len(given.keys() & {*_WAYS}) > 1:
            raise UsageError("write one of 'rubric', 'choice' and 'pairwise'.")
        if "criteria" in given:
            form = _COMPARED if "pairwise" in given else _CRITERIA
            text = form.format(criteria=text.strip())
        if "pairwise" in given:
            return cls.comparing(text, Pairing.of(given["pairwise"]))
        if "choice" in given:
            labels = _labels(given["choice"])
            return cls(text, 1, len(labels), labels)
        return cls(text, *_scale(given.get("rubric", "1-5")))

    @classmethod
    def comparing(cls, prompt: str, pair: Pairing) -> Question:
        """Return the question which of two replies is better."""
        return cls(prompt, 1, 3, (OWN, OTHER, EQUAL), pair)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that the judge is shown: those in the question, else task and reply."""
        named = tuple(dict.fromkeys(_COLUMN.findall(self.prompt)))
        if self.pair is None:
            return named or ("input", "response")
        column = (self.pair.column,) if self.pair.column else ()
        return tuple(dict.fromkeys((*(named or ("input",)), "response", *column)))

    @property
    def orders(self) -> int:
        """In how many orders a judge is asked."""
        return ORDERS if self.pair else 1

    @property
    def text(self) -> str:
        """The question, with the names of columns in place of what they hold."""
        return _COLUMN.sub(r"the \1", self.prompt).strip()

    @property
    def scores(self) -> tuple[int, ...]:
        """The scores that a judge can give."""
        return tuple(range(self.lowest, self.highest + 1))

    def label(self, scores: Sequence[float]) -> str | None:
        """Return the label that most judges chose; None if there is no such label.

        >>> Question("Which?", 1, 2, ("yes", "no")).label([1, 2, 2])
        'no'
        """
        most = Counter(scores).most_common(2)
        if not most or (len(most) > 1 and most[0][1] == most[1][1]):
            return None
        return self.labels[int(most[0][0]) - 1]


def _scale(given: Any) -> tuple[int, int]:
    found = _SCALE.fullmatch(given) if isinstance(given, str) else None
    ends = (int(found[1]), int(found[2])) if found else (0, 0)
    if not ends[0] < ends[1] <= MAX_SCORE:
        raise UsageError(f"'rubric' is a scale such as 1-5, up to {MAX_SCORE}, not {given!r:.40}.")
    return ends


def _labels(given: Any) -> tuple[str, ...]:
    texts = isinstance(given, list) and all(isinstance(one, str) for one in given)
    if not texts or not 2 <= len(set(given)) == len(given) <= MAX_LABELS:
        raise UsageError(
            f"'choice' is a list of 2 to {MAX_LABELS} labels; quote yes, no and numbers."
        )
    return tuple(given)
