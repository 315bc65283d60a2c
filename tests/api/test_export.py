"""Records as files: whatever the form, every record once, in order, with its answer."""

import io
from contextlib import closing

import polars as pl
import pytest

from cli.command import pennyweight
from pennyweight.api.export import export
from pennyweight.api.score import score
from pennyweight.errors import InputError
from pennyweight.store.store import Store
from store.samples import RUN, record, run

RULES = {
    "answer": {"kind": "marker", "value": "FINAL_ANSWER:"},
    "match": {"kind": "exact", "absolute": "0", "relative": "0", "separator": "", "each": "exact"},
}


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr("pennyweight.store.store.READ_BATCH", 10)
    made = Store(str(tmp_path / "s.db"))
    made.add_run(run(settings=RULES))
    yield made
    made.close()


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "csv"])
def test_many_parts_make_one_file(store, tmp_path, kind):
    rows = [record(f"t{i:03}", response=f"So.\nFINAL_ANSWER: {i}") for i in range(95)]
    store.write(rows, [])
    path = tmp_path / f"r.{kind}"
    export(RUN, path, store=store)
    read = {"parquet": pl.read_parquet, "jsonl": pl.read_ndjson, "csv": pl.read_csv}[kind]
    frame = read(path)
    assert frame["task_id"].to_list() == [f"t{i:03}" for i in range(95)]
    assert [str(a) for a in frame["answer"]] == [str(i) for i in range(95)]
    assert [p.name for p in tmp_path.glob("*r.*")] == [path.name]


def test_nothing_is_written_of_a_run_without_records(store, tmp_path):
    with pytest.raises(InputError, match="has no records yet"):
        export(RUN, tmp_path / "r.parquet", store=store)
    assert not list(tmp_path.glob("*.parquet*"))


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_an_export_is_scored_without_a_word_about_its_own_columns(store, tmp_path, kind):
    store.write([record("a", response="FINAL_ANSWER: 4", target="4")], [])
    path = tmp_path / f"r.{kind}"
    export(RUN, path, store=store)
    told = pennyweight("score", path)
    assert (told.code, told.err) == (0, "")
    if kind == "jsonl":
        path.write_text(path.read_text().replace('"run":', '"shade":"red","run":'))
        assert "Not used: shade." in pennyweight("score", path).err


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "csv"])
def test_a_score_of_the_file_is_the_score_of_the_run(tmp_path, kind):
    path = tmp_path / f"r.{kind}"
    with closing(Store(str(tmp_path / "s.db"))) as store:
        answer = {"kind": "last_line", "value": ""}
        rules = {"answer": answer, "match": {**RULES["match"], "kind": "contains"}}
        store.add_run(run(settings=rules))
        replies = {"a": "It is\nLima, the capital.", "b": "Paris, of course", "c": "No idea"}
        targets = {"a": "Lima", "b": "Paris", "c": "Rome"}
        rows = [record(t, response=replies[t], target=targets[t]) for t in replies]
        store.write([*rows, record("d", status="error", target="Bonn")], [])
        export(RUN, path, store=store)
        expected = score(RUN, metrics=["accuracy", "pass_rate"], store=store).groups[0]
    found = score(path, metrics=["accuracy", "pass_rate"]).groups[0]
    assert found["accuracy"] == expected["accuracy"]
    assert found["pass_rate"] == expected["pass_rate"]
    assert found["accuracy"].value == pytest.approx(2 / 3)
    assert score(path, metrics=["accuracy"], match="exact").groups[0]["accuracy"].value == 0


def test_it_prints_where_standard_output_takes_text_alone(store, monkeypatch):
    store.write([record("a", response="FINAL_ANSWER: é")], [])
    notebook = io.StringIO()
    monkeypatch.setattr("sys.stdout", notebook)
    export(RUN, store=store)
    assert pl.read_ndjson(notebook.getvalue().encode())["answer"].to_list() == ["é"]
