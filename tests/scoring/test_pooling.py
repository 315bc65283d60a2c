"""A number over several sides, data sets or tools says so, in every format."""

import csv
import io
import json
from pathlib import Path

import polars as pl
import pytest

from cli.command import pennyweight, scores
from pennyweight import Suite, score
from pennyweight import run as run_suite
from pennyweight.api.gate import gate
from pennyweight.api.pages.digest import digest
from pennyweight.api.sources import resolve
from pennyweight.render.files import latex
from pennyweight.render.verdict import headline
from pennyweight.scoring.large import spill
from pennyweight.scoring.pooling import apart

ROWS = [
    {
        "subject": subject,
        "dataset": name,
        "category": "ab"[n % 2],
        "task_id": f"{name}/{n}",
        "target": "1",
        "answer": "1" if n % (3 if subject == "cheap" else 5) else "2",
    }
    for subject in ("cheap", "dear")
    for name in ("gsm8k", "mmlu")
    for n in range(12)
]
ONE = [row for row in ROWS if row["subject"] == "cheap"]
OF_ONE_SET = [row for row in ONE if row["dataset"] == "mmlu"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "records.jsonl"
    file.write_text("\n".join(map(json.dumps, ROWS)))
    return file


def test_a_table_shows_each_side_by_itself(path: Path) -> None:
    assert "subject, dataset" in pennyweight("score", path).out
    shown = pennyweight("score", path, "--where", "subject=cheap").out.splitlines()
    assert shown[0].split() == ["dataset", "gsm8k", "mmlu"]
    assert not any("pooled" in line for line in shown)


@pytest.mark.parametrize("format_", ["table", "markdown"])
def test_groups_that_were_asked_for_say_what_they_pool(path: Path, format_: str) -> None:
    words = pennyweight("score", path, "--by", "category", "--format", format_).out.split()
    assert "pooled" in words
    assert " ".join(words).count("2 subjects") == 2


def test_json_and_csv_stay_together_and_say_so(path: Path) -> None:
    (group,) = scores(path)
    assert group["pooled"] == {"subject": 2, "dataset": 2}
    rows = csv.DictReader(io.StringIO(pennyweight("score", path, "--format", "csv").out))
    assert {row["pooled"] for row in rows} == {"2 subjects, 2 data sets"}
    (alone,) = score(OF_ONE_SET).to_dict()["groups"]
    assert alone["pooled"] == {}


def test_python_says_it_too() -> None:
    assert "2 subjects, 2 data sets pooled" in repr(score(ROWS))
    assert "2 subjects, 2 data sets pooled" in score(ROWS)._repr_html_()
    assert "pooled" not in repr(score(OF_ONE_SET)) + score(OF_ONE_SET)._repr_html_()
    by = score(ROWS, by=None)
    assert [tuple(group.group) for group in by.groups] == [("subject", "dataset")] * 4


def test_records_on_disk_are_pooled_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    inside = score(ROWS, by="category"), score(ROWS, by=None)
    monkeypatch.setattr(spill, "IN_MEMORY", 5)
    monkeypatch.setattr(spill, "PART", 10)
    outside = score(ROWS, by="category"), score(ROWS, by=None)
    for a, b in zip(inside, outside, strict=True):
        assert [g.group for g in a.groups] == [g.group for g in b.groups]
        assert [g.pooled for g in a.groups] == [g.pooled for g in b.groups]
    assert outside[0].groups[0].pooled == {"subject": 2, "dataset": 2}


def test_a_column_of_another_kind_names_no_data_set(tmp_path: Path) -> None:
    split, suite = [{"split": n % 2} for n in range(4)], [{"suite": {"a": n}} for n in range(4)]
    for rows, pooled in ((split, {"split": 2}), (suite, {})):
        file = tmp_path / "rows.jsonl"
        file.write_text("\n".join(json.dumps({**r, "correct": True}) for r in rows))
        assert score(file, per_task=tmp_path / "each.jsonl").groups[0].pooled == pooled
        assert digest(resolve([str(file)]))["whole"]["pooled"] == pooled


def test_too_many_sides_stay_together() -> None:
    frame = pl.DataFrame(
        {
            "subject": [f"m{n % 2}" for n in range(60)],
            "suite": [str(n) for n in range(60)],
            "tool": [f"t{n % 2}" for n in range(60)],
        }
    ).with_columns(pl.lit(None).alias(name) for name in ("tier", "dataset", "benchmark", "split"))
    assert apart(lambda names: frame.select(names).unique()) == ["subject"]


def test_a_run_is_scored_as_its_end_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tasks = [{"id": str(n), "input": str(n), "target": str(n)} for n in range(8)]
    subjects = {"echo": lambda prompt: prompt, "one": lambda prompt: "1"}
    made = run_suite(Suite(tasks, subjects, name="numbers"))
    assert pennyweight("score", "latest").out.splitlines()[0].split() == ["subject", "echo", "one"]
    run_suite(Suite(tasks[:4], {"echo": subjects["echo"]}, name="others"))
    both = scores(made.id, "latest")
    assert both[0]["pooled"] == {"subject": 2, "suite": 2}


def test_a_gate_says_what_it_pools() -> None:
    policy = {"policy": "p", "gates": [{"metric": "accuracy", "threshold": ">= 10%"}]}
    found = gate(ONE, policy)
    assert "24 records (2 data sets pooled)" in headline(found)
    assert found.to_dict()["pooled"] == {"dataset": 2}
    assert "pooled" not in headline(gate(OF_ONE_SET, policy))
    each = gate(ROWS, policy, each="subject")
    assert "48 records (2 data sets pooled)" in headline(each)
    assert each.to_dict()["pooled"] == {"dataset": 2}


def test_a_report_says_what_it_pools(tmp_path: Path, path: Path) -> None:
    whole = "2 subjects, 2 data sets pooled"
    for name in ("r.html", "r.md"):
        assert pennyweight("report", path, "-o", tmp_path / name).code == 0
        text = (tmp_path / name).read_text()
        assert whole in text.partition("All metrics")[2]
        assert "Leaderboard, 2 data sets pooled" in text
    found = digest(resolve([str(path)]))
    assert f"metric & {whole}" in latex(found)
    assert "metric & 2 data sets pooled" in latex(found)
    one = tmp_path / "one.jsonl"
    one.write_text("\n".join(map(json.dumps, ONE)))
    assert pennyweight("report", one, "-o", tmp_path / "one.html").code == 0
    assert "Accuracy, 2 data sets pooled" in (tmp_path / "one.html").read_text()
