"""The benchmarks and tools run: their imports exist, and a small part of each works."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from bench import gates, sample_store, score

from pennyweight.store.store import Store

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("path", sorted((ROOT / "bench").glob("*.py")), ids=lambda p: p.stem)
def test_every_benchmark_can_be_imported(path):
    import_module(f"bench.{path.stem}")


@pytest.mark.parametrize("path", sorted((ROOT / "tools").glob("*.py")), ids=lambda p: p.stem)
def test_every_tool_can_be_imported(path):
    code = f"import sys; sys.path.insert(0, 'tools'); import {path.stem}"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


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
