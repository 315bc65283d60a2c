import json
import math
import re
from dataclasses import replace

import pytest

from cli.command import strict_json
from pennyweight import MetricsSummary, Scores
from pennyweight.api.compare import compare
from pennyweight.api.score import score
from pennyweight.catalogue import METRICS
from pennyweight.render.catalogue import why_missing
from pennyweight.render.comparison import as_table
from pennyweight.render.format import estimate_cells
from pennyweight.render.scores import render

ROWS = [{"id": i, "target": "1", "answer": "1" if i else "2", "x": i % 2} for i in range(4)]


@pytest.fixture(scope="module")
def found() -> Scores:
    return score(ROWS)


@pytest.mark.parametrize("format_", ["table", "markdown", "csv", "json"])
def test_every_metric_is_in_every_format(format_: str, found: Scores) -> None:
    text = render(found, format_, every=True).replace("\\_", "_")
    always = format_ in {"csv", "json"}
    assert all(n in text for n, m in METRICS.items() if always or m.family != "repeats")
    assert text.endswith("\n")


def test_metrics_of_repeated_attempts_are_shown_where_tasks_were_repeated() -> None:
    assert "pass_at_k" not in render(score(ROWS), "table")
    again = [{**row, "attempt": i} for row in ROWS for i in (1, 2)]
    for format_ in ("table", "markdown"):
        text = " ".join(render(score(again), format_).replace("\\_", "_").split())
        assert "pass_at_k" in text
        assert "g_pass_at_k" not in text
        assert "2 attempts at each task; k is 2." in text
        assert "add tasks, not repeats" in text
    named = render(score(ROWS, metrics=["pass_at_k"]), "table")
    assert "needs several attempts at a task" in named
    assert "no task has 3 attempts" in render(score(again, metrics=["k_of_n"], k=3), "table")


def test_json_is_strict_and_the_same_as_the_value(found: Scores) -> None:
    assert strict_json(render(found, "json")) == json.loads(json.dumps(found.to_dict()))


def test_nan_is_never_written(found: Scores) -> None:
    group = found.groups[0]
    broken = replace(group["accuracy"], value=math.nan)
    bad = replace(group, estimates={**group.estimates, "accuracy": broken})
    written = json.loads(render(replace(found, groups=(bad,)), "json"))
    assert written["groups"][0]["metrics"]["accuracy"] is None


def test_why_there_is_no_value_is_said(found: Scores) -> None:
    group = found.groups[0]
    assert why_missing("brier", group) == "needs prob_correct"
    assert why_missing("weighted_score", group) == "needs --weight for metrics that have a value"
    assert why_missing("grade", group) == "needs composite_median"


def test_answers_that_are_all_the_same_are_not_said_to_be_missing() -> None:
    same = score([{"id": i, "answer": "1"} for i in range(3)], metrics=["sce_normalized"])
    assert why_missing("sce_normalized", same.groups[0]) == "needs two different answers"
    assert "needs two different answers" in render(same, "table")


def test_what_is_asked_for_by_name_stays_with_the_reason_why_it_has_no_value() -> None:
    rows = [{**row, "cost_usd": 0.5} if row["x"] else row for row in ROWS]
    text = render(score(rows, by="x", metrics=["cost_usd_mean", "brier"]), "table")
    assert re.search(r"^  cost_usd_mean +— +\$0.50$", text, re.MULTILINE)
    assert re.search(r"^  brier +— +—$", text, re.MULTILINE)
    assert "cost_usd_mean has no value for x=0: needs cost_usd.\n" in text
    assert "brier has no value: needs prob_correct.\n" in text
    assert "left out" not in text
    assert "brier" not in render(score(rows, by="x"), "table")


MANY = [{"id": i, "target": "1", "answer": "1", "x": i % 2} for i in range(20_000)]


@pytest.mark.parametrize(
    ("format_", "by", "right", "wrong"),
    [
        ("table", [], r"100\.0 % +99\.98 to 100\.0 %", r"0\.0 % +0\.0 to 0\.02 %"),
        ("table", ["x"], r"100\.0 %\n +99\.97 to 100\.0", r"0\.0 %\n +0\.0 to 0\.03"),
        ("markdown", [], r"100\.0 % \| 99\.98 to 100\.0 %", r"0\.0 % \| 0\.0 to 0\.02 %"),
    ],
)
def test_no_number_of_right_answers_is_certainty(
    format_: str, by: list[str], right: str, wrong: str
) -> None:
    text = render(score(MANY, by=by, metrics=["accuracy", "error_rate"]), format_)
    assert re.search(rf"accuracy.*{right}", text), text
    assert re.search(rf"error\\?_rate.*{wrong}", text), text
    lines = [x for x in text.splitlines() if "99.9" in x or "0.0 to" in x]
    assert len({len(line) for line in lines}) == 1 or format_ == "markdown"


def test_one_group_can_be_asked_by_name_and_several_cannot(found: Scores) -> None:
    assert found["accuracy"].value == 0.75
    assert found.summary().accuracy == 0.75
    with pytest.raises(KeyError, match="No group"):
        score(ROWS, by="x")["accuracy"]


def test_the_summary_has_the_fields_of_its_specification(found: Scores) -> None:
    assert list(MetricsSummary.__dataclass_fields__) == [
        *("accuracy", "brier", "ece", "sce", "usr", "cot_tokens_mean", "cot_chars_mean"),
        *("step_count_mean", "ra_ratio_mean", "self_correction_rate", "prompt_tokens_mean"),
        *("completion_tokens_mean", "total_tokens_mean", "latency_mean_ms", "latency_p95_ms"),
    ]
    assert score(ROWS, metrics=["usr"]).summary().accuracy is None


def test_the_value_reads_well_and_is_a_frame(found: Scores) -> None:
    text = repr(found)
    assert text.startswith("all: 4 records, 0 errors")
    assert "accuracy" in text
    frame = score(ROWS, by="x").to_polars()
    assert frame.columns == ["x", "metric", "value", "low", "high", "grade", "records", "skipped"]
    assert frame.height == 2 * len(METRICS)


LONG = [
    {
        "id": i // 2,
        "attempt": i % 2 + 1,
        "tier": f"T{i % 3}",
        "target": "1",
        "answer": "1",
        "cot": "a b",
        "cost_usd": 3.2e-7 * (i + 1),
        "latency_ms": 1234567.8 * (i + 1),
        "judge_scores": [0.5, 0.1 * (i % 9)],
    }
    for i in range(24)
]


@pytest.mark.parametrize("by", [[], ["tier"]])
@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_table_fits_and_cuts_no_number(
    by: list[str], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    scores = score(LONG, by=by)
    text = render(scores, "table", every=True)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for group in scores.groups:
        for name, e in group.estimates.items():
            if e.value is not None:
                row = [other[name] for other in scores.groups] if by else ()
                assert estimate_cells(name, e, others=row)[0] in text, name
    if not by:
        title = text.splitlines()[0]
        assert title.endswith("records")
        wanted = f"{scores['accuracy'].records:,}"
        assert next(x for x in text.splitlines() if "  accuracy" in x).endswith(f" {wanted}")


def test_a_comparison_shows_no_certainty_either() -> None:
    rows = [{"id": i // 2, "tier": f"T{i % 2}", "target": "1", "answer": "1"} for i in range(4000)]
    text = as_table(compare(rows, by="tier"))
    assert "99.8 to 100.0" in text
    assert "100.0 to 100.0" not in text


FEW = "A few tasks decide cost_usd_mean: its interval may be too narrow; more tasks help."


@pytest.mark.parametrize("largest", [9.0, 0.1])
def test_a_mean_that_a_few_tasks_decide_has_a_note(largest: float) -> None:
    costs = [0.1 + i / 1000 for i in range(19)] + [largest]
    rows = [{"task_id": str(i), "passed": True, "cost_usd": c} for i, c in enumerate(costs)]
    scores = score(rows, metrics=["pass_rate", "cost_usd_mean"])
    few = largest > 1
    assert scores["cost_usd_mean"].skewed == few
    assert scores.to_dict()["groups"][0]["skewed"] == ({"cost_usd_mean": True} if few else {})
    assert (FEW in render(scores, "markdown").replace("\\", "")) == few
    assert (FEW in " ".join(render(scores, "table").split())) == few


UNSEEN = "a kind of task that makes up 14 % of all may be missing: intervals of costs"


@pytest.mark.parametrize(
    ("tasks", "metric", "noted"),
    [(20, "cost_usd_mean", True), (29, "cost_usd_mean", False), (20, "pass_rate", False)],
)
def test_few_tasks_cannot_show_what_is_rare(tasks: int, metric: str, noted: bool) -> None:
    rows = [{"task_id": str(i), "passed": i > 2, "cost_usd": 1 + i / 100} for i in range(tasks)]
    scores = score(rows, metrics=[metric])
    assert scores.to_dict()["groups"][0]["tasks"] == tasks
    assert (UNSEEN in render(scores, "markdown")) == noted
    assert (UNSEEN in " ".join(render(scores, "table").split())) == noted


def verdicts(*passed: bool | None, task: str | None = None) -> list[dict[str, object]]:
    """Return records of two sides with these verdicts."""
    return [
        {"task_id": task or f"t{n}", "attempt": n, "subject": side, "passed": verdict}
        for side in "ab"
        for n, verdict in enumerate(passed)
    ]


@pytest.mark.parametrize("format_", ["table", "markdown"])
def test_a_rate_of_few_verdicts_says_what_it_leaves_out(format_: str) -> None:
    rows = [row for row in verdicts(False, None, None, None) if row["subject"] == "a"]
    text = " ".join(render(score(rows), format_).replace("\\_", "_").split())
    assert "3 of 4 records have no verdict and are left out of pass_rate." in text
    assert "With verdicts on them, it would be between 0.0 % and 75.0 %." in text
    whole = [row for row in verdicts(False, True) if row["subject"] == "a"]
    assert "no verdict" not in render(score(whole), format_)


def test_intervals_are_announced_only_where_there_are_some() -> None:
    alone = score(verdicts(True, False, task="one"), by="subject", metrics=["pass_rate"])
    assert "intervals" not in render(alone, "table")
    assert "are shown below" not in as_table(
        compare(verdicts(True, False, task="one"), by="subject")
    )
    several = score(verdicts(True, False), by="subject", metrics=["pass_rate"])
    assert "intervals, for tasks like these, are shown" in render(several, "table")
