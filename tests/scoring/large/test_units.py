"""Sides on disk are compared as sides in memory are, but for the last digits."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pennyweight
from generate import many, records
from own_metrics import own_catalogue
from pennyweight.define import metric
from pennyweight.errors import InputError, UsageError
from pennyweight.scoring import ranking
from pennyweight.scoring.comparison import Comparison
from pennyweight.scoring.large import spill, units
from scoring.large.test_scores import digits, spilled

OPTIONS: list[dict[str, Any]] = [
    {},
    {"by": "subject", "margin": "2%"},
    {"by": ["subject", "tier"], "all_pairs": True},
    {"by": "category", "metrics": ["accuracy", "latency_mean_ms"]},
    {"by": "tier", "where": {"subject": "ours"}, "baseline": "T2"},
    {"by": "subject", "metrics": ["overthinking_tokens", "relative_latency", "pass_rate"] * 2},
]


@pytest.fixture(scope="module", autouse=True)
def _metrics_of_users() -> Iterator[None]:
    with own_catalogue():

        @metric(formula="mean(latency / max(latency))", unit="", range=(0, 1), spec="Tests")
        def relative_latency(latency_ms: pl.Expr) -> pl.Expr:
            """How long attempts take, as a share of the longest of all."""
            return (latency_ms / latency_ms.max()).mean()

        @metric(formula="share that passed of tasks t1…", unit="", range=(0, 1), spec="Tests")
        def first_tasks(task_id: pl.Expr, passed: pl.Expr) -> pl.Expr:
            """How often tasks of one kind are passed, which their names tell."""
            return pl.when(task_id.str.starts_with("t1")).then(passed).mean()

        yield


def on_disk(
    rows: Any,
    size: int = 80,
    tasks: int = 120,
    what: Callable[[Comparison], Any] = Comparison.to_dict,
    **options: Any,
) -> Any:
    """Compare parts of about `size` records on disk, about `tasks` records at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spill, "IN_MEMORY", 0)
        patch.setattr(spill, "PART", size)
        patch.setattr(units, "SLICE", tasks)
        return what(pennyweight.compare(rows, **options))


EXAM = ("input", "context", "choices", "target", "expected_behaviors", "pass_score")


def same_exam(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ask the same in all records of a task: tasks that differ between sides are left out."""
    first: dict[Any, dict[str, Any]] = {}
    for row in rows:
        first.setdefault(row.get("task_id"), row)
    return [
        {name: value for name, value in row.items() if name not in EXAM}
        | {name: asked[name] for name in EXAM if name in (asked := first[row.get("task_id")])}
        for row in rows
    ]


def sided(number: int, seed: int, attempts: int = 2) -> list[dict[str, Any]]:
    """Return records of two subjects; one of them lacks some attempts, and some tiers."""
    rows = many(number, seed=seed, attempts=attempts)
    ours = [{**row, "subject": "ours"} for row in rows]
    other = [
        {**row, "subject": "theirs", "latency_ms": 2 * i + 1.0, "cost_usd": (i % 7) / 100}
        for i, row in enumerate(many(number, seed=seed, attempts=attempts))
        if i % 5
    ]
    alone = {"task_id": None, "subject": "ours", "tier": "T0", "passed": True}
    return same_exam([*ours, *other, alone, {**alone, "latency_ms": 1e6}])


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_comparison_is_the_same(options: dict[str, Any]) -> None:
    rows = sided(240, seed=3)
    expected = pennyweight.compare(rows, **options).to_dict()
    assert any(pair["difference"] for pair in expected["pairs"])
    assert on_disk(rows, **options) == digits(expected)


@given(rows=records(), size=st.integers(1, 9), tasks=st.integers(1, 9))
@settings(max_examples=6, deadline=None)
def test_odd_sides_are_the_same(rows: list[dict[str, Any]], size: int, tasks: int) -> None:
    rows = same_exam([{**row, "subject": "ab"[i % 2]} for i, row in enumerate(rows)])
    expected, problem = told(lambda: pennyweight.compare(rows, by="subject").to_dict())
    found, same = told(lambda: on_disk(rows, size, tasks, by="subject"))
    assert same == problem
    assert found == digits(expected)


def told(compare: Callable[[], Any]) -> tuple[Any, str]:
    """Return a result, or the mistake that is told."""
    try:
        return compare(), ""
    except (InputError, UsageError) as error:
        return None, str(error)


@given(seed=st.integers(0, 99), cut=st.integers(0, 200), size=st.integers(5, 120))
@settings(max_examples=3, deadline=None)
def test_files_are_sides_however_they_are_cut(
    tmp_path_factory: pytest.TempPathFactory, seed: int, cut: int, size: int
) -> None:
    rows = many(200, seed=seed)
    folder = tmp_path_factory.mktemp("sides")
    for name, part in (("a", rows), ("b/1", rows[:cut]), ("b/2", rows[cut:])):
        path = folder / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        changed = [{**row, "passed": i % 3 > 0} for i, row in enumerate(part)]
        path.write_text("".join(json.dumps(r) + "\n" for r in (part if name == "a" else changed)))
        if not part:
            path.unlink()
    sources = [folder / "a.jsonl", folder / "b"]
    few = ["pass_rate", "latency_mean_ms", "cost_usd_mean"]
    expected = pennyweight.compare(sources, metrics=few).to_dict()
    found = on_disk(sources, size, 50, metrics=few)
    assert found == digits(expected)
    assert found == on_disk(sources, 3 * size, 50, metrics=few)  # to the last digit


def test_of_very_many_tasks_only_the_most_influential_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = sided(90, seed=1)
    expected = pennyweight.compare(rows, by="subject")
    monkeypatch.setattr(ranking, "NAMED", 20)
    found = pennyweight.compare(rows, by="subject")
    assert found.to_dict() == expected.to_dict()
    assert found.common
    with pytest.raises(UsageError, match="tasks in common; at most 20 can be listed"):
        found.common.effects("ours")


def test_values_that_read_several_records_are_those_of_the_side() -> None:
    tokens = {("a", "T0"): 100, ("a", "T1"): 300, ("b", "T0"): 200, ("b", "T1"): 200}
    rows = [
        {"task_id": f"t{i}", "subject": s, "tier": t, "correct": True, "completion_tokens": n + i}
        for i in range(9)
        for (s, t), n in tokens.items()
    ]
    asked: Any = {"by": "subject", "metrics": ["overthinking_tokens", "completion_tokens_mean"]}
    for found in (pennyweight.compare(rows, **asked).to_dict(), on_disk(rows, 5, 7, **asked)):
        pair = found["pairs"][0]
        means = [side["metrics"]["overthinking_tokens"] for side in found["sides"]]
        assert [pair["mean_a"], pair["mean_b"]] == means == [100, 0]


def test_metrics_of_users_read_the_names_of_tasks() -> None:
    rows = sided(90, seed=4)
    expected = pennyweight.compare(rows, by="subject", metrics="first_tasks").to_dict()
    assert 0 < expected["sides"][0]["metrics"]["first_tasks"] < 1
    assert expected["pairs"][0]["difference"]
    assert on_disk(rows, by="subject", metrics="first_tasks") == digits(expected)
    scored = pennyweight.score(rows, metrics="first_tasks").to_dict()
    assert spilled(rows, 40, metrics="first_tasks") == digits(scored)


def test_records_that_are_left_out_change_no_interval() -> None:
    rows = [
        {"task_id": f"t{i % 400}", "tier": "ab"[i % 2], "attempt": i // 400 + 1}
        | ({"task_id": None, "attempt": None} if i % 5 else {})
        | {"prob_correct": i * 7 % 100 / 100, "correct": i * 3 % 11 < 5}
        for i in range(2600)
    ]
    rows = [*rows[:20], *rows[:20:5], {**rows[1], "tier": None}, *rows[20:]]
    asked: Any = {"by": "tier", "metrics": ["ece_smooth", "accuracy"], "skip_bad": True}
    expected = pennyweight.compare(rows, **asked).to_dict()
    assert expected["sides"][0]["intervals"]["ece_smooth"]
    assert on_disk(rows, **asked) == digits(expected)


def test_records_without_a_side_and_durations_choose_no_metrics() -> None:
    rows = [
        {"task_id": f"t{i}", "tier": t, "correct": i % 3 > j, "latency_ms": float(i)}
        for i in range(9)
        for j, t in enumerate(("T0", "T1"))
    ]
    rows.append({"task_id": "t1", "tier": None, "correct": True, "passed": False})
    tested = pennyweight.compare(rows).tested
    assert tested[0] == "accuracy"
    assert on_disk(rows, 4, 5, what=lambda found: found.tested) == tested


def test_mistakes_are_told_as_in_memory() -> None:
    rows = many(30)
    options: dict[str, Any]
    for options in ({"by": "shade"}, {"by": "tier", "baseline": "T9"}, {"where": {"tier": "T1"}}):
        problems = [told(partial(how, rows, **options)) for how in (pennyweight.compare, on_disk)]
        assert problems[0] == problems[1]
        assert problems[0][1]
