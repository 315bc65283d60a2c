"""The benchmarks and tools run: their imports exist, and a small part of each works."""

import json
import math
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from bench import gates, log_files, logs, peers, reasoning, sample_store, score, statistics
from bench.coverage import SET, Coverage, ExactRate, records
from bench.differences import Costs, Detects, FalseAlarms
from bench.early_stops import Decided, Rates, Saving
from bench.findings import Finding
from bench.limits import AtLimit
from bench.ranks import Attempts, Ranks, Scores, at_the_border, ranked
from bench.ratchets import Ratchet
from bench.worlds import Amounts, Law, Repeats

import pennyweight
from pennyweight.store.store import Store

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("path", sorted((ROOT / "bench").glob("*.py")), ids=lambda p: p.stem)
def test_every_benchmark_can_be_imported(path):
    import_module(f"bench.{path.stem}")


@pytest.mark.parametrize("path", sorted((ROOT / "tools").glob("*.py")), ids=lambda p: p.stem)
def test_every_tool_can_be_imported(path):
    code = f"import sys; sys.path.insert(0, 'tools'); import {path.stem}"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_the_docs_show_how_often_the_screens_of_reasoning_are_right():
    figures = reasoning.figures()
    read, fresh, held = (figures[name] for name in ("equations", "held_out", "support"))
    page = (ROOT / "docs" / "reasoning-equations.md").read_text("utf-8")
    for what, name, form in (
        ("equations read in chains without mistakes", "equations", "{:,}"),
        ("of them flagged", "false_flags", "{:.1%}"),
        ("planted mistakes", "planted", "{:,}"),
        ("of them found", "found", "{:.1%}"),
    ):
        cells = (form.format(one[name]).replace("%", " %") for one in (read, fresh))
        assert f"| {what} | {' | '.join(cells)} |" in page
    page = (ROOT / "docs" / "reasoning-support.md").read_text("utf-8")
    copied, reworded = (
        f"{100 * held[f'flagged_{kind}']:.1f} % | {held[f'auroc_{kind}']:.3f}"
        for kind in ("copied", "reworded")
    )
    assert f"| copied from the context | {copied} |" in page
    assert f"| said in other words | {reworded} |" in page
    assert f"| not supported | {100 * held['flagged_unsupported']:.1f} % | |" in page


def test_releases_can_be_decided():
    world = gates.World(json.dumps(gates.CONFIDENT))
    assert world.release(0)[0] in {"pass", "fail", "inconclusive"}
    compared = gates.World(json.dumps(gates.no_worse(gates.WIDE)), drop=0.0, sequential=True)
    verdict, tasks = compared.release(0)
    assert verdict in {"pass", "fail", "inconclusive"}
    assert 0 < tasks <= gates.TASKS


def test_sample_records_can_be_written(tmp_path):
    store = Store(str(tmp_path / "store.db"))
    sample_store.fill(store, records=40)
    assert store.find(sample_store.RUN).attempts == 40
    store.close()
    score.generate(tmp_path / "records.jsonl", 10)
    assert len((tmp_path / "records.jsonl").read_text().splitlines()) == 10


def test_coverage_of_a_rate_is_computed_from_every_possible_count():
    (found,) = ExactRate(10, 0.5, 0.5, 0.9).measure(0, 0)
    low, high = 2, 8  # 95 % intervals of 2 to 8 passes in 10 contain one half
    within = sum(math.comb(10, k) for k in range(low, high + 1)) / 2**10
    assert found.rate == pytest.approx(within)
    assert found.error == 0


def test_a_simulated_row_repeats_with_its_seed():
    row = Coverage("cost_usd_mean", Amounts("cost_usd", Law("gamma", 5), 20))
    (first,), (again,), (other,) = (row.measure(seed, 50) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert 0.8 < first.rate <= 1
    assert 0.7 < first.width < 1.3


def test_equal_sides_are_compared_as_users_compare_them():
    row = FalseAlarms(Costs(Law("lognormal", 0.5), Law("lognormal", 0.5), 10))
    (found,) = row.measure(1, 20)
    assert found.rate < 0.3
    (power,) = Detects(row.world).measure(1, 20)
    assert power.rate > 0.2


def test_ranks_are_those_that_users_see_and_their_mistakes_are_counted():
    wrong, most = {}, "a range misses the true rank"
    for world in (
        Attempts(3, 20, (1, 5), (0.9,)),
        Attempts(4, 30, step=0.5, alike=2),
        Scores(3, 12, (Law("beta", 0.2, 1.8), Law("beta", 20, 180))),
    ):
        for found in Ranks(world).measure(1, 20):
            wrong[type(world), world.level.any(), found.what.partition(": ")[2]] = found.rate
    assert list(wrong) == [
        (Attempts, False, most),
        (Attempts, True, most),
        (Attempts, True, "a wrong order is shown"),
        (Scores, False, most),
    ]
    assert max(wrong.values()) <= 0.4
    better = Attempts(3, 60, step=2.0)
    values = better.draw(np.random.default_rng(1))
    for found in (ranked(better, values), at_the_border(better, values)):
        assert [side.rank for side in found.sides] == [3, 2, 1]
        assert found["T2"].high < found["T0"].low
    (missed, order) = Ranks(replace(better, step=-2.0)).measure(1, 20)
    assert missed.rate == order.rate == 0


def test_gates_are_decided_at_their_limit():
    row = AtLimit("cost_usd_mean", Amounts("cost_usd", Law("gamma", 9), 20))
    passed, failed = row.measure(1, 20)
    assert passed.rate + failed.rate < 0.5
    assert passed.sets == failed.sets == 10


def test_early_stops_and_the_ratchet_are_decided():
    (decided,) = Decided(0.96, 0.8, 20).measure(1, 40)
    assert 0 <= decided.rate <= 1
    wrong_fail, wrong_pass, saved = Saving(
        "pass_rate", Rates(0.9, 60), Rates(0.5, 60), 0.8
    ).measure(1, 20)
    assert (wrong_fail.sets, wrong_pass.sets, saved.sets) == (5, 5, 10)
    assert saved.rate <= 1
    early = Ratchet("value", tasks=20).measure(1, 8)
    assert [found.world.split()[-1] for found in early] == ["2", "10", "20"]


def test_gates_of_others_get_the_releases_that_ours_get():
    worse = peers.Release(-0.12, 20)
    rng = np.random.default_rng(1)
    before, now = worse.draw(rng, 2_000)
    assert (now - before).mean() == pytest.approx(-0.12, abs=0.01)
    words = peers.ours(worse, before[:10], now[:10], "no worse")
    tally = peers.Tally.of("ours", "0", "no worse", worse, words)
    assert tally.right == "fail"
    assert tally.passed + tally.failed + tally.inconclusive == pytest.approx(1)
    costs = peers.Release(-0.2, 20, ease=None, margin=0.2)
    before, now = costs.draw(rng, 20_000)
    assert now.mean() == pytest.approx(1.2, abs=0.02)
    assert costs.right("no worse") == "inconclusive"
    assert peers.Release(0.0, 20).right("better") == "fail"


def test_the_truth_of_repeated_attempts_is_that_of_fresh_ones():
    rng = np.random.default_rng(1)
    for of in ("pass_at_k", "pass_hat_k", "g_pass_at_k", "majority_accuracy"):
        world = Repeats(of, (3, 1.5), 3, 400, 3)
        row = Coverage(of, world)
        frame = records(world.draw(rng, 20), world.tasks, world.tries)
        found = pennyweight.score(frame, by=SET, metrics=row.metric, **world.options)
        values = [group[of].value for group in found.groups]
        assert np.mean(values) == pytest.approx(world.truth, abs=0.02)


def test_every_seed_has_worlds_of_its_own():
    first, again, other = (statistics.sections(seed)["drawn"] for seed in (1, 1, 2))
    assert first == again
    assert not set(first) & set(other)


def test_a_row_misses_its_bound_only_beyond_the_error_of_the_simulation():
    row = Finding("", "", "", "", 0.92, 0.006, 0.95, 0.93, 1.0, 1000, 1.2, 1.5)
    assert row.met
    assert not replace(row, rate=0.91).met
    assert not replace(row, width=1.6).met
    assert not replace(row, low=0.75, high=0.85).met


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (log_files.inspect_eval, "a.eval"),
        (lambda path, n: log_files.inspect_eval(path, n, noise=30), "b.eval"),
        (log_files.otel_traces, "c.jsonl"),
        (log_files.pydantic_report, "d.json"),
        (log_files.deepeval_run, "e.json"),
        (lambda path, n: log_files.promptfoo_lines(path, (n - 1) * 165_000), "f.jsonl"),
    ],
)
def test_every_log_of_the_benchmark_is_read_and_every_second_attempt_passed(write, name, tmp_path):
    write(tmp_path / name, 4)
    found = pennyweight.score(tmp_path / name, metrics=["pass_rate"])
    assert (found["pass_rate"].value, found.groups[0].records) == (0.5, 4)


def test_a_large_sample_of_the_benchmark_has_the_size_that_is_asked_for(tmp_path):
    log_files.inspect_large_sample(tmp_path / "a.eval", 70_000_000)
    assert pennyweight.score(tmp_path / "a.eval")["pass_rate"].value == 1.0
    assert {one.name for one in logs.READERS} <= logs.PINNED.keys()
