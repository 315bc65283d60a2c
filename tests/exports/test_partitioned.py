"""A run as a partitioned table: every record once, and the scores of the run."""

from pathlib import Path

import polars as pl
import pytest

from api.test_export import RULES
from cli.command import pennyweight, refused
from pennyweight.api.export import export
from pennyweight.api.score import score
from pennyweight.errors import InputError, UsageError
from pennyweight.exports import partitioned
from pennyweight.sources.partitions import NULL, partition_columns
from pennyweight.store.store import Store
from store.samples import RUN, record, run

SIDES = [("local/a b", "T0"), ("local/a b", "T1"), ("ours", "T0")]


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr("pennyweight.store.store.READ_BATCH", 10)
    made = Store(str(tmp_path / "s.db"))
    made.add_run(run(settings=RULES))
    rows = [
        record(f"t{i:02}", subject=subject, tier=tier, target="7", response=f"FINAL_ANSWER: {i}")
        for i in range(15)
        for subject, tier in SIDES
    ]
    made.write(rows, [])
    yield made
    made.close()


@pytest.mark.parametrize("rows", [7, 100_000])
def test_the_table_has_the_scores_of_the_run(store, tmp_path, monkeypatch, rows):
    monkeypatch.setattr(partitioned, "ROWS", rows)
    table = tmp_path / "table"
    export(RUN, table, partition_by=["subject", "tier"], store=store)
    folders = {str(path.parent.relative_to(table)) for path in table.rglob("*.parquet")}
    assert folders == {"subject=local%2Fa%20b/tier=T0", "subject=local%2Fa%20b/tier=T1",
                       "subject=ours/tier=T0"}  # fmt: skip
    for path in table.rglob("*.parquet"):
        assert {"subject", "tier"}.isdisjoint(pl.read_parquet_schema(path))
    by = ["subject", "tier"]
    found, expected = score(table, by=by), score(RUN, by=by, store=store)
    assert [g.group for g in found.groups] == [g.group for g in expected.groups]
    assert [g.records for g in found.groups] == [15, 15, 15]
    for mine, theirs in zip(found.groups, expected.groups, strict=True):
        assert mine["accuracy"] == theirs["accuracy"]
        assert mine["accuracy"].value == 1 / 15


def test_the_command_writes_a_new_folder_and_its_table_is_scored_without_a_word(store, tmp_path):
    table = tmp_path / "table"
    at = ("--store", store.address)
    told = pennyweight("export", RUN, "--partition-by", "subject,tier", "-o", table, *at)
    assert (told.code, told.err) == (0, f"Wrote {table}.\n")
    assert pennyweight("score", table, "--by", "tier").err == ""
    again = refused("export", RUN, "--partition-by", "tier", "-o", table, *at)
    assert "it exists already" in again
    assert "name it with -o FOLDER" in refused("export", RUN, "--partition-by", "tier", *at)
    assert "does not apply to --as" in refused(
        "export", RUN, "--partition-by", "tier", "--as", "atif", "-o", tmp_path / "b", *at
    )


def test_what_cannot_be_written_leaves_nothing_behind(store, tmp_path, monkeypatch):
    before = sorted(tmp_path.iterdir())
    with pytest.raises(UsageError, match=r"'tyer' is not known\. Did you mean 'tier'"):
        export(RUN, tmp_path / "table", partition_by="tyer", store=store)
    monkeypatch.setattr(partitioned, "MAX_FOLDERS", 14)
    with pytest.raises(UsageError, match="more than 14 folders"):
        export(RUN, tmp_path / "table", partition_by="task_id", store=store)
    with pytest.raises(UsageError, match="Name it without an ending"):
        export(RUN, tmp_path / "table.parquet", partition_by="tier", store=store)
    with pytest.raises(InputError, match="no records with tier=T9"):
        export(RUN, tmp_path / "table", partition_by="tier", where={"tier": "T9"}, store=store)
    assert sorted(tmp_path.iterdir()) == before


def test_a_missing_value_has_a_folder_too(tmp_path: Path) -> None:
    frame = pl.DataFrame({"task_id": ["a", "b"], "tier": [None, "T0"], "passed": [True, False]})
    partitioned.write_partitions(tmp_path, [frame], ["tier"])
    values = {g.group["tier"]: g["pass_rate"].value for g in score(tmp_path, by="tier").groups}
    assert values == {None: 1.0, "T0": 0.0}


def test_a_text_that_looks_like_a_missing_value_stays_a_text(tmp_path):
    frame = pl.DataFrame({"tier": [NULL, None], "task_id": ["a", "b"]})
    partitioned.write_partitions(tmp_path, [frame], ["tier"])
    parts = {
        pl.read_parquet(path)["task_id"].item(): partition_columns(path.relative_to(tmp_path))
        for path in tmp_path.rglob("*.parquet")
    }
    assert parts == {"a": (("tier", NULL),), "b": (("tier", None),)}


def test_a_link_and_a_value_too_long_for_a_folder_are_told(store, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(UsageError, match=r"link: it is a link\. Name the folder itself"):
        export(RUN, tmp_path / "link", partition_by="tier", store=store)
    store.write([record("long", subject="é" * 50, tier="T0", target="7", response="7")], [])
    with pytest.raises(UsageError, match=r"--partition-by subject: a value is too long.*éé.*50 ch"):
        export(RUN, tmp_path / "table", partition_by=["tier", "subject"], store=store)
    assert not (tmp_path / "table").exists()
