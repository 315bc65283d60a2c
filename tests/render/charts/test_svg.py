"""Labels are short, and no two of them are the same or lie on each other."""

import re
from itertools import pairwise
from xml.etree import ElementTree

from pennyweight.render.charts.by_side import categories
from pennyweight.render.charts.catalogue import charts
from pennyweight.render.charts.svg import CHAR, HEIGHT, alone, legend, nowhere, short_names

SVG = "{http://www.w3.org/2000/svg}"

IDS = ["20261115-150628-a7bc", "20261115-150951-9bfe"]


def row(name, cost, value):
    return {"name": name, "cost": cost, "value": value, "low": None, "high": None,
            "frontier": True, "filter": {}, "n": 9}  # fmt: skip


def drawn(**found):
    (chart,) = charts({"charts": found})
    return chart


def test_names_keep_what_tells_them_apart():
    assert short_names(["T0", "T1"], 26) == {"T0": "T0", "T1": "T1"}
    assert list(short_names(IDS, 12).values()) == ["…150628-a7bc", "…150951-9bfe"]
    assert list(
        short_names(["a" * 30 + "1" + "b" * 30, "a" * 30 + "2" + "b" * 30], 20).values()
    ) == [
        "A",
        "B",
    ]
    vendors = [f"vendor-{c}/model-{c}-2026-instruct · T{tier}" for c in "ab" for tier in (0, 1)]
    assert short_names(vendors, 26)[vendors[0]] == "vendor-a/model-a… · T0"
    assert legend({"long name": "A", "T0": "T0", "20261115": "…15"}) == " A is long name."


def test_a_forest_plot_of_runs_names_both():
    one = {"name": " − ".join(IDS), "pair": IDS, "value": 0.1, "low": 0.0, "high": 0.2, "n": 9}
    chart = drawn(differences={"metric": "accuracy", "rows": [one]})
    assert "…150628-a7bc − …150951-9bfe</text>" in chart.svg


def test_labels_of_near_points_do_not_lie_on_each_other():
    rows = [row(f"subject number {i}", 0.001 + i * 1e-6, 0.5 + i * 0.001) for i in range(6)]
    chart = drawn(frontier={"metric": "accuracy", "rows": rows})
    texts = re.findall(
        r'<text class="ink halo" x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)">(s[^<]+)', chart.svg
    )
    boxes = []
    for x, y, anchor, text in texts:
        wide = len(text) * CHAR
        left = float(x) - (wide if anchor == "end" else 0)
        boxes.append((left, float(y) - 11, left + wide, float(y) + 2))
    assert len(boxes) == 6
    for i, a in enumerate(boxes):
        for b in boxes[i + 1 :]:
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def test_of_many_sides_only_the_frontier_is_named():
    rows = [{**row(f"side {i}", 0.001 * (i + 1), 0.5), "frontier": i == 0} for i in range(9)]
    many = drawn(frontier={"metric": "accuracy", "rows": rows})
    few = drawn(frontier={"metric": "accuracy", "rows": rows[:8]})
    assert [len(re.findall(r">side \d</text>", chart.svg)) for chart in (many, few)] == [1, 8]
    assert many.note.endswith("Only these are named.")


def test_the_last_label_of_an_axis_is_not_cut_off():
    bins = [
        {"low": i / 10, "high": (i + 1) / 10, "n": 5, "said": i / 10, "right": 0.5}
        for i in range(10)
    ]
    assert '<text x="420" y="219" text-anchor="end">100 %</text>' in drawn(reliability=bins).svg


def test_tokens_are_counted_in_whole_numbers():
    bins = [{"low": low, "high": low + 1, "right": 2, "wrong": 1} for low in (50, 51)]
    labels = re.findall(r">(5[\d.]*)</text>", drawn(thought={"bins": bins}).svg)
    assert labels == ["50", "51", "52"]


def test_one_bar_is_no_distribution():
    one = {"low": 50, "high": 51, "right": 2, "wrong": 1, "n": 3}
    assert charts({"charts": {"thought": {"bins": [one]}}}) == []
    spread = {"measure": "latency_ms", "filter": {}, "bins": [one], "p50": 50, "p95": 50}
    assert charts({"charts": {"latency": spread, "tokens": spread}}) == []


def test_labels_lie_neither_on_the_axis_nor_on_the_frontier():
    rows = [row(f"side {i}", 2.0**i, 0.2 + 0.07 * i) for i in range(9)]
    chart = drawn(frontier={"metric": "accuracy", "rows": rows})
    edge = re.search(r'class="edge" points="([^"]+)"', chart.svg)[1].split()
    line = [tuple(map(float, point.split(","))) for point in edge]
    found = re.findall(r'x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)">side \d<', chart.svg)
    assert len(found) == 9
    for x, y, anchor in ((float(x), float(y), anchor) for x, y, anchor in found):
        left = x if anchor == "start" else x - 6 * CHAR
        assert left >= 48  # the labels of the axis end there
        for place in range(int(left), int(left + 6 * CHAR)):
            for (x1, y1), (x2, y2) in pairwise(line):
                if x1 <= place <= x2:
                    height = y1 + (y2 - y1) * (place - x1) / (x2 - x1)
                    assert not y - 9 < height < y


def test_a_saved_chart_explains_its_letters_and_numbers():
    sides = [f"{'p' * 30}{n}{'p' * 20}" for n in range(3)]
    cells = [
        {"name": side, "category": f"a <long> kind of tasks {kind}", "value": kind / 12, "n": 5,
         "filter": {}}
        for side in sides
        for kind in range(12)
    ]  # fmt: skip
    chart = categories(cells, "accuracy", nowhere)
    root = ElementTree.fromstring(alone(chart))
    texts = [(float(text.get("y")), text.text) for text in root.iter(f"{SVG}text")]
    below = [(y, text) for y, text in texts if y > HEIGHT]
    said = " ".join(text for _, text in below)
    assert said == chart.note
    assert f"A is {sides[0]}; B is" in said
    assert "; 12 is a <long> kind of tasks 9" in said
    _, top, width, whole = map(float, root.get("viewBox").split())
    assert max(y for y, _ in below) < top + whole
    assert max(len(text) for _, text in below) * CHAR < width
