"""Partitions on a Ray cluster of two nodes: the numbers, and the errors, of one machine."""

import json
import random
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

import pennyweight
from generate import many
from pennyweight.errors import InputError, UsageError
from scoring.large.test_scores import cut_up, digits, spilled
from sources.test_partitions import part

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def test_a_cluster_gives_the_numbers_and_the_errors_of_one_machine(
    cluster: Any, tmp_path: Path
) -> None:
    rows, address = many(300, attempts=2), f"ray://{cluster.address}"
    for number in range(5):
        part(tmp_path / f"half={number % 2}" / f"{number}.jsonl", rows[number::5])
    expected = pennyweight.score(tmp_path, by="half").to_dict()
    assert pennyweight.score(tmp_path, by="half", on=address).to_dict() == digits(expected)
    for seed in (1, 2):
        rng = random.Random(seed)
        rng.shuffle(rows)
        written = cut_up(
            tmp_path / f"cut-{seed}", rows, rng.sample(range(1, len(rows) - 1), 3), rng
        )
        on_ray = spilled(tmp_path / f"cut-{seed}", rng.randint(10, 300), by="tier", on=address)
        assert on_ray == spilled(written, rng.randint(10, 300), by="tier")  # to the last digit
        rmtree(tmp_path / f"cut-{seed}")
    path = tmp_path / "half=1" / "bad.jsonl"
    path.write_text(json.dumps({"task_id": "t0", "attempt": 1, "latency_ms": -3}) + "\n")
    problem = f'{path}, line 1: task "t0": latency_ms is -3; it must not be below 0.'
    with pytest.raises(InputError) as raised:
        pennyweight.score(tmp_path, on=address)
    assert problem in raised.value.problems
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"broken\.parquet: not a readable Parquet file"):
        pennyweight.score(tmp_path, on=address)
    two = tmp_path / "two"
    part(two / "a.jsonl", [{"task_id": "1", "answer": "4", "expected": "4"}])
    part(two / "b.jsonl", [{"task_id": "2", "expected": 2, "observed": 1}])
    for on in (None, address):
        with pytest.raises(UsageError, match="'expected' is the target in some records"):
            pennyweight.score(two, on=on)


def test_what_only_this_machine_can_do_is_refused(tmp_path: Path) -> None:
    path = part(tmp_path / "a.jsonl", many(3))
    with pytest.raises(UsageError, match="measured on 'ray' or 'ray://HOST:PORT'"):
        pennyweight.score(path, on="slurm")
    with pytest.raises(UsageError, match="--per-task does not work with --on ray"):
        pennyweight.score(path, on="ray", per_task=tmp_path / "b.jsonl")
    with pytest.raises(UsageError, match="measures the files of a table; the records is none"):
        pennyweight.score(many(3), on="ray")
    with pytest.raises(UsageError, match="write standard input to one first"):
        pennyweight.score("-", on="ray")
