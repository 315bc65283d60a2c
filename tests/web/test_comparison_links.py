"""Where a comparison's marks lead."""

from urllib.parse import parse_qs, urlsplit

from pennyweight.web.comparison_links import leading, sides_of
from pennyweight.web.comparison_sides import Side

TOLD = {
    "by": ["subject", "tier"],
    "sides": [{"name": f"s · {t}", "group": {"subject": "s", "tier": t}} for t in ("T0", "T1")],
}


def test_a_difference_leads_to_the_tasks_that_changed():
    link = leading(["r"], sides_of("r", TOLD))
    where = urlsplit(link({"pair": ["s / T1", "s / T0"]}))
    query = parse_qs(where.query)
    assert (where.path, where.fragment, query["run"]) == ("/compare", "changed", ["r"])
    assert Side.read(query["a"][0]) == Side("r", (("subject", "s"), ("tier", "T0")))
    assert Side.read(query["b"][0]) == Side("r", (("subject", "s"), ("tier", "T1")))


def test_what_is_no_side_leads_nowhere():
    assert leading(["r"], [])({"pair": ["x", "y"]}) is None
    assert leading(["r", "q"], [])({"tier": "T0"}) is None
    assert leading(["r"], [])({"tier": "T0"}) == "/runs/r/records?tier=T0"
    assert sides_of("r", {**TOLD, "by": ["run"]}) == []
