"""What the judges of a run say, joined to its records: one consensus for each attempt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from assay.judge.consensus import consensus, differs, passes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.store.store import Run, Store

KEY = ["subject", "tier", "task_id", "attempt"]
NEEDED = (*KEY, "status", "ended")
"""The columns of a record without which nothing can be joined to it."""
_COLUMNS: dict[str, Any] = {
    "judge_scores": pl.List(pl.Float64),
    "impl_rate": pl.Float64,
    "judge_passed": pl.Boolean,
    "judge_cost_usd": pl.Float64,
}


@dataclass(frozen=True, slots=True)
class Panel:
    """The judgments of a run that count: by its judges, by its rubric."""

    rules: Mapping[str, Any]
    judgments: pl.DataFrame

    @classmethod
    def of(cls, run: Run, store: Store) -> Panel | None:
        """Find the panel of a run; None where no judge was ever to be asked."""
        rules = run.settings.get("judge")
        if not rules:
            return None
        counts = pl.col("judge").is_in([*rules["judges"], *rules["more"]])
        counts &= pl.col("fingerprint").str.starts_with(rules["mark"])
        return cls(rules, store.judgments(run.id).filter(counts))

    def join(self, records: pl.DataFrame) -> pl.DataFrame:
        """Add the consensus to records; where no judgment is valid, the list of scores is empty."""
        found = self.consensus(records)
        asked = pl.col("status").ne_missing("error") & pl.col("judge_scores").is_null()
        nothing = pl.lit([], dtype=pl.List(pl.Float64))
        return records.join(found, on=KEY, how="left", maintain_order="left").with_columns(
            pl.when(asked).then(nothing).otherwise(pl.col("judge_scores")).alias("judge_scores")
        )

    def consensus(self, records: pl.DataFrame) -> pl.DataFrame:
        """Make one row for each attempt that was judged since it was made."""
        mark = self.rules["rubric"]["pass_mark"]
        made = records.select(*KEY, "ended")
        current = self.judgments.join(made, on=KEY).filter(
            pl.col("ended").is_null() | (pl.col("at") >= pl.col("ended"))
        )
        valid = (pl.col("status") == "ok") & pl.col("score").is_not_null()
        cost = pl.col("cost_usd")
        bill = pl.when(cost.is_not_null().all()).then(cost.sum())
        table = current.group_by(KEY, maintain_order=True).agg(
            pl.col("score").filter(valid),
            pl.col("confidence").filter(valid),
            bill.alias("judge_cost_usd"),
        )
        rows = []
        for *key, scores, sure, paid in table.iter_rows():
            score = consensus(scores, sure, self.rules["consensus"])
            rows.append((*key, scores, score, passes(score, mark), paid))
        types = dict(zip(KEY, (pl.String, pl.String, pl.String, pl.Int64), strict=True))
        return pl.DataFrame(rows, schema={**types, **_COLUMNS}, orient="row")

    def facts(self) -> dict[str, Any]:
        """Count the judgments: valid, invalid, failed, and those whose claim is another."""
        names = ("score", "passed", "claimed_score", "claimed_passed")
        valid = self.judgments.filter(pl.col("status") == "ok")
        statuses = self.judgments["status"].value_counts().rows()
        by_judge = self.judgments.group_by("judge").len().sort("judge").rows()
        cost = self.judgments["cost_usd"].drop_nulls()
        return {
            "valid": valid.height,
            "invalid": dict(statuses).get("invalid", 0),
            "errors": dict(statuses).get("error", 0),
            "differing_claims": sum(differs(*row) for row in valid.select(names).iter_rows()),
            "by_judge": dict(by_judge),
            "cost_usd": float(cost.sum()) if len(cost) else None,
        }


def judgment_facts(run: Run, store: Store) -> dict[str, Any] | None:
    """Count the judgments of a run; None where there is no panel."""
    panel = Panel.of(run, store)
    return panel.facts() if panel else None
