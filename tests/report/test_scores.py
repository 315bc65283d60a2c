import json
import math
from dataclasses import replace

import pytest

from assay import MetricsSummary, Scores
from assay.catalogue import METRICS
from assay.pipeline import score
from assay.report.scores import render, shown, why
from cli.command import strict_json

ROWS = [{"id": i, "target": "1", "answer": "1" if i else "2", "x": i % 2} for i in range(4)]


@pytest.fixture(scope="module")
def found() -> Scores:
    return score(ROWS)


@pytest.mark.parametrize("format_", ["table", "markdown", "csv", "json"])
def test_every_metric_is_in_every_format(format_: str, found: Scores) -> None:
    text = render(found, format_).replace("\\_", "_")
    assert all(name in text for name in METRICS)
    assert text.endswith("\n")


def test_json_is_strict_and_the_same_as_the_value(found: Scores) -> None:
    assert strict_json(render(found, "json")) == json.loads(json.dumps(found.to_dict()))


def test_nan_is_never_written(found: Scores) -> None:
    group = found.groups[0]
    broken = replace(group["accuracy"], value=math.nan)
    bad = replace(group, estimates={**group.estimates, "accuracy": broken})
    written = json.loads(render(replace(found, groups=(bad,)), "json"))
    assert written["groups"][0]["metrics"]["accuracy"] is None


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("accuracy", None, "—"),
        ("accuracy", 0.12345, "0.123"),
        ("latency_p95_ms", math.inf, "∞"),
        ("cost_of_pass", 0.00012345, "$0.0001234"),
        ("latency_p95_ms", 12345.6, "12,346"),
        ("latency_p95_ms", 12.3456, "12.35"),
        ("grade", "A", "A"),
        ("grade", "A\x1b[31m", "A"),
    ],
)
def test_values_are_shown_as_their_unit_asks(name: str, value: object, text: str) -> None:
    assert shown(name, value) == text  # type: ignore[arg-type]


def test_why_there_is_no_value_is_said(found: Scores) -> None:
    group = found.groups[0]
    assert why("brier", group) == "needs prob_correct and answer and target"
    assert why("weighted_score", group) == "name its parts with --weight, each with a value"
    assert why("grade", group) == "needs composite_median"


def test_one_group_can_be_asked_by_name_and_several_cannot(found: Scores) -> None:
    assert found["accuracy"].value == 0.75
    assert found.summary().accuracy == 0.75
    with pytest.raises(KeyError, match="2 groups"):
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
    frame = score(ROWS, by="x").frame
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
    text = render(scores, "table")
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for group in scores.groups:
        for name, e in group.estimates.items():
            if e.value is not None:
                assert shown(name, e.value) in text, name
    if not by:
        title = text.splitlines()[0]
        assert title.endswith("records")
        wanted = f"{scores['accuracy'].records:,}"
        assert next(x for x in text.splitlines() if "  accuracy" in x).endswith(f" {wanted}")
