"""What the judges of a run say, joined to its records: one consensus for each attempt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from pennyweight.record import KEY_IN_RUN
from pennyweight.scoring.consensus import consensus, differs, passes
from pennyweight.store.bills import judging_costs
from pennyweight.store.store import Run, Store

NEEDED = (*KEY_IN_RUN, "status", "ended")
"""The columns of a record without which nothing can be joined to it."""
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
    """The judgments of a run that count: by its judges, by its rubric."""

    rules: Mapping[str, Any]
    judgments: pl.DataFrame
    bills: pl.DataFrame
    """What was paid for judging each attempt, by whomever."""

    @classmethod
    def of(cls, run: Run, store: Store) -> Panel | None:
        """Find the panel of a run; None where no judge was ever to be asked."""
        rules = run.settings.get("judge")
        if not rules:
            return None
        counts = pl.col("judge").is_in([*rules["judges"], *rules["more"]])
        counts &= pl.col("fingerprint").str.starts_with(rules["mark"])
        return cls(
            rules, store.judgments(run.id, _READ).filter(counts), judging_costs(store, run.id)
        )

    def join(self, records: pl.DataFrame) -> pl.DataFrame:
        """Add the consensus to records; where no judgment is valid, the list of scores is empty."""
        found = self.consensus(records)
        asked = pl.col("status").ne_missing("error") & pl.col("judge_scores").is_null()
        nothing = pl.lit([], dtype=pl.List(pl.Float64))
        joined = records.join(found, on=KEY_IN_RUN, how="left", maintain_order="left").with_columns(
            pl.when(asked).then(nothing).otherwise(pl.col("judge_scores")).alias("judge_scores")
        )
        return joined.join(self.bills, on=KEY_IN_RUN, how="left", maintain_order="left")

    def current(self, records: pl.DataFrame) -> pl.DataFrame:
        """Choose one judgment by each judge, made since the attempt was: the last valid one."""
        made = records.select(*KEY_IN_RUN, "ended")
        ok = pl.col("status") == "ok"
        return (
            self.judgments.join(made, on=KEY_IN_RUN)
            .filter(pl.col("ended").is_null() | (pl.col("at") >= pl.col("ended")))
            .sort(ok, "at", maintain_order=True)
            .unique([*KEY_IN_RUN, "judge"], keep="last", maintain_order=True)
            .sort("judge", maintain_order=True)
        )

    def consensus(self, records: pl.DataFrame) -> pl.DataFrame:
        """Make one row for each attempt that was judged since it was made."""
        mark = self.rules["rubric"]["pass_mark"]
        valid = (pl.col("status") == "ok") & pl.col("score").is_not_null()
        table = (
            self.current(records)
            .group_by(KEY_IN_RUN, maintain_order=True)
            .agg(
                pl.col("score").filter(valid),
                pl.col("confidence").filter(valid),
            )
        )
        rows = []
        for *key, scores, sure in table.iter_rows():
            score = consensus(scores, sure, self.rules["consensus"])
            rows.append((*key, scores, score, passes(score, mark)))
        types = dict(zip(KEY_IN_RUN, (pl.String, pl.String, pl.String, pl.Int64), strict=True))
        return pl.DataFrame(rows, schema={**types, **_COLUMNS}, orient="row")

    def facts(self, records: Iterable[pl.DataFrame]) -> dict[str, Any]:
        """Count the judgments: valid, invalid, failed, and those whose claim is another."""
        names = ("score", "passed", "claimed_score", "claimed_passed")
        current = pl.concat([self.judgments.clear(), *map(self._counted, records)])
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

    def _counted(self, records: pl.DataFrame) -> pl.DataFrame:
        return self.current(records).select(self.judgments.columns)


def judgment_facts(run: Run, store: Store) -> dict[str, Any] | None:
    """Count the judgments of a run; None where there is no panel."""
    panel = Panel.of(run, store)
    return panel.facts(store.records(run.id, {*KEY_IN_RUN, "ended"})) if panel else None
