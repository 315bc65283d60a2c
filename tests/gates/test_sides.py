"""A policy on every side: the worst verdict counts, and no side is forgotten."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from cli.command import pennyweight, refused
from pennyweight.api.gate import gate
from pennyweight.errors import UsageError
from pennyweight.store.store import Store
from store.samples import RUN, record, run


def rows(**passes: int) -> list[dict[str, Any]]:
    return [
        {"task_id": str(i), "subject": side[0], "tier": side[1:], "passed": i < n}
        for side, n in passes.items()
        for i in range(50)
    ]


def policy(folder: Path, text: str = "thresholds: {pass_rate: 80}") -> Path:
    path = folder / "p.yaml"
    path.write_text(text)
    return path


def test_the_verdict_is_the_worst_of_all_sides(tmp_path: Path) -> None:
    found = gate(rows(aT0=45, aT1=30, bT0=50), policy(tmp_path), each=("subject", "tier"))
    assert (found.verdict, found.exit_code, found.records) == ("fail", 1, 150)
    assert {one.name: one.verdict.verdict for one in found.sides} == {
        "a · T0": "pass", "a · T1": "fail", "b · T0": "pass",
    }  # fmt: skip
    alone = gate(rows(aT0=45, aT1=30), policy(tmp_path), where={"tier": "T1"})
    assert found.sides[1].verdict.gates == alone.gates
    assert gate(rows(aT0=45, bT0=50), policy(tmp_path), each="subject").verdict == "pass"
    some = gate(rows(aT0=45, aT1=30), policy(tmp_path), each="tier", where={"tier": "t0"})
    assert [one.name for one in some.sides] == ["T0"]


def test_sides_share_the_probability_of_a_wrong_fail(tmp_path: Path) -> None:
    sure = policy(tmp_path, "gates: [{metric: pass_rate, threshold: '>= 80%', on: confident}]")
    one = gate(rows(aT0=33), sure)
    many = gate(rows(aT0=33, **{f"aT{i}": 50 for i in range(1, 20)}), sure, each="tier")
    assert one.verdict == "fail"
    assert many.sides[0].verdict.verdict == many.verdict == "inconclusive"


def test_a_grid_of_many_gates_fits_eighty_columns(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("\n".join(map(json.dumps, rows(aT0=45, aT1=30))))
    names = ("pass_rate", "accuracy", "safety_rate", "behavior_coverage", "latency_p95_ms", "ece")
    many = policy(tmp_path, f"thresholds: {{{', '.join(f'{name}: 80' for name in names)}}}")
    out = pennyweight("gate", path, "--policy", many, "--each", "subject,tier").out
    table = out.partition("\n\n")[0].splitlines()
    assert max(map(len, table)) <= 80
    assert " ".join(table).split().count("side") == 2
    assert all(sum(name in line.split() for line in table) == 1 for name in names)


def test_every_format_names_the_sides(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("\n".join(map(json.dumps, rows(aT0=45, aT1=30))))
    asked = ("gate", path, "--policy", policy(tmp_path), "--each", "subject,tier")
    out = pennyweight(*asked).out
    assert "✓ a · T0  50       ✓ 90.0 %\n✗ a · T1  50       ✗ 60.0 %\n" in out
    assert (
        "✗ a · T1: pass_rate\n    60.0 % misses ≥ 80.0 % by 20.0 points, on the value alone.\n"
        in out
    )
    assert "1 failed of 2 gates on 2 sides." in " ".join(out.split())
    data = pennyweight(*asked, "--format", "json").json
    assert data["verdict"] == "fail"
    assert [(g["side"], g["verdict"]) for g in data["gates"]] == [
        ("a · T0", "pass"),
        ("a · T1", "fail"),
    ]
    assert data["sides"][1] == {
        "side": {"subject": "a", "tier": "T1"}, "name": "a · T1", "verdict": "fail",
        "records": 50, "errors": 0,
    }  # fmt: skip
    xml = ElementTree.fromstring(pennyweight(*asked, "--format", "junit").out)
    names = [case.get("name") for case in xml.iter("testcase")]
    assert names == ["pass_rate [a · T0]", "pass_rate [a · T1]"]
    assert "| ✗ a · T1 | 50 | ✗ 60.0 % |" in pennyweight(*asked, "--format", "markdown").out
    assert "pass_rate [a · T1]" in pennyweight(*asked, "--format", "github").out
    plain = pennyweight(*asked[:-2], "--where", "tier=T0", "--format", "json").json
    assert "sides" not in plain
    assert "side" not in plain["gates"][0]


def test_a_side_of_a_run_without_a_record_is_not_forgotten(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "s.db"))
    settings = {"subjects": ["a"], "tiers": ["T0", "T1"], "tasks": 2, "runs": 1}
    store.add_run(run(settings=settings, attempts=4, status="stopped"))
    store.write([record(f"t{i}", subject="a", passed=True) for i in range(2)], [])
    found = gate(RUN, policy(tmp_path), each=("subject", "tier"), store=store)
    assert [one.verdict.verdict for one in found.sides] == ["pass", "inconclusive"]
    assert found.verdict == "inconclusive"
    assert found.gates[-1].why == "no attempt has been made yet."
    store.close()


def test_what_cannot_be_told_apart_is_refused(tmp_path: Path) -> None:
    some = [*rows(aT0=45), {"task_id": "x", "subject": "a", "passed": True}]
    with pytest.raises(UsageError, match="1 record has no tier"):
        gate(some, policy(tmp_path), each="tier")
    with pytest.raises(UsageError, match="several tiers"):
        gate(rows(aT0=45, aT1=30), policy(tmp_path), each="subject")
    asked = ("gate", "-", "--policy", policy(tmp_path), "--each", "tier")
    assert "several times" in refused(*asked, stdin=b'{"task_id": 1, "passed": true}')
