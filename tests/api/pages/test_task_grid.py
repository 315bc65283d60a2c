"""The grid of tasks and sides: the same numbers as adding up the records one by one."""

import random
import statistics
from itertools import product

import pytest

from api.pages.test_digest import SETTINGS as RULES
from pennyweight.api.pages.digest_cache import compute
from pennyweight.api.pages.task_grid import GridChoice, grid_answer, grid_of, grid_page
from pennyweight.store.store import Store
from store.samples import RUN, call, record, run

SETTINGS = {"subjects": ["a", "b"], "tiers": ["T0", "T1"], "tasks": 9, "runs": 3}


@pytest.fixture
def filled(store_address):
    store = Store(store_address)
    rng = random.Random(3)
    store.add_run(run(attempts=108, status="done", settings={**RULES, **SETTINGS}))
    rows, truth = [], {}
    for subject, tier, task, attempt in product("ab", ("T0", "T1"), range(9), (1, 2, 3)):
        if (subject, tier, task) == ("b", "T1", 8):
            continue  # a side that did not try a task
        key = {"subject": subject, "tier": tier, "attempt": attempt, "target": "4"}
        right = task > 0 and rng.random() < 0.2 + 0.08 * task
        given = {"response": f"It is {4 if right else 5}.", "category": f"kind {task % 3}"}
        failed = (task == 7 and subject == "a" and tier == "T0") or rng.random() < 0.05
        if failed:
            given |= {"status": "error", "error": "x", "response": None}
        rows.append(record(f"t{task}", **key, **given))
        truth.setdefault((f"t{task}", subject, tier), []).append(None if failed else right)
    store.write(rows, [call("t0")])
    yield store, truth
    store.close()


def plain(truth, by):
    """Add up the attempts of each task and side without a database."""
    cells = {}
    for (task, subject, tier), results in truth.items():
        side = {"subject": subject, "tier": tier}
        cells.setdefault((task, *(side[n] for n in by)), []).extend(results)
    return cells


@pytest.mark.parametrize("by", [("subject", "tier"), ("subject",), ("tier",)])
def test_cells_are_the_attempts_added_up(filled, by):
    store, truth = filled
    grid = grid_of(compute(store, store.find(RUN)), by)
    assert grid["by"] == list(by)
    cells, rows = plain(truth, by), grid_page(store, RUN, grid, GridChoice(), 100)
    assert {row.task for row in rows} == {task for task, *_ in truth}
    counts = dict.fromkeys(("differs", "wrong", "flaky"), 0)
    for row in rows:
        means, flaky = [], False
        for name, cell in zip(grid["sides"], row.cells, strict=True):
            results = cells.get((row.task, *name.split(" · ")))
            if results is None:
                assert cell is None
                continue
            known = [r for r in results if r is not None]
            assert (cell.attempts, cell.errors) == (len(known), len(results) - len(known))
            if not known:
                assert cell.value is None
                continue
            means.append(statistics.fmean(known))
            flaky |= len(set(known)) > 1
            assert cell.value == pytest.approx(means[-1], abs=0.0006)
        counts["differs"] += len(set(means)) > 1
        counts["wrong"] += max(means) == 0
        counts["flaky"] += flaky
    assert {name: grid[name] for name in counts} == counts
    assert counts["wrong"] >= 1
    assert counts["flaky"] >= 1


def test_orders_and_filters(filled):
    store, _truth = filled
    grid = grid_of(compute(store, store.find(RUN)))

    def means(row):
        return [c.value for c in row.cells if c and c.value is not None]

    def tasks(**choice):
        return grid_page(store, RUN, grid, GridChoice(**choice), 100)

    hard = [statistics.fmean(means(row)) for row in tasks()]
    assert hard == pytest.approx(sorted(hard), abs=0.002)
    spread = [statistics.pstdev(means(row)) for row in tasks(order="disagreement")]
    assert spread == pytest.approx(sorted(spread, reverse=True), abs=0.002)
    kinds = [row.category for row in tasks(order="category")]
    assert kinds == sorted(kinds)
    assert all(max(means(row)) == 0 for row in tasks(only="wrong"))
    assert len(tasks(only="differs")) == grid["differs"]
    first, rest = tasks(), tasks(start=4)
    assert [row.task for row in rest] == [row.task for row in first[4:]]


def test_a_task_that_is_gone_leaves_the_grid(filled):
    store, _ = filled
    compute(store, store.find(RUN))
    with store.engine.begin() as connection:
        for table in ("pennyweight_record", "pennyweight_measured"):
            connection.exec_driver_sql(f"DELETE FROM {table} WHERE task_id = 't3'")
    grid = grid_of(compute(store, store.find(RUN)))
    assert grid["tasks"] == 8
    assert "t3" not in {row.task for row in grid_page(store, RUN, grid, GridChoice(), 100)}


def test_damaged_cells_are_empty(filled):
    store, _ = filled
    digest = compute(store, store.find(RUN))
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE pennyweight_grid SET cells = '{\"a\": [[['")
    found = grid_answer(store, RUN, digest, "", {}, 3)
    assert [row["cells"] for row in found["rows"]] == [[None] * 4] * 3
    assert grid_answer(store, RUN, None, "", {}, 3)["rows"] == []


def test_what_makes_no_sense_has_no_effect():
    assert GridChoice.of({"rows": "x", "only": "drop", "from": "-3"}) == GridChoice()
    assert GridChoice.of({"rows": "task", "only": "flaky", "from": "20"}).start == 20
