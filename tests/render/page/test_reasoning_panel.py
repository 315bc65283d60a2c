"""The panel about reasoning is there where records have what it needs."""

import pytest

from pennyweight import report
from pennyweight.api.pages.digest import digest
from pennyweight.api.pages.headlines import side_headlines
from pennyweight.api.sources import resolve
from pennyweight.render.charts.catalogue import REASONING, charts
from pennyweight.render.page.conclusion import conclusion
from pennyweight.render.page.leaderboard import leaderboard
from pennyweight.render.page.reasoning_panel import reasoning_panel


def rows(**more):
    return [
        {"task_id": f"t{i}", "answer": "4", "target": "4" if i % 3 else "5", **more}
        for i in range(12)
    ]


def panel(records):
    made = digest(resolve(records))
    return reasoning_panel(made, charts(made))


@pytest.mark.parametrize("more", [{}, {"reasoning_tokens": 0, "completion_tokens": 9}])
def test_records_without_reasoning_have_no_panel(more):
    found, others = panel(rows(**more))
    assert found is None
    assert others


def test_equations_and_thinking_are_told_in_figures():
    found, others = panel(rows(cot="2 + 2 = 5, 3 * 3 = 9", reasoning_tokens=6, completion_tokens=9))
    told = {figure["title"]: figure["value"] for figure in found.figures}
    assert told["Wrong equations"] == "50.0 %"
    assert told["Chains with an equation"] == "100.0 %"
    assert told["Tokens spent on thinking"] == "66.7 %"
    assert "Unsupported sentences" not in told
    assert not {chart.name for chart in others} & {*REASONING}


def test_a_probe_has_its_area_over_all_cuts():
    records = [
        {**row, "tier": f"probe@{cut}%", "attempt": 1, "answer": "4" if cut else "7"}
        for cut in (0, 25, 50, 75, 100)
        for row in rows()
    ]
    found, _ = panel(records)
    (figure,) = found.figures
    assert (figure["title"], figure["value"]) == ("Answer changes along the chain", "12.5 %")
    both = [{**row, "subject": name} for row in records for name in "mn"]
    assert panel(both)[0] is None  # it is of one subject
    made = digest(resolve(records))
    view, said = leaderboard(made), conclusion(made)
    points = [f"probe@{cut}%" for cut in (0, 25, 50, 75, 100)]
    assert [row.name for row in view.rows] == points  # a curve, not a ranking
    assert (view.title, view.ranked, view.baseline) == ("Points of the probe", False, "")
    assert str(said) == (
        "Accuracy is 0.0 % before the chain of thought and 66.7 % after all of it."
    )
    assert "area over the curve is 12.5 %" in said.notes[0]
    assert side_headlines(made)[0].tier == "probe@100%"
    assert "part of its chain" in str(conclusion(digest(resolve(both))))


def test_a_report_in_markdown_has_a_section_about_reasoning(tmp_path):
    tiers = [f"T{n}" for n in (0, 1, 2, 10)]
    records = [{**row, "tier": tier} for tier in reversed(tiers) for row in rows(cot="2 + 2 = 5")]
    report(records, tmp_path / "r.md")
    section = (tmp_path / "r.md").read_text("utf-8").split("## Reasoning")[1].split("\n## ")[0]
    assert [cell.strip() for cell in section.split("\n")[2].split("|")[2:-1]] == tiers
    assert "usr\\_math" in section
    report(rows(), tmp_path / "plain.md")
    assert "## Reasoning" not in (tmp_path / "plain.md").read_text("utf-8")


def test_sides_are_next_to_each_other_and_what_thinking_buys_is_drawn(tmp_path):
    records = [
        {**row, "tier": tier, "reasoning_tokens": tokens, "completion_tokens": 2 * tokens}
        for tier, tokens in (("low", 50), ("high", 400))
        for row in rows(cot="2 + 2 = 4")
    ]
    found, _ = panel(records)
    assert {figure["title"] for figure in found.figures} == {"Tokens beyond what was enough"}
    (family, *_) = found.sides
    assert [len(row["cells"]) for row in family["rows"]] == [2] * len(family["rows"])
    assert "thinking" in {chart.name for chart in found.charts}
    report(records, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    start = page.index('<section id="reasoning"')
    assert page.index('id="chart-thinking"') > start
    assert page.count('id="chart-thinking"') == 1
    assert 'href="#reasoning"' in page
