"""A price list: reprices the records of an old run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pennyweight.errors import UsageError
from pennyweight.measures.cost import cost_of_tokens
from pennyweight.models.prices import recorded
from pennyweight.schema.documents import read_document
from pennyweight.schema.tree import TreeError, parse, plain
from pennyweight.store.store import StoredRun
from pennyweight.suite.declaration import PRICES
from pennyweight.suite.values import Price

_TOKENS = ("prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens")
_RATES = ("input", "output", "cached_input", "cache_write")
"""The rates of these tokens."""


@dataclass(frozen=True, slots=True)
class PriceList:
    """Prices by model or subject, from a file."""

    path: str
    prices: Mapping[str, Price]

    @classmethod
    def read(cls, path: str) -> PriceList:
        """Read a YAML or JSON file that maps models or subjects to prices per million tokens."""
        document = read_document(path)
        problems = document.problems
        prices = PRICES.read(document.root, "prices", problems)
        if not problems.found and not prices:
            problems.add(0, "it names no model or subject.")
        problems.stop()
        own = {"source": Path(path).name}
        return cls(path, {name: Price(**(own | values)) for name, values in prices.items()})

    def of(self, run: StoredRun) -> dict[str, Price]:
        """Return the prices of the subjects of a run that the file names."""
        models = _models(run)
        found = {}
        for subject in run.sides["subject"]:
            model = models.get(subject, subject)
            names = (subject, model, recorded(model))
            price = next((self.prices[n] for n in names if n in self.prices), None)
            if price:
                found[subject] = price
        if not found:
            subjects = ", ".join(sorted({*run.sides["subject"], *models.values()}))
            raise UsageError(
                f"--prices {self.path} names no subject or model of run {run.id}. "
                f"The run has: {subjects}."
            )
        return found


def priced(frame: pl.DataFrame, prices: Mapping[str, Price]) -> pl.DataFrame:
    """Recompute the cost of these subjects' records from their tokens."""
    subject = pl.col("subject")
    named = subject.is_in(list(prices))

    def new(column: str, values: dict[str, Any], kind: Any) -> pl.Expr:
        found = subject.replace_strict(values, default=None, return_dtype=kind)
        return pl.when(named).then(found).otherwise(pl.col(column)).alias(column)

    frame = frame.with_columns(
        *(
            new(f"{rate}_price", {n: getattr(p, rate) for n, p in prices.items()}, pl.Float64)
            for rate in _RATES
        ),
        new("price_source", {n: p.origin for n, p in prices.items()}, pl.String),
    )
    used = cost_of_tokens(list(map(pl.col, _TOKENS)), [pl.col(f"{rate}_price") for rate in _RATES])
    made = named & (pl.col("status") != "error")
    cost = pl.when(made).then(used).otherwise(pl.col("cost_usd"))
    return frame.with_columns(cost.alias("cost_usd"))


def _models(run: StoredRun) -> dict[str, str]:
    """Return the model of each subject, read from the text of the suite."""
    try:
        root, _ = parse(run.text, is_json=run.path.lower().endswith(".json"))
    except TreeError:
        return {}
    suite = plain(root)
    models: dict[str, str] = {}
    for subject in suite.get("subjects") or () if isinstance(suite, dict) else ():
        entry = subject if isinstance(subject, dict) else {"model": subject}
        model = str(entry.get("model", ""))
        models[str(entry.get("name", model))] = model
    return models
