import re

import pytest

import pennyweight
from cli.command import strict_json
from pennyweight.catalogue import MEASURES, METRICS
from pennyweight.define import Metric
from pennyweight.record import COLUMNS
from pennyweight.render.catalogue import facts, named, needs, page, render, why_missing


@pytest.mark.parametrize("name", sorted({*METRICS, *MEASURES}))
def test_the_page_about_a_number_says_what_is_known_of_it(name: str) -> None:
    for one in named(name):
        text = page(one)
        assert text.startswith(f"## `{name}`")
        assert one.summary in text
        assert one.example in text
        assert one.spec in text
        if isinstance(one, Metric):
            assert one.formula in text
            assert f"Interval: {facts(one)['interval']}" in text


@pytest.mark.parametrize(
    ("name", "ends"),
    [("judge_alpha", "−∞ to 1"), ("cost_of_pass", "0 to ∞"), ("brier_uncertainty", "0 to 0.25")],
)
def test_a_range_without_a_lower_end_begins_at_minus_infinity(name: str, ends: str) -> None:
    assert f"- Range: {ends}\n" in page(METRICS[name])


def test_a_name_of_both_kinds_gives_both() -> None:
    assert set(strict_json(render("cost_of_pass", "json"))) == {"metric", "measure"}


@pytest.mark.parametrize(
    ("rows", "metric", "reason"),
    [
        ([{}], "usr_math", "needs a chain of thought (cot)"),
        ([{"cot": "no equation"}], "usr_math", "needs an equation that can be read"),
        ([{}], "usr_rag", "needs context and a reply"),
        ([{"context": "c", "response": "r."}], "citation_recall", "needs citations such as [1]"),
        ([{}], "ece_logprobs", "needs logprobs"),
        ([{"tier": "T0"}], "truncation_aoc", "needs all tiers of a probe in one group"),
        ([{}], "overthinking_tokens", "needs completion_tokens"),
        ([{"completion_tokens": 9}], "overthinking_tokens", "needs two correct attempts at a task"),
    ],
)
def test_a_missing_value_is_explained_by_what_the_records_lack(rows, metric, reason) -> None:
    given = [{"task_id": str(n), "answer": "4", "target": "4", **row} for n, row in enumerate(rows)]
    (group,) = pennyweight.score(given, metrics=metric).groups
    assert why_missing(metric, group).startswith(reason)


def test_no_reason_names_an_internal_measure() -> None:
    columns = {column.name for column in COLUMNS}
    for name in METRICS:
        if not METRICS[name].combined:
            words = set(re.findall(r"[a-z]+_[a-z_]+", needs(name)))
            assert words <= columns | {"usr_rag"}, name
