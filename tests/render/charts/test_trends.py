"""Trends: a line for each subject, its points linked to their runs."""

import re

from pennyweight.render.charts.trends import TrendPoint, trends


def test_each_subject_has_a_line_and_a_name():
    lines = {
        name: [TrendPoint(i, value + i / 10, None, None, f"r{i}", f"/runs/r{i}") for i in (0, 1)]
        for name, value in (("<b>big", 0.5), ("small", 0.5))
    }
    drawn = trends(lines, ["2026-01-01 10:00 UTC", "2026-01-02 10:00 UTC"], "accuracy")
    assert drawn.count("<polyline") == 2
    assert drawn.count('href="/runs/r1"') == 2
    assert "&lt;b&gt;big" in drawn
    assert "<b>" not in drawn
    named = re.findall(r'y="([\d.]+)"[^>]*>(?:&lt;b&gt;big|small)<', drawn)
    assert abs(float(named[0]) - float(named[1])) >= 12
    assert "2026-01-01<" in drawn
