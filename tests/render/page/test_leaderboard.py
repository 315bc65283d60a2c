"""The leaderboard: order, ranks, differences from a baseline, and what a reader can choose."""

import random
import re
from functools import cache

import pytest

from pennyweight.api.compare import compare
from pennyweight.api.pages.digest import digest
from pennyweight.api.sources import resolve
from pennyweight.render.page.board import BoardChoice, BoardVerdict
from pennyweight.render.page.board_rows import board_rows
from pennyweight.render.page.board_sides import board_sides
from pennyweight.render.page.conclusion import conclusion
from pennyweight.render.page.leaderboard import board_of, leaderboard

RATES = {"large": 0.95, "medium": 0.9, "small": 0.2}


def rows(rates=RATES, tiers=("T0", "T1"), tasks=40, attempts=2):
    """Make records in which subjects pass with given rates; small is the cheapest."""
    rng = random.Random(3)
    return [
        {
            "subject": subject, "tier": tier, "task_id": f"t{task}", "attempt": attempt,
            "passed": rng.random() < rate, "cost_usd": 0.01 / (1 + index),
            "category": "even" if task % 2 == 0 else "odd",
        }
        for index, (subject, rate) in enumerate(rates.items())
        for tier in tiers
        for task in range(tasks)
        for attempt in range(1, attempts + 1)
    ]  # fmt: skip


@cache
def made():
    return digest(resolve(rows()))


def address(changed):
    return "?" + "&".join(f"{k}={v}" for k, v in changed.items())


def test_the_best_side_is_first_and_ties_share_ranks():
    view = leaderboard(made())
    names = [row.name for row in view.rows]
    values = [row.cells[0].value for row in view.rows]
    assert values == sorted(values, reverse=True)
    assert {n.split(" · ")[0] for n in names[:4]} == {"large", "medium"}
    assert [row.rank for row in view.rows[-2:]] == ["5–6", "5–6"]
    assert all(row.leads for row in view.rows[:2])
    assert not any(row.leads for row in view.rows[-2:])
    assert view.leaders == sum(row.leads for row in view.rows)


def test_no_sentence_about_a_difference_has_two_signs_before_its_p():
    view = leaderboard(made())
    said = [row.gap.words for row in view.rows if row.gap]
    assert any(": p < 0.001 for all pairs" in words for words in said)
    assert not any("= <" in words for words in said)


def test_differences_are_those_of_compare():
    view = leaderboard(made())
    best = view.baseline.replace(" · ", " / ")
    by = compare(rows(), by=["subject", "tier"], metrics="pass_rate", baseline=best)
    for row in view.rows[1:]:
        pair = by.pair(row.name.replace(" · ", " / "), "pass_rate")
        assert row.gap.value == f"{100 * pair.difference:+.1f} points".replace("-", "−")
        assert row.gap.shown == (pair.p_adjusted <= 0.05)


def test_a_board_can_be_by_another_column():
    view = leaderboard(made(), BoardChoice(by="subject"), address=address)
    assert {row.name for row in view.rows} == set(RATES)
    assert [t.title for t in view.tabs] == ["subject × tier", "subject", "tier", "category"]
    assert [t.current for t in view.tabs] == [False, True, False, False]
    of_tasks = leaderboard(made(), BoardChoice(by="category"))
    assert {row.name for row in of_tasks.rows} == {"even", "odd"}
    assert not of_tasks.ranked
    assert not of_tasks.baseline, "categories have no tasks in common"


def test_sorting_by_another_metric_and_back():
    view = leaderboard(made(), BoardChoice(sort="cost_of_pass"), address=address)
    column = next(c for c in view.columns if c.order)
    assert (column.metric.name, column.order) == ("cost_of_pass", "ascending")
    assert column.axis
    assert "order=reverse" in column.href
    costs = [
        board_of(made())["sides"][i]["estimates"]["cost_of_pass"][0]
        for row in view.rows
        for i, side in enumerate(board_of(made())["sides"])
        if side["name"] == row.name
    ]
    assert costs == sorted(costs)
    turned = leaderboard(made(), BoardChoice(sort="cost_of_pass", reverse=True))
    assert [r.name for r in turned.rows] == [r.name for r in view.rows][::-1]
    assert not view.leaders, "another order shows no border between the best and the rest"
    by_name = leaderboard(made(), BoardChoice(sort="name"))
    assert [r.name for r in by_name.rows] == sorted(r.name for r in view.rows)


@pytest.mark.parametrize("choice", [BoardChoice(by="nothing"), BoardChoice(sort="nothing")])
def test_what_makes_no_sense_has_no_effect(choice):
    assert [r.name for r in leaderboard(made(), choice).rows] == [
        r.name for r in leaderboard(made()).rows
    ]


def test_find_and_fold():
    view = leaderboard(made(), BoardChoice(find="LARGE"))
    assert [row.name.split(" · ")[0] for row in view.rows] == ["large", "large"]
    words = leaderboard(made(), BoardChoice(find="T1  larg"))
    assert [row.name for row in words.rows] == ["large · T1"]
    assert not leaderboard(made(), BoardChoice(find="small large")).rows
    many = digest(resolve(rows({f"m{i:02}": i / 20 for i in range(20)}, ("T0",), 20, 1)))
    folded = leaderboard(many, address=address)
    assert sum(not row.hidden for row in folded.rows) == 15
    assert folded.hidden == 5
    assert not any(r.hidden for r in leaderboard(many, BoardChoice(every=True)).rows)


def test_two_sides_are_ranked_by_their_test():
    clear = leaderboard(digest(resolve(rows({"good": 0.95, "bad": 0.1}, ("T0",)))))
    assert [(r.name, r.rank) for r in clear.rows] == [("good", "1"), ("bad", "2")]
    same = leaderboard(digest(resolve(rows({"one": 0.5, "other": 0.5}, ("T0",)))))
    assert [r.rank for r in same.rows] == ["1–2", "1–2"]


def test_one_side_has_a_board_of_its_categories_only():
    one = digest(resolve(rows({"only": 0.5}, ("T0",))))
    assert [row.name for row in leaderboard(one).rows]
    assert leaderboard(one).by == "category"
    plain = [{k: v for k, v in r.items() if k != "category"} for r in rows({"only": 0.5}, ("T0",))]
    assert leaderboard(digest(resolve(plain))) is None


def test_attempts_of_different_numbers_are_not_compared_by_default():
    def given(tries):
        return [
            {"subject": s, "task_id": f"t{t}", "attempt": i, "passed": (t + i) % 3 > 0}
            for s, most in tries.items()
            for t in range(12)
            for i in range(most)
        ]

    def columns(**tries):
        return {c.metric.name for c in leaderboard(digest(resolve(given(tries)))).columns}

    assert "pass_at_k" in columns(a=3, b=3)
    assert "pass_at_k" not in columns(a=3, b=2)


def test_one_of_one_passes_is_no_column():
    lost = {"status": "error", "passed": None}
    given = [{**r, **lost} if (r["task_id"], r["attempt"]) == ("t1", 2) else r for r in rows()]
    names = {c.metric.name for c in leaderboard(digest(resolve(given))).columns}
    assert "pass_at_k" in {c.metric.name for c in leaderboard(made()).columns} - names


def test_a_heading_says_of_how_many_attempts_one_passes():
    def heads(sample):
        view = leaderboard(digest(resolve(sample)), BoardChoice(sort="pass_hat_k"))
        return {c.metric.name: str(c.metric) for c in view.columns}

    assert heads(rows(attempts=3))["pass_at_k"] == "one of 3 passes (pass_at_k)"
    assert heads(rows(attempts=3))["pass_hat_k"] == "all 3 pass (pass_hat_k)"
    uneven = [row for row in rows(attempts=3) if row["subject"] != "large" or row["attempt"] < 3]
    assert heads(uneven)["pass_hat_k"] == "all k pass (pass_hat_k)"


def test_long_names_keep_what_tells_them_apart_and_their_tier():
    long = "vendor/one-model-with-a-very-long-name-instruct-preview-2026-11-18-thinking-high-{}"
    found = digest(resolve(rows({long.format(x): n / 4 for n, x in enumerate("ab")}, ("T0", "T1"))))
    text = str(board_rows(leaderboard(found)))
    wide = re.findall(r'<bdi class="wide-only">(.*?)</bdi>', text)
    assert len(set(wide)) == 4
    assert {name.split("high-")[1] for name in wide} == {"a · T0", "a · T1", "b · T0", "b · T1"}
    assert max(map(len, wide)) == 60
    labels = re.findall('Compare all sides with (.*?)"', text)
    assert set(labels) < set(wide)


def test_long_names_are_told_apart_where_there_is_little_room():
    long = "vendor/one-model-with-a-very-long-name-{}-preview-2026"
    found = leaderboard(digest(resolve(rows({long.format(n): n / 4 for n in (1, 2, 3)}, ("T0",)))))
    assert [row.brief for row in found.rows] == [f"…{n}-preview-2026" for n in (3, 2, 1)]


def test_rows_are_written_with_names_as_text():
    evil = '<b>"x"\u202e</b>'
    view = leaderboard(digest(resolve(rows({evil: 0.95, "bad": 0.1}, ("T0",)))), address=address)
    page = board_rows(view)
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    assert "⟨U+202E⟩" in page
    assert page.count('<tr class="cut">') == 1
    assert 'class="choose" href="?baseline=bad"' in page
    plain = board_rows(leaderboard(digest(resolve(rows({evil: 0.95, "bad": 0.1}, ("T0",))))))
    assert 'class="choose"' not in plain
    none = leaderboard(made(), BoardChoice(find="nobody"))
    assert "No side has this in its name." in board_rows(none)


def test_rows_have_the_latest_verdicts_and_only_links_that_lead_somewhere():
    old = BoardVerdict("p<q", "fail", current=False, when="today", href="/gates?a&b")
    given = {"large · T0": [old], "small · T1": [BoardVerdict("other", "pass", current=True)]}
    page = board_rows(leaderboard(made(), verdicts=given))
    assert '<a href="/gates?a&amp;b" title="p&lt;q: fail, today, before the run changed">' in page
    assert 'class="kept bad old"' in page
    assert page.count("<a ") == 1
    assert page.count('<td class="verdicts"><span class="quiet">—') == 4


def test_a_side_that_is_shown_again_is_not_read_again():
    sides = board_of(made())["sides"]
    known = board_sides(sides)
    assert board_sides(sides) is known
    assert known.column("pass_rate", drawn=True) is known.column("pass_rate", drawn=True)
    drawn, plain = (known.column("pass_rate", drawn=d).cells[0] for d in (True, False))
    assert (drawn.value, drawn.interval) == (plain.value, plain.interval)
    assert "<svg" in drawn.written
    assert "<svg" not in plain.written
    assert board_sides(list(sides)) is not known


def test_the_caption_says_that_intervals_hold_for_all_pairs():
    view = leaderboard(made())
    assert "Intervals of differences hold for all pairs of sides at once." in view.caption
    one_pair = leaderboard(digest(resolve(rows({"a": 0.9, "b": 0.2}, ("T0",)))))
    assert "at once" not in one_pair.caption
    for row in view.rows:
        if row.gap:
            assert row.gap.shown == ("+" not in row.gap.interval)


@pytest.mark.parametrize("names", ["ab", "abc"])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999, 0.99999])
def test_ranks_differences_and_conclusion_agree_at_every_level(names, confidence):
    given = [
        {"subject": name, "task_id": f"t{n}", "passed": n < rate}
        for name, rate in zip(names, (24, 16, 0), strict=False)
        for n in range(40)
    ]
    found = digest(resolve(given), confidence=confidence)
    board = leaderboard(found)
    best, *others = board.rows
    assert (best.rank == "1") == all(row.gap.shown for row in others)
    assert conclusion(found).shown == all(row.gap.shown for row in others)
    for row in others:
        assert row.gap.shown == (not row.leads)
    assert confidence < 0.99 or best.rank == "1–2" or names == "abc"


def test_a_side_without_a_value_is_apart_from_those_that_are_worse():
    dead = [{**r, "subject": "dead", "status": "error", "passed": None} for r in rows()[:40]]
    view = leaderboard(digest(resolve(rows(tiers=("T0",)) + dead)))
    lines = [line for line in board_rows(view).split("</tr>") if 'class="cut"' in line]
    assert ["not ranked: no pass rate" in line for line in lines] == [False, True]
    tied = leaderboard(digest(resolve(rows({"a": 0.9, "b": 0.9, "c": 0.9}, ("T0",)) + dead)))
    assert "shown to be better" not in board_rows(tied)
    assert board_rows(tied).count("not ranked: no pass rate") == 1


def test_a_side_that_lacks_a_column_is_apart_from_those_that_are_ranked():
    rates = {"A": 0.95, "B": 0.8, None: 0.6, "C": 0.1}
    given = [
        {
            "tier": tier,
            "task_id": f"t{task}",
            "passed": random.Random(f"{task} {tier}").random() < p,
        }
        for tier, p in rates.items()
        for task in range(120)
    ]
    view = leaderboard(digest(resolve(given), by=["tier"]))
    assert [(row.rank, row.name) for row in view.rows[:3]] == [("1", "A"), ("2", "B"), ("3", "C")]
    assert [row.rank for row in view.rows[3:]] == [""]
    lines = [line for line in board_rows(view).split("</tr>") if 'class="cut"' in line]
    assert ["shown to be the best" in line for line in lines] == [True, False]
    assert "not ranked: no tier<" in lines[1]


def test_scales_of_bars_leave_no_range_and_fit_values_of_very_different_sizes():
    def axis(costs):
        given = [{**r, "cost_usd": costs[r["subject"]]} for r in rows(tiers=("T0",))]
        view = leaderboard(digest(resolve(given)), BoardChoice(sort="cost_usd_mean"))
        column = next(c for c in view.columns if c.metric.name == "cost_usd_mean")
        places = [re.search(r'<circle[^>]*cx="([0-9.]+)"', str(row.cells)) for row in view.rows]
        return column.axis, [float(place[1]) for place in places]

    names = list(RATES)
    nothing, _ = axis(dict.fromkeys(names, 0.0))
    assert not nothing[0].startswith("−"), "no cost is negative"
    ends, places = axis(dict(zip(names, (0.001, 0.1, 10.0), strict=True)))
    assert ends[1] == "log"
    assert places[1] - places[0] == pytest.approx(places[2] - places[1], abs=0.2)
    assert len(axis(dict(zip(names, (0.1, 0.2, 0.4), strict=True)))[0]) == 2
