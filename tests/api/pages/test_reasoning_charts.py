"""The data of the charts of reasoning, and what they draw."""

import polars as pl
import pytest

import pennyweight
from pennyweight.api.pages.digest import digest
from pennyweight.api.pages.reasoning_charts import confidence_sources
from pennyweight.api.sources import resolve
from pennyweight.render.charts.catalogue import charts
from pennyweight.render.charts.reasoning import thinking as draw_thinking


def rows() -> list[dict]:
    tiers = {"T0": (20, 0.1, "445"), "T1": (900, 0.4, "444")}
    return [
        {
            "task_id": f"t{task}",
            "tier": tier,
            "attempt": attempt,
            "answer": answer,
            "target": "4",
            "stated_confidence": 0.95 if answer == "4" else 0.15,
            "completion_tokens": tokens + task,
            "reasoning_tokens": tokens - 10,
            "cost_usd": cost,
        }
        for tier, (tokens, cost, answers) in tiers.items()
        for task in range(4)
        for attempt, answer in enumerate(answers, 1)
    ]


def test_thinking_and_each_source_of_confidence_are_drawn() -> None:
    made = digest(resolve(rows()))
    found = made["charts"]
    stated, agreed = found["sources"]
    assert (stated["source"], agreed["source"]) == ("stated", "agreement of repeats")
    assert [b["n"] for b in stated["bins"]] == [4, 20]
    # two of three agree on the right answer, one of three gives the wrong one, and all three agree
    assert [(b["n"], b["right"]) for b in agreed["bins"]] == [(4, 0.0), (8, 1.0), (12, 1.0)]
    assert sum(b["n"] for b in agreed["bins"]) == len(rows())
    assert [r["name"] for r in found["thinking"]["rows"]] == ["T0", "T1"]
    assert [r["cost"] for r in found["thinking"]["rows"]] == pytest.approx([0.1, 0.4])
    scores = pennyweight.score(rows(), by="tier")
    means = [g.estimates["completion_tokens_mean"].value for g in scores.groups]
    assert [r["tokens"] for r in found["thinking"]["rows"]] == means
    drawn = {chart.name: chart for chart in charts(made)}
    assert "T1: 100.0 %, 902 tokens, $0.40 per attempt" in drawn["thinking"].svg
    assert drawn["sources"].svg.count("<circle") == 5
    assert len(drawn["sources"].rows) == 1 + 5


def test_nothing_is_drawn_where_records_do_not_have_it() -> None:
    plain = [{k: v for k, v in row.items() if k in {"task_id", "tier", "answer", "target"}}
             for row in rows() if row["attempt"] == 1]  # fmt: skip
    found = digest(resolve(plain))["charts"]
    assert found["sources"] is None
    assert found["thinking"] is None


@pytest.mark.parametrize("columns", [{}, {"correct": [True]}])
def test_frames_without_the_columns_have_no_sources(columns: dict) -> None:
    assert confidence_sources(pl.LazyFrame(columns)) is None


def test_what_thinking_buys_has_a_line_for_each_subject():
    rows = [
        {"name": f"{subject} · {tier}", "filter": {"subject": subject, "tier": tier},
         "value": 0.5, "low": None, "high": None, "tokens": tokens}
        for subject in ("large", "small") for tier, tokens in (("low", 10.0), ("high", 90.0))
    ]  # fmt: skip
    drawn = draw_thinking({"metric": "accuracy", "rows": rows}, lambda _: None).svg
    assert drawn.count('class="trend"') == 2
