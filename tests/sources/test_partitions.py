"""Tables in many files: patterns, folders that name columns, and what can be wrong with them."""

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pennyweight
from pennyweight.errors import InputError, UsageError
from pennyweight.sources.partitions import NULL, partition_columns
from sources.samples import RECORDS

FIRST = {"target": "4", "answer": "4", "latency_ms": 10.0}


def part(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write records in the form that the name tells."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pl.DataFrame(rows, infer_schema_length=None).write_parquet(path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def hive(folder: Path, rows: list[dict[str, Any]], suffix: str = ".parquet") -> Path:
    """Write records to a folder for each subject and tier, without these columns."""
    places: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        rest = {k: v for k, v in row.items() if k not in {"subject", "tier"}}
        places.setdefault((row["subject"], row["tier"]), []).append(rest)
    for (subject, tier), own in places.items():
        part(folder / f"subject={subject}" / f"tier={tier}" / f"part-0{suffix}", own)
    return folder


def records(count: int, seed: int = 1) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [
        {
            "task_id": f"t{i // 6}",
            "attempt": i // 3 % 2 + 1,
            "subject": ("m1", "m1", "m2")[i % 3],
            "tier": ("T0", "T1", "T1")[i % 3],
            "target": "4",
            "answer": rng.choice(["4", "5", "6", None]),
            "prob_correct": round(rng.random(), 2),
            "latency_ms": rng.lognormvariate(5, 1),
            "cost_usd": rng.random(),
        }
        for i in range(count)
    ]


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_folders_name_columns(tmp_path: Path, suffix: str) -> None:
    rows = records(120)
    table = hive(tmp_path / "table", rows, suffix)
    # the order of the files is that of the records: the same numbers, to the last digit
    rows.sort(key=lambda row: (row["subject"], row["tier"]))
    plain = pennyweight.score(part(tmp_path / f"all{suffix}", rows), by=["subject", "tier"])
    for name in (table, f"{table}/**/*{suffix}", f"{table}/subject=*", f"{table}/*/tier=T?"):
        scored = pennyweight.score(name, by=["subject", "tier"])
        assert scored.to_dict() == plain.to_dict(), name


def test_a_pattern_picks_files(tmp_path: Path) -> None:
    table = hive(tmp_path, records(60))
    whole = pennyweight.score(table, by="tier", metrics="accuracy")
    tier = pennyweight.score(f"{table}/*/tier=T1/*", by="tier", metrics="accuracy")
    assert [g.group for g in tier.groups] == [{"tier": "T1"}]
    assert tier["T1"].records == whole["T1"].records == 40


def test_compare_and_gate_read_partitions(tmp_path: Path) -> None:
    rows = records(240)
    table = hive(tmp_path / "table", rows)
    rows.sort(key=lambda row: (row["subject"], row["tier"]))
    plain = part(tmp_path / "all.parquet", rows)
    compared = pennyweight.compare(f"{table}/**/*.parquet", by="tier")
    assert compared.to_dict() == pennyweight.compare(plain, by="tier").to_dict()
    gates = [{"metric": "accuracy", "threshold": ">= 10%"}]
    policy = {"policy": "p", "gates": [*gates, {"metric": "latency_p95_ms", "threshold": "< 10s"}]}
    where = {"subject": "m1", "tier": "T1"}
    decided = pennyweight.gate(table, policy, where=where)
    assert decided.to_dict() == pennyweight.gate(plain, policy, where=where).to_dict()


def test_patterns_are_sides_of_a_comparison(tmp_path: Path) -> None:
    table = hive(tmp_path, records(240))
    sides = [f"{table}/*/tier=T0/*", f"{table}/*/tier=T1/*"]
    assert {side.group.records for side in pennyweight.compare(sides).sides} == {80, 160}


@given(
    seed=st.integers(0, 2**32),
    parts=st.lists(st.integers(0, len(RECORDS)), max_size=5),
    forms=st.lists(st.sampled_from([".parquet", ".jsonl"]), min_size=6, max_size=6),
)
@settings(max_examples=5, deadline=None)
def test_how_records_are_cut_into_files_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, seed: int, parts: list[int], forms: list[str]
) -> None:
    rows = list(RECORDS)
    random.Random(seed).shuffle(rows)
    folder = tmp_path_factory.mktemp("parts")
    cuts = sorted({0, *parts, len(rows)})
    for number, (start, stop) in enumerate(pairwise(cuts)):
        part(folder / f"{number}{forms[number]}", rows[start:stop])
    by = ["subject", "shade"]
    whole = pennyweight.score(part(folder.parent / f"{folder.name}.jsonl", rows), by=by)
    assert pennyweight.score(folder, by=by).to_dict() == whole.to_dict()


def test_values_of_folders_are_decoded_and_typed(tmp_path: Path) -> None:
    part(tmp_path / "subject=a%2Fb%20c" / "attempt=3" / "p.jsonl", [{"task_id": "t", **FIRST}])
    part(tmp_path / f"subject={NULL}" / "attempt=1" / "p.jsonl", [{"task_id": "t", **FIRST}])
    rows = pennyweight.score(tmp_path, by="subject").records()
    assert sorted(rows.select("subject", "attempt").rows(), key=str) == [("a/b c", 3), (None, 1)]
    assert partition_columns("a=b/=c/d=/x=y.parquet") == (("a", "b"), ("d", ""))


def test_a_column_may_repeat_what_the_folder_says(tmp_path: Path) -> None:
    rows = [{"task_id": "a", "tier": "T0", **FIRST}, {"task_id": "b", "tier": None, **FIRST}]
    part(tmp_path / "tier=T0" / "p.parquet", rows)
    scored = pennyweight.score(tmp_path, by="tier")
    assert [(g.group["tier"], g.records) for g in scored.groups] == [("T0", 2)]


def test_folders_give_a_column_one_value(tmp_path: Path) -> None:
    part(tmp_path / "tier=T0" / "tier=T1" / "a.jsonl", RECORDS)
    with pytest.raises(InputError, match="its folders give tier two values"):
        pennyweight.score(tmp_path)


def test_a_record_in_the_wrong_folder_is_a_mistake(tmp_path: Path) -> None:
    rows = [{"task_id": "a", "tier": "T1", **FIRST}, {"task_id": "b", **FIRST}]
    path = part(tmp_path / "tier=T0" / "p.jsonl", rows)
    with pytest.raises(InputError) as raised:
        pennyweight.score(tmp_path)
    assert f"{path}, line 1: tier is 'T1', but its folder is tier=T0." in str(raised.value)
    scored = pennyweight.score(tmp_path, by="tier", skip_bad=True)
    assert (scored.left_out, scored["T0"].records) == (1, 1)


def test_mixed_types_name_the_part_and_the_record(tmp_path: Path) -> None:
    part(tmp_path / "a.parquet", [{"task_id": "a", "prompt_tokens": 3, **FIRST}])
    path = part(tmp_path / "b.parquet", [{"task_id": "b", "prompt_tokens": "many", **FIRST}])
    with pytest.raises(InputError) as raised:
        pennyweight.score(tmp_path)
    assert f'{path}, row 1: task "b": prompt_tokens is "many"' in str(raised.value)
    part(tmp_path / "b.parquet", [{"task_id": "b", "prompt_tokens": "5", **FIRST}])
    assert pennyweight.score(tmp_path)["prompt_tokens_mean"].value == 4


def test_what_is_missing_or_broken_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no file matches. '\*' is any name in one folder"):
        pennyweight.score(f"{tmp_path}/*.parquet")
    with pytest.raises(InputError, match="no record files in this folder"):
        pennyweight.score(tmp_path)
    whole = part(tmp_path / "tier=T0" / "a.parquet", [{"task_id": "a", **FIRST}])
    broken = tmp_path / "tier=T0" / "b.parquet"
    broken.write_bytes(whole.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"b\.parquet: not a readable Parquet file"):
        pennyweight.score(tmp_path)
    broken.write_bytes(b"")
    with pytest.raises(InputError, match=r"b\.parquet: .*"):
        pennyweight.score(tmp_path)


def test_a_path_with_brackets_is_a_path(tmp_path: Path) -> None:
    path = part(tmp_path / "run[1].jsonl", [{"task_id": "a", **FIRST}])
    part(tmp_path / "run1.jsonl", [{"task_id": "b", **FIRST}, {"task_id": "c", **FIRST}])
    assert pennyweight.score(str(path)).groups[0].records == 1


def test_what_writers_set_aside_is_no_part_of_a_table(tmp_path: Path) -> None:
    for folder, answer in [("tier=T0", "4"), ("_temporary/0/tier=T0", "5"), (".stage", "5")]:
        (tmp_path / folder).mkdir(parents=True)
        row = {"task_id": "a", "answer": answer, "target": "4"}
        (tmp_path / folder / "part.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    (group,) = pennyweight.score(tmp_path).groups
    assert (group.records, group["accuracy"].value) == (1, 1.0)


def test_a_part_without_rows_is_fine(tmp_path: Path) -> None:
    rows = records(60)
    table = hive(tmp_path / "table", rows)
    pl.DataFrame(rows).clear().write_parquet(table / "subject=m1" / "tier=T0" / "none.parquet")
    scored = pennyweight.score(table, by="tier")
    assert sum(group.records for group in scored.groups) == 60
    with pytest.raises(InputError, match=r"none\.parquet: the file is empty"):
        pennyweight.score(table / "subject=m1" / "tier=T0" / "none.parquet")


def test_folders_above_the_named_one_are_no_columns(tmp_path: Path) -> None:
    inner = tmp_path / "tier=T9" / "shade=red" / "mine"
    part(inner / "subject=m1" / "2024" / "tier=T0" / "a.jsonl", [{"task_id": "t", **FIRST}])

    def named(source: Path | str) -> list[dict[str, Any]]:
        return [g.group for g in pennyweight.score(source, by=["subject", "tier"]).groups]

    both = [{"subject": "m1", "tier": "T0"}]
    assert named(inner) == named(inner / "subject=m1") == named(f"{inner}/*/*/*/*.jsonl") == both
    assert named(inner / "*") == both
    with pytest.raises(UsageError, match="'subject' is not known"):
        named(inner / "subject=m1" / "2024")
    with pytest.raises(UsageError, match="'shade' is not known"):
        pennyweight.score(inner, by="shade")
