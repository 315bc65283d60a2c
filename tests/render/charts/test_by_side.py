"""Charts with a panel or row for each side: their words and numbers fit into their places."""

import re
from itertools import pairwise

import pytest

from pennyweight.render.charts.by_side import categories
from pennyweight.render.charts.svg import CHAR, nowhere


@pytest.mark.parametrize("kinds", [2, 6, 8, 12])
def test_values_and_heads_of_categories_do_not_collide(kinds):
    cells = [
        {"name": side, "category": f"kind of tasks {kind}", "value": kind / kinds, "n": 5,
         "filter": {}}
        for side in ("a side with a name that is rather long", "b")
        for kind in range(kinds)
    ]  # fmt: skip
    chart = categories(cells, "accuracy", nowhere)
    lines = {}
    shown = r'<text[^>]*x="([\d.]+)" y="([\d.]+)" text-anchor="middle">([^<]*)<'
    for x, y, text in re.findall(shown, chart.svg):
        lines.setdefault(y, []).append((float(x), len(text) * CHAR))
    assert sorted(map(len, lines.values())) == [kinds] * 3
    for line in lines.values():
        for (x, wide), (other, width) in pairwise(sorted(line)):
            assert x + wide / 2 <= other - width / 2 + CHAR
    heads = {r[1] for r in chart.rows[1:]}
    assert "kind of tasks 1" in heads
    assert (" is kind of tasks 1;" in chart.note) == (kinds > 6)
