"""The judgments of a run, joined to its records: one consensus for each attempt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from pennyweight.record import KEY_IN_RUN
from pennyweight.scoring.consensus import consensus, differs, passes
from pennyweight.store.bills import judging_costs
from pennyweight.store.store import Store, StoredRun

NEEDED = (*KEY_IN_RUN, "status", "ended")
"""The columns of a record that joining needs."""
_COLUMNS: dict[str, Any] = {
    "judge_scores": pl.List(pl.Float64),
    "impl_rate": pl.Float64,
    "judge_passed": pl.Boolean,
}
_READ = {
    *(*KEY_IN_RUN, "judge", "fingerprint", "status", "score", "passed", "confidence"),
    *("claimed_score", "claimed_passed", "at"),
}


@dataclass(frozen=True, slots=True)
class Panel:
    """The judgments by the current judges and rubric of a run."""

    rules: Mapping[str, Any]
    judgments: pl.DataFrame
    bills: pl.DataFrame
    """The cost of judging each attempt, by all judges ever asked."""

    @classmethod
    def of(cls, run: StoredRun, store: Store, *, items: bool = False) -> Panel | None:
        """Return the panel of a run, with the `items` of its judgments; None without judges."""
        rules = run.settings.get("judge")
        if not rules:
            return None
        counts = pl.col("judge").is_in([*rules["judges"], *rules["more"]])
        counts &= pl.col("fingerprint").str.starts_with(rules["mark"])
        read = {*_READ, "items"} if items else _READ
        judgments = store.judgments(run.id, read).filter(counts)
        return cls(rules, judgments, judging_costs(store, run.id))

    def join(self, records: pl.DataFrame) -> pl.DataFrame:
        """Add the consensus to records; without a valid judgment, the list of scores is empty."""
        joined = records
        for table in (self.consensus(records), self.bills):
            joined = joined.join(table, on=KEY_IN_RUN, how="left", maintain_order="left")
        unjudged = pl.col("status").ne_missing("error") & pl.col("judge_scores").is_null()
        nothing = pl.lit([], dtype=pl.List(pl.Float64))
        scores = pl.when(unjudged).then(nothing).otherwise(pl.col("judge_scores"))
        return joined.with_columns(scores.alias("judge_scores"))

    def current(self, records: pl.DataFrame) -> pl.DataFrame:
        """Select each judge's last valid judgment that is not older than the attempt."""
        made = records.select(*KEY_IN_RUN, "ended")
        ok = pl.col("status") == "ok"
        return (
            self.judgments.join(made, on=KEY_IN_RUN)
            .filter(pl.col("ended").is_null() | (pl.col("at") >= pl.col("ended")))
            .sort(ok, "at", maintain_order=True)
            .unique([*KEY_IN_RUN, "judge"], keep="last", maintain_order=True)
            .sort("judge", maintain_order=True)
        )

    def with_judgments(self, records: pl.DataFrame) -> pl.DataFrame:
        """Add the current judgments of each record as a list; null where there is none."""
        said = pl.struct("judge", "status", "score", "items").alias("judgments")
        spoken = self.current(records).group_by(KEY_IN_RUN, maintain_order=True).agg(said)
        return records.join(spoken, on=KEY_IN_RUN, how="left", maintain_order="left")

    def consensus(self, records: pl.DataFrame) -> pl.DataFrame:
        """Return one row for each attempt that was judged since it was made."""
        mark = self.rules["rubric"]["pass_mark"]
        valid = (pl.col("status") == "ok") & pl.col("score").is_not_null()
        table = (
            self.current(records)
            .group_by(KEY_IN_RUN, maintain_order=True)
            .agg(pl.col("score", "confidence").filter(valid))
        )
        rows = []
        for *key, scores, sure in table.iter_rows():
            score = consensus(scores, sure, self.rules["consensus"])
            rows.append((*key, scores, score, passes(score, mark)))
        types = dict(zip(KEY_IN_RUN, (pl.String, pl.String, pl.String, pl.Int64), strict=True))
        return pl.DataFrame(rows, schema={**types, **_COLUMNS}, orient="row")

    def facts(self, records: Iterable[pl.DataFrame]) -> dict[str, Any]:
        """Count the judgments: valid, invalid, failed, and those that claim another result."""
        names = ("score", "passed", "claimed_score", "claimed_passed")
        columns = self.judgments.columns
        frames = (self.current(frame).select(columns) for frame in records)
        current = pl.concat([self.judgments.clear(), *frames])
        valid = current.filter(pl.col("status") == "ok")
        statuses = dict(current["status"].value_counts().rows())
        cost = self.bills["judge_cost_usd"].drop_nulls()
        return {
            "valid": valid.height,
            "invalid": statuses.get("invalid", 0),
            "errors": statuses.get("error", 0),
            "differing_claims": sum(differs(*row) for row in valid.select(names).iter_rows()),
            "by_judge": dict(current.group_by("judge").len().sort("judge").rows()),
            "cost_usd": float(cost.sum()) if len(cost) else None,
        }


def judgment_facts(run: StoredRun, store: Store) -> dict[str, Any] | None:
    """Count the judgments of a run; None if it has no judges."""
    panel = Panel.of(run, store)
    return panel.facts(store.records(run.id, {*KEY_IN_RUN, "ended"})) if panel else None
