"""Records on disk have the scores of the same records in memory, but for the last digits.

However the records are cut into files and parts, scores of records on disk are equal to the last
digit: every sum is made in the order of the records.
"""

import fcntl
import json
import os
import random
import signal
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pennyweight
from generate import many, records
from pennyweight.define import METRICS
from pennyweight.errors import InputError, UsageError
from pennyweight.scoring.groups import shape_of
from pennyweight.scoring.large import spill
from pennyweight.scoring.large.folder import PREFIX
from pennyweight.scoring.large.values import ValueMetric
from sources.test_partitions import part

OPTIONS: list[dict[str, Any]] = [
    {},
    {"by": "tier"},
    {"by": "category", "positive": "Yes", "k": 2, "weights": {"accuracy": 1.0, "brier": 3.0}},
    {"weight": "tasks", "estimand": "these-tasks", "bins": 7},
]


@pytest.fixture
def on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep no record in memory."""
    monkeypatch.setattr(spill, "IN_MEMORY", 0)
    monkeypatch.setattr(spill, "PART", 300)


def spilled(rows: Any, size: int, **options: Any) -> dict[str, Any]:
    """Score with parts of about this many records on disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spill, "IN_MEMORY", 0)
        patch.setattr(spill, "PART", size)
        return pennyweight.score(rows, **options).to_dict()


def digits(value: Any) -> Any:
    """Compare nested values to twelve digits."""
    if isinstance(value, dict):
        return {k: digits(v) for k, v in value.items()}
    if isinstance(value, list):
        return [digits(v) for v in value]
    return pytest.approx(value, rel=1e-12, abs=1e-14) if isinstance(value, float) else value


@pytest.mark.parametrize(("options", "attempts"), [*((o, 3) for o in OPTIONS), ({}, 1)], ids=str)
def test_every_metric_is_the_same(options: dict[str, Any], attempts: int) -> None:
    rows = many(700, seed=attempts, attempts=attempts)
    expected = pennyweight.score(rows, **options).to_dict()
    metrics = expected["groups"][0]["metrics"]
    assert set(metrics) == set(METRICS)
    assert sum(value is not None for value in metrics.values()) > 20
    assert spilled(rows, 200, **options) == digits(expected)


@given(rows=records(), size=st.integers(1, 6), by=st.sampled_from([(), ("tier",), ("passed",)]))
@settings(max_examples=6, deadline=None)
def test_odd_records_are_the_same(rows: list[dict[str, Any]], size: int, by: Any) -> None:
    assert spilled(rows, size, by=by) == digits(pennyweight.score(rows, by=by).to_dict())


def cut_up(
    folder: Path, rows: list[dict[str, Any]], cuts: list[int], rng: random.Random
) -> list[dict[str, Any]]:
    """Write records to files, some of one record or none, some without a column; return them."""
    written: list[dict[str, Any]] = []
    places = sorted([0, len(rows), *cuts, *(cut + 1 for cut in cuts[:2]), *cuts[:1]])
    for number, (start, stop) in enumerate(pairwise(places)):
        gone = rng.choice(["", "", "cot", "latency_ms", "passed"])
        own = [{k: v for k, v in row.items() if k != gone} for row in rows[start:stop]]
        path = folder / f"{number:02}{rng.choice(['.parquet', '.jsonl'])}"
        if own:
            part(path, own)
        else:
            empty = pl.DataFrame(rows, infer_schema_length=None).clear()
            folder.mkdir(parents=True, exist_ok=True)
            empty.write_parquet(path.with_suffix(".parquet"))
        written += own
    return written


@given(seed=st.integers(0, 2**32), cuts=st.lists(st.integers(1, 198), max_size=6))
@settings(max_examples=3, deadline=None)
def test_random_partitions_are_the_same(
    tmp_path_factory: pytest.TempPathFactory, seed: int, cuts: list[int]
) -> None:
    rng = random.Random(seed)
    rows = many(200, seed=seed % 100, attempts=2)
    rng.shuffle(rows)
    folder = tmp_path_factory.mktemp("parts")
    rows = cut_up(folder, rows, cuts, rng)
    found = spilled(folder, rng.randint(10, 199), by="tier")
    assert found == digits(pennyweight.score(rows, by="tier").to_dict())
    assert found == spilled(rows, rng.randint(10, 199), by="tier")  # to the last digit


def test_tasks_can_be_groups() -> None:
    rows = many(12, attempts=4)
    for by in ("task_id", ["tier", "task_id"]):
        assert spilled(rows, 5, by=by) == digits(pennyweight.score(rows, by=by).to_dict())


def test_records_without_a_task_are_the_same() -> None:
    rows = [{k: v for k, v in row.items() if k != "task_id"} for row in many(300)]
    for some in (rows, [*rows, *many(20)]):
        assert spilled(some, 70) == digits(pennyweight.score(some).to_dict())


def test_problems_are_told_as_in_memory(tmp_path: Path) -> None:
    rows = [*many(30), {"task_id": "t3", "answer": "4", "tier": "T9"}]
    rows += [{**rows[4], "answer": "again"}, {**rows[5], "answer": "again"}]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"latency_ms": -1}]))
    for options in ({}, {"by": "shade"}):
        with pytest.raises(InputError) as in_memory:
            pennyweight.score(path, **options)
        with pytest.raises(InputError) as told:
            spilled(path, 7, **options)
        assert str(told.value) == str(in_memory.value)
        assert f"{path}, line 32: task 't4': the same attempt (1) as in {path}, line 5" in str(
            told.value
        )
    kept = pennyweight.score(path, skip_bad=True, by="tier")
    assert kept.left_out == 3
    assert spilled(path, 7, skip_bad=True, by="tier") == digits(kept.to_dict())
    with pytest.raises(UsageError, match="--by column 'shade' is not known"):
        spilled(path, 7, by="shade", skip_bad=True)


def test_the_records_can_be_written_too(tmp_path: Path, on_disk: None) -> None:
    rows = many(900)
    pennyweight.score(rows, per_task=tmp_path / "r.parquet", metrics="accuracy")
    assert pl.read_parquet(tmp_path / "r.parquet").height == 900


def test_nothing_is_left_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_disk: None
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    pennyweight.score(many(900), metrics="accuracy")
    with pytest.raises(InputError):
        pennyweight.score([*many(900), {"latency_ms": -1}])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        pl.exceptions.ComputeError(
            "parquet: File out of specification: underlying IO error: No space left on device"
        ),
    ],
    ids=["OSError", "ComputeError"],
)
def test_a_disk_without_room_is_told(
    monkeypatch: pytest.MonkeyPatch, on_disk: None, error: Exception
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    with pytest.raises(
        InputError, match=r"written: No space left on device.*\. Set TMPDIR to a disk"
    ):
        pennyweight.score(many(900), metrics="accuracy")


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_the_process_leaves_nothing_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_disk: None, sent: signal.Signals
) -> None:
    before = signal.signal(sent, signal.SIG_DFL)  # other tests may have left one
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    seen: list[Path] = []

    def stop(records: int) -> None:
        seen.extend(tmp_path.glob("pennyweight-columns-*"))
        if seen:
            signal.raise_signal(sent)

    file = part(tmp_path / "rows" / "many.jsonl", many(900))
    try:
        with pytest.raises(SystemExit):
            pennyweight.score(file, metrics="accuracy", progress=stop)
        assert signal.getsignal(sent) is signal.SIG_DFL
    finally:
        signal.signal(sent, before)
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]
    assert seen


def test_what_a_killed_process_left_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_disk: None
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left, held, new = (tmp_path / f"{PREFIX}{name}" for name in ("left", "held", "new"))
    for folder in (left, held, new):
        folder.mkdir()
    for folder in (left, held):
        (folder / "000000.parquet").write_bytes(b"PAR1")
    opened = os.open(held, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        pennyweight.score(many(900), metrics="accuracy")
    finally:
        os.close(opened)
    assert {*tmp_path.iterdir()} == {held, new}


def test_how_each_metric_is_computed_in_parts() -> None:
    """The list is long on purpose: a metric that reads more at a time takes more memory."""
    whole, by_task = set(), set()
    for metric in METRICS.values():
        if metric.is_users or metric.combined or metric.over == "tasks":
            continue
        found = ValueMetric.of(metric, {})
        if found is None:
            whole.add(metric.name)
        elif found.by_task:
            by_task.add(metric.name)
        else:
            assert shape_of(metric.expression({})).values is not None
    assert by_task == {"overthinking_tokens", "truncation_aoc"}
    assert whole == {
        *("precision", "recall", "f1", "brier", "ece", "ece_debiased", "confidence_auroc"),
        *("brier_reliability", "brier_resolution", "brier_uncertainty", "ece_smooth", "aurc"),
        *("ece_stated", "ece_logprobs", "ece_agreement", "ece_mean_confidence"),
        *("auroc_stated", "auroc_logprobs", "auroc_agreement", "auroc_mean_confidence"),
        *("cost_usd_total", "judge_cost_usd_total", "cost_of_pass", "cost_of_pass_with_judges"),
        *("sce", "sce_normalized", "token_efficiency", "tokens_per_correct", "thinking_share"),
        *("judge_alpha", "usr_math", "usr_rag", "usr_rag_scored", "citation_precision"),
        *("citation_recall", "behavior_coverage_micro", "tier_uplift", "pass_rate_variance"),
        *("cost_variance", "cost_delta", "judge_pass_rate_corrected"),
    }
