"""A baseline that a reader chose: the same test as `compare`, from sums that the database makes."""

import random
from itertools import product

import pytest

from api.pages.test_digest import SETTINGS as RULES
from pennyweight.api.compare import compare
from pennyweight.api.log_import import import_logs
from pennyweight.api.pages.board_pairs import BoardPairs
from pennyweight.api.pages.digest import digest
from pennyweight.api.pages.digest_cache import compute
from pennyweight.api.sources import resolve
from pennyweight.render.page.leaderboard import board_of
from pennyweight.scoring.ranking import AllPairs
from pennyweight.store.store import Store
from store.samples import RUN, call, record, run

SETTINGS = {"subjects": ["a", "b", "c"], "tiers": ["T0", "T1"], "tasks": 12, "runs": 2}


@pytest.fixture
def filled(store_address):
    store = Store(store_address)
    rng = random.Random(5)
    rates = {"a": 0.9, "b": 0.6, "c": 0.3}
    store.add_run(run(attempts=144, status="done", settings={**RULES, **SETTINGS}))
    rows = []
    for subject, rate in rates.items():
        for tier, task, attempt in product(("T0", "T1"), range(12), (1, 2)):
            key = {"subject": subject, "tier": tier, "attempt": attempt, "target": "4"}
            given = {"response": f"It is {4 if rng.random() < rate else 5}."}
            if rng.random() < 0.05:
                given = {"status": "error", "error": "x"}
            rows.append(record(f"t{task}", **key, **given))
    store.write(rows, [call("t0")])
    yield store
    store.close()


@pytest.mark.parametrize("by", [["subject", "tier"], ["subject"], ["tier"]])
def test_the_differences_are_those_of_compare(filled, by):
    digest = compute(filled, filled.find(RUN))
    board = board_of(digest, " × ".join(by))
    pairs = BoardPairs(filled)
    for side in board["sides"]:
        found = pairs.to(RUN, "stamp", digest["headline"], board, side["name"])
        assert found == pairs.to(RUN, "stamp", digest["headline"], board, side["name"])
        same = compare(
            RUN, by=by, baseline=side["name"].replace(" · ", " / "),
            metrics=digest["headline"], store=filled,
        )  # fmt: skip
        for one, other in zip(found, same.pairs, strict=True):
            assert one["b"] == other.b.replace(" / ", " · ")
            for name in ("difference", "p", "tasks"):
                assert one[name] == pytest.approx(getattr(other, name)), name
            missing = other.missing and {**other.missing.to_dict(), "p_adjusted": None, "p": None}
            assert (one["missing"] and {**one["missing"], "p_adjusted": None, "p": None}) == missing


@pytest.mark.parametrize("by", [["subject", "tier"], ["subject"], ["tier"]])
def test_intervals_tests_and_ranks_agree_whichever_side_is_the_baseline(filled, by):
    digest = compute(filled, filled.find(RUN))
    board = board_of(digest, " × ".join(by))
    pairs, decided, beaten = BoardPairs(filled), {}, {}
    for side in board["sides"]:
        name = side["name"]
        found = pairs.to(RUN, "stamp", digest["headline"], board, name)
        for one in found:
            low, high = one["interval"]
            shown = one["p_adjusted"] <= 0.05
            assert shown == (low >= 0 or high <= 0), one
            assert decided.setdefault(frozenset((name, one["b"])), shown) is shown
        sure = [p for p in found if p["p_adjusted"] <= 0.05 and not p["errors_decide"]]
        beaten[name] = sum(p["difference"] > 0 for p in sure)
    assert any(decided.values()) == (by != ["tier"])
    for rank in board["comparison"]["ranks"]:
        assert rank["low"] == 1 + beaten[rank["name"]]


def test_a_difference_is_shown_only_if_the_tasks_of_the_pair_show_it():
    """The sides are ranked on the tasks that all tried, but a pair may share others too."""

    def tried(subject, task, right):
        return {"subject": subject, "task_id": task, "passed": right}

    given = []
    for n in range(30):
        given += [tried(name, f"all-{n}", n < rate) for name, rate in (("a", 25), ("b", 5))]
        given.append(tried("c", f"all-{n}", n % 2 > 0))
    for n in range(60):
        given += [tried("a", f"two-{n}", n % 3 == 0), tried("b", f"two-{n}", n % 3 < 2)]
    found = digest(resolve(given))["comparison"]
    assert found["tests"]["tasks"] == 30
    assert {rank["name"]: (rank["low"], rank["high"]) for rank in found["ranks"]} == {
        "a": (1, 2), "b": (1, 3), "c": (2, 2),
    }  # fmt: skip
    (pair,) = (p for p in found["gaps"] if {p["a"], p["b"]} == {"a", "b"})
    assert (pair["tasks"], pair["p"]) == (90, 1.0)
    assert AllPairs(**found["tests"])["a", "b"] < 0.01
    assert pair["p_adjusted"] == 1.0
    assert pair["interval"][0] < 0 < pair["interval"][1]


def test_sides_are_not_called_different_in_a_direction_that_their_tasks_do_not_show():
    """The tier that all sides have says one thing, all tiers of the pair another."""

    def tried(subject, tier, rate):
        return [
            {"subject": subject, "tier": tier, "task_id": f"t{n}", "passed": n % 10 < rate}
            for n in range(60)
        ]

    given = [*tried("a", "T0", 1), *tried("b", "T0", 8), *tried("c", "T0", 4)]
    found = digest(resolve([*given, *tried("b", "T1", 1), *tried("c", "T1", 9)]))
    board = board_of(found, "subject")["comparison"]
    assert {rank["name"]: rank["low"] for rank in board["ranks"]} == {"a": 3, "b": 1, "c": 1}
    (pair,) = (p for p in board["gaps"] if {p["a"], p["b"]} == {"b", "c"})
    assert (pair["a"], pair["difference"] < 0) == ("c", True)
    assert AllPairs(**board["tests"])["b", "c"] < 0.01
    assert pair["p_adjusted"] == 1.0
    assert pair["interval"][1] >= 0


def test_scores_of_uneven_tries_have_one_interval_whichever_side_is_the_baseline(store_address):
    store, rng = Store(store_address), random.Random(6)
    rows = [
        {"tier": tier, "task_id": f"t{task}", "attempt": attempt, "response": "x",
         "impl_rate": round(min(1.0, max(0.0, rng.gauss(mean, 0.3))), 3)}
        for tier, mean, tries in (("T0", 0.4, 5), ("T1", 0.6, 1))
        for task in range(8)
        for attempt in range(1, tries + 1)
    ]  # fmt: skip
    run = import_logs(resolve(rows), name="scores", store=store).run_id
    digest = compute(store, store.find(run))
    board = board_of(digest)
    (gap,) = board["comparison"]["gaps"]
    assert gap["metric"] == "impl_rate_mean"
    (turned,) = BoardPairs(store).to(run, "stamp", "impl_rate_mean", board, gap["b"])
    assert turned["difference"] == pytest.approx(-gap["difference"])
    assert turned["interval"] == pytest.approx([-end for end in reversed(gap["interval"])])
    assert turned["p"] == pytest.approx(gap["p"], abs=0.02)
    store.close()


def test_no_such_baseline(filled):
    digest = compute(filled, filled.find(RUN))
    board = board_of(digest)
    assert BoardPairs(filled).to(RUN, "s", digest["headline"], board, "nobody") is None
    assert BoardPairs(filled).to(RUN, "s", None, board, board["sides"][0]["name"]) is None


def test_tasks_that_changed_are_left_out_whichever_side_is_the_baseline(store_address):
    store = Store(store_address)
    rows = [
        {"subject": name, "task_id": f"t{n}", "input": f"Question {n}?", "answer": answer}
        | {"target": "easy" if name == "b" and n < 15 else "right"}
        for n in range(40)
        for name, answer in (("a", "right" if n >= 25 else "wrong"), ("b", "easy"))
    ]
    run = import_logs(resolve(rows), name="two-exams", store=store).run_id
    digest = compute(store, store.find(run))
    assert sorted(digest["changed"]) == sorted(f"t{n}" for n in range(15))
    board = board_of(digest)
    (gap,) = board["comparison"]["gaps"]
    given = "stamp", "accuracy", board, gap["b"], digest["changed"]
    (turned,) = BoardPairs(store).to(run, *given)
    assert (turned["tasks"], turned["difference"]) == (gap["tasks"], -gap["difference"])
    store.close()
