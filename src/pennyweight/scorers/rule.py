"""Scorers that read the answer once more, by another rule than that of the suite."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import polars as pl

from pennyweight.errors import UsageError
from pennyweight.metrics.scores import name_problem
from pennyweight.scorers.declaration import Scorer
from pennyweight.text.extraction import AnswerRule
from pennyweight.text.extraction import answer as find_answer
from pennyweight.text.matching import MatchRule, matches

RULES = ("answer", "match")


def rule_scorer(name: str, given: Mapping[str, Any]) -> Scorer:
    """Return the scorer of a name that finds and matches the answer by rules of its own.

    >>> one = rule_scorer("last_number", {"answer": "last_number", "match": "numeric"})
    >>> one.score({"response": "So 2 + 2 = 4.0", "target": "4"})
    {'last_number': True}
    """
    try:
        if problem := name_problem(name):
            raise UsageError(problem)
        for key in given:
            if key not in RULES:
                raise UsageError(f"it takes {' and '.join(map(repr, RULES))}, not {key!r}.")
        _rules(_written(given))
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None
    summary = "Whether the answer that another rule finds matches the target."
    options = {"rules": _written(given)}
    return Scorer(name, _by_rule, ("response", "target"), summary, options=options)


def _written(given: Mapping[str, Any]) -> str:
    return json.dumps(given, sort_keys=True, default=str)


@lru_cache
def _rules(written: str) -> tuple[AnswerRule, MatchRule]:
    given = json.loads(written)
    answer = AnswerRule.parse(given["answer"]) if "answer" in given else AnswerRule()
    return answer, MatchRule.parse(given.get("match", "exact"))


def _by_rule(response: str | None, target: str | None, *, rules: str) -> bool | None:
    answer_rule, match_rule = _rules(rules)
    row = pl.DataFrame({"r": [response], "t": [target]}, schema={"r": pl.String, "t": pl.String})
    right = matches(find_answer(pl.col("r"), answer_rule), pl.col("t"), match_rule)
    found: bool | None = row.select(right.alias("right")).item()
    return found
