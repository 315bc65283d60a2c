"""A chart's bar or point leads to as many records as it stands for."""

import random
import re
from html import unescape

import polars as pl
import pytest

from api.pages.test_digest import SETTINGS
from pennyweight.api.pages.digest import digest
from pennyweight.api.pages.digest_cache import compute
from pennyweight.api.score import score
from pennyweight.api.sources import resolve
from pennyweight.render.charts.catalogue import charts
from pennyweight.scoring.chart_data import histogram
from pennyweight.store import cache as kept
from pennyweight.store import queries as look
from pennyweight.store.store import Store
from pennyweight.web.addresses import read_filter, write_filter
from store.samples import RUN, call, record, run

RULES = {"answer": {"kind": "marker", "value": "FINAL_ANSWER:"}, "confidence": "stated"}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Records whose measures lie on the edges of bins, far above them and beside them."""
    made = Store(str(tmp_path_factory.mktemp("charts") / "pennyweight.db"))
    found = run(attempts=400, status="done", settings={**SETTINGS, **RULES})
    made.add_run(found)
    dice = random.Random(7)
    spelt = ("4", "4.0", "04", "5", "Five", "five", None)
    rows = []
    for i in range(400):
        said = dice.choice(spelt)
        rows.append(
            record(
                f"t{i:03}",
                target="4" if i % 9 else None,
                status="error" if i % 23 == 0 else "ok",
                error="no route" if i % 23 == 0 else None,
                response=f"{'word ' * dice.choice((1, 5, 10, 400))}\n"
                + (f"FINAL_ANSWER: {said}\n" if said else "")
                + f"CONFIDENCE: {dice.choice(('10%', '30%', '29.9%', '70%', '95%', '100%'))}",
                prompt_tokens=dice.choice((10, 1_234_567, 1_234_568, 9_000_000)),
                completion_tokens=3,
                latency_ms=dice.choice((100.0, 100.05, 1_000_000.5, 33.3, 5e6)),
                category=dice.choice("ab"),
                capability=dice.choice("xy"),
            )
        )
    made.write(rows, [call("t000")])
    yield made
    made.close()


def test_every_bar_leads_to_its_records(store):
    told = compute(store, kept.state(store, RUN).run)
    held = told["charts"]
    wanted = {}

    def link(filter_):
        found = look.count(store, RUN, read_filter(write_filter(filter_)))
        wanted.setdefault(tuple(sorted(filter_)), []).append(found)
        return "/"

    shown = {c.name: c for c in charts(told, link)}
    assert {"reliability", "thought", "answers", "latency", "tokens", "coverage"} <= set(shown)
    for name, measure in (("latency", "latency_ms"), ("tokens", "total_tokens")):
        counts = [b["n"] for b in held[name]["bins"] if b["n"]]
        assert wanted[tuple(sorted([measure, *held[name]["filter"]]))] == counts, name
        assert sum(counts) == sum(i % 23 > 0 for i in range(400)), "errors are left out"
    assert wanted[("correct", "prob_correct")] == [r["n"] for r in held["reliability"]]
    parts = [b[k] for b in held["thought"]["bins"] for k in ("right", "wrong")]
    assert wanted[("correct", "cot_tokens")] == [n for n in parts if n]
    parts = [(r["right"], r["n"] - r["right"]) for r in held["answers"]]
    assert wanted[("answer_in", "correct")] == [n for part in parts for n in part if n]
    assert None in {r["answer"] for r in held["answers"]}
    assert wanted[("capability", "category")] == [c["n"] for c in held["coverage"]["cells"]]


def test_marks_of_sides_lead_to_the_records_that_they_count(tmp_path):
    made = Store(str(tmp_path / "pennyweight.db"))
    made.add_run(run(attempts=72, status="done", settings={**SETTINGS, **RULES}))
    dice = random.Random(4)
    rows = [
        record(
            f"t{i:02}", subject=subject, target="4" if i % 5 else None, category=dice.choice("ab"),
            status="error" if i % 7 == 0 else "ok", error="no route" if i % 7 == 0 else None,
            response=f"FINAL_ANSWER: {dice.choice('45')}", cost_usd=0.01,
            latency_ms=50.0 + i,
            prompt_tokens=None if i % 7 == 0 else 5, completion_tokens=None if i % 7 == 0 else i,
        )
        for subject in ("one", "two")
        for i in range(36)
    ]  # fmt: skip
    made.write(rows, [call("t00")])
    told = compute(made, kept.state(made, RUN).run)

    def link(wanted):
        return str(look.count(made, RUN, read_filter(write_filter(wanted))))

    shown = {c.name: c for c in charts(told, link) if c.rows[0][-1] == "records"}
    assert {"sides", "categories", "latency", "tokens"} <= set(shown)
    for chart in shown.values():
        assert chart.links, chart.name
        for (row, _), found in chart.links.items():
            assert int(found) == chart.rows[row][-1], chart.name
    made.close()


def test_the_table_below_a_chart_leads_where_its_marks_do(store):
    told = compute(store, kept.state(store, RUN).run)
    for chart in charts(told, lambda wanted: f"/{sorted(wanted.items())}"):
        marks = re.findall(r'<a href="([^"]+)" tabindex="(-?\d)"', chart.svg)
        assert {unescape(where) for where, _ in marks} == set(chart.links.values()), chart.name
        assert {stop for _, stop in marks} <= {"-1"}
        sizes = re.findall(r'class="hit"[^>]* width="([\d.]+)" height="([\d.]+)"', chart.svg)
        assert all(float(w) > 0 and float(h) > 0 for w, h in sizes), chart.name


def test_the_last_bar_claims_no_upper_end(store):
    told = compute(store, kept.state(store, RUN).run)
    latency = next(c for c in charts(told) if c.name == "latency")
    assert latency.rows[-1][1] is None
    assert "and more seconds" in latency.svg


def test_the_commonest_failure_is_told(store):
    told = compute(store, kept.state(store, RUN).run)
    assert told["failures"] == [{"error": "no route", "n": 18}]


def test_the_percentiles_of_a_chart_are_those_of_the_metrics():
    rows = [{"latency_ms": float(i), "status": "ok"} for i in range(1, 21)]
    rows += [{"latency_ms": 9_000.0, "status": "error"}] * 5
    found, scored = histogram(pl.LazyFrame(rows), "latency_ms"), score(rows)
    assert found["p50"] == scored["latency_p50_ms"].value == 10
    assert found["p95"] == scored["latency_p95_ms"].value == 19
    assert 19 < found["bins"][-1]["high"] < 9_000


def repeated(attempts, tiers=("T0",)):
    dice = random.Random(3)
    return [
        {"task_id": f"t{t}", "attempt": i, "tier": tier, "passed": dice.random() < t / 9}
        for tier in tiers
        for t in range(10)
        for i in range(1, attempts + 1)
    ]


def drawn(rows):
    (chart,) = (c for c in charts(digest(resolve(rows))) if c.name == "repeats")
    return chart


def test_repeated_attempts_have_a_curve_over_k():
    rows = repeated(4)
    chart = drawn(rows)
    scored = [score(rows, k=k) for k in (1, 2, 3, 4)]
    assert [row[0] for row in chart.rows[1:]] == [1, 2, 3, 4]
    for row, scores in zip(chart.rows[1:], scored, strict=True):
        at, hat = scores["pass_at_k"], scores["pass_hat_k"]
        expected = (at.value, at.low, at.high, hat.value, hat.low, hat.high)
        assert row[1:] == pytest.approx(expected)
    assert chart.svg.count('class="band ') == 2
    assert "k = 2, all k pass" in chart.svg
    assert "All sides" not in chart.note


def test_a_curve_of_many_attempts_has_ten_points_and_names_its_sides():
    chart = drawn(repeated(60, tiers=("T0", "T1")))
    sizes = [1, 8, 14, 21, 27, 34, 40, 47, 53, 60]
    best, other = (chart.rows[at][0] for at in (1, 11))
    assert {best, other} == {"T0", "T1"}
    assert [row[:2] for row in chart.rows[1:]] == [(s, k) for s in (best, other) for k in sizes]


def test_without_repeats_there_is_no_curve():
    assert digest(resolve(repeated(1)))["charts"]["repeats"] is None
