"""Bars, ticks and labels of how a measure is spread."""

import re

import pytest

from pennyweight.render.charts.scales import ticks, top
from pennyweight.render.charts.spread import latency, tokens
from pennyweight.render.charts.svg import CHAR, nowhere


def spread(counts, step, p50, p95):
    bins = [{"low": i * step, "high": (i + 1) * step, "n": n} for i, n in enumerate(counts)]
    return {"measure": "total_tokens", "filter": {}, "bins": bins, "p50": p50, "p95": p95}


@pytest.mark.parametrize("most", [1, 2, 3, 7, 9, 21, 130, 4_999])
def test_counts_have_whole_ticks_and_no_bar_rises_above_the_last(most):
    found = ticks(0, top(most), 4, whole=True)
    assert all(tick == int(tick) for tick in found)
    assert found[-1] == top(most) >= most


@pytest.mark.parametrize(("p50", "p95"), [(10, 12), (96, 99), (99, 99), (1, 3), (20, 90), (0, 99)])
def test_labels_of_median_and_p95_keep_apart(p50, p95):
    chart = tokens(spread([3] * 10, 10, p50, p95), nowhere)
    found = re.findall(r'x="([\d.]+)" y="12" text-anchor="(\w+)">((?:median|P95)[^<]+)', chart.svg)
    spans = []
    for x, anchor, text in found:
        left = float(x) - (len(text) * CHAR if anchor == "end" else 0)
        spans.append((left, left + len(text) * CHAR))
    assert "median" in chart.svg
    assert "P95" in chart.svg
    assert all(left >= 0 and right <= 420 for left, right in spans)
    assert len(spans) == 1 or spans[0][1] <= spans[1][0] or spans[1][1] <= spans[0][0]


def test_the_label_of_a_median_at_the_first_edge_is_beside_its_line():
    chart = tokens(spread([8, 0, 2], 200, 0, 540), nowhere)
    (x,) = re.findall(r'x="([\d.]+)" y="12" text-anchor="start">median', chart.svg)
    (first, _) = re.findall(r'<line class="mark"[^>]*>', chart.svg)
    assert abs(float(x) - float(re.search(r'x1="([\d.]+)"', first)[1])) < 8


def test_long_times_are_told_in_seconds():
    chart = latency(spread([1, 4], 1_000, 500, 1_900), nowhere)
    assert "0 to below 1 seconds: 1 record<" in chart.svg
    assert ">seconds</text>" in chart.svg
    assert "1,000 to below 2,000 tokens" in tokens(spread([1, 4, 1], 1_000, 1, 2), nowhere).svg
