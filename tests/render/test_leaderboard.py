import re
from typing import Any

import pytest

from pennyweight.api.score import score
from pennyweight.errors import UsageError
from pennyweight.render.leaderboard import MAX_SIDES
from pennyweight.render.scores import render

RIGHT = {"fair": 6, "best": 9, "worst": 1, "good": 8}


def rows(right: dict[str, int] = RIGHT, **columns: Any) -> list[dict[str, Any]]:
    return [
        {"id": i, "subject": who, "target": "1", "answer": "1" if i < n else "2",
         "cost_usd": 0.01 * n, "latency_ms": 100.0 + i, "prob_correct": 0.5, **columns}
        for who, n in right.items()
        for i in range(10)
    ]  # fmt: skip


def order(text: str) -> list[str]:
    """Give the sides in the order of their rows."""
    return re.findall(r"^\W*((?!With)\w+) +\W*10\b", text, re.MULTILINE)


@pytest.mark.parametrize("format_", ["table", "markdown"])
def test_many_sides_are_rows_with_the_best_first(format_: str) -> None:
    scores = score(rows(), by="subject")
    assert order(render(scores, format_)) == ["best", "good", "fair", "worst"]
    assert order(render(scores, format_, sort="cost_usd_mean")) == ["worst", "fair", "good", "best"]
    head = render(scores, format_, sort="cost_usd_mean").replace("\\_", "_").split("\n", 2)
    assert re.search(r"records[ |]+(cost_usd_)?", " ".join(head[:2]))


def test_three_sides_are_columns() -> None:
    few = {name: RIGHT[name] for name in ("fair", "best", "good")}
    assert re.match(r"subject +best +fair +good\n", render(score(rows(few), by="subject"), "table"))
    ranked = render(score(rows(few), by="subject"), "table", sort="accuracy")
    assert re.match(r"subject +best +good +fair\n", ranked)


def test_a_side_without_a_value_is_last_and_the_reason_is_given() -> None:
    some = [{k: v for k, v in row.items() if row["subject"] != "best" or k != "cost_usd"}
            for row in rows()]  # fmt: skip
    text = render(score(some, by="subject", metrics=["cost_usd_mean"]), "table")
    assert order(text) == ["worst", "fair", "good", "best"]
    assert "cost_usd_mean has no value for subject=best: needs cost_usd.\n" in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_leaderboard_fits_and_names_what_has_no_room(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    scores = score(rows(truncated=True), by="subject")
    text = render(scores, "table")
    assert max(map(len, text.splitlines())) <= width
    one_line = " ".join(text.split())
    assert "Sorted by accuracy, the best first. --sort METRIC sorts by another." in one_line
    no_room = re.search(r"No room for (.*): a wider terminal or --metric shows them\.", one_line)
    assert bool(no_room) == (width < 120)
    if no_room:
        names = no_room[1].split(", ")
        assert "accuracy" not in names
        named = render(score(rows(truncated=True), by="subject", metrics=names), "table")
        assert "No room" not in named
        assert max(map(len, named.splitlines())) <= width


def test_all_shows_every_metric_of_every_side_in_several_tables() -> None:
    many = {f"s{i}": i % 10 for i in range(MAX_SIDES + 3)}
    scores = score(rows(many), by="subject")
    brief, whole = render(scores, "table"), render(scores, "table", every=True)
    assert len(order(brief)) == MAX_SIDES
    assert "3 more groups: --all shows them all." in brief
    assert set(order(whole)) == set(many)
    assert len(order(whole)) > 3 * len(many)
    assert "more groups" not in whole
    assert "brier" in whole
    assert "brier" not in brief


def test_errors_of_a_side_are_always_shown() -> None:
    failed = [{**row, "status": "error"} if i == 0 else row for i, row in enumerate(rows())]
    text = render(score(failed, by="subject", metrics=["accuracy"]), "table")
    assert re.search(r"^fair +10 .*\n +1 error ", text, re.MULTILINE)


def test_an_unknown_metric_to_sort_by_is_refused() -> None:
    with pytest.raises(UsageError, match="Did you mean 'accuracy'"):
        render(score(rows(), by="subject"), "table", sort="acuracy")
