"""Names and values become sources in one place."""

import json

import polars as pl
import pytest

from api.pages.test_digest import SETTINGS
from pennyweight.api.sources import resolve, runs_of, unmixed
from pennyweight.errors import InputError, UsageError
from pennyweight.sources.source import FileSource, FrameSource, RowsSource, is_source
from pennyweight.store.store import Store
from store.samples import RUN, run

ROWS = [{"task_id": "a", "passed": True}]


@pytest.fixture
def store(tmp_path):
    made = Store(str(tmp_path / "s.db"))
    made.add_run(run(settings=SETTINGS))
    yield made
    made.close()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps(ROWS[0]))
    return path


def test_paths_are_files_and_other_names_are_runs(store, file):
    for name in (RUN, RUN[:12], "latest"):
        (found,) = resolve(name, store)
        assert (found.run_id, found.origin, found.name) == (RUN, RUN, f"run {RUN}")
    (found,) = resolve(file)
    assert isinstance(found, FileSource)
    assert (found.run_id, found.planned, found.required, dict(found.options())) == (
        *(None, None, ()),
        {},
    )
    both = resolve([str(file), "latest"], store)
    assert [s.run_id for s in both] == [None, RUN]
    assert resolve(both) == both
    assert [s.run_id for s in runs_of(both)] == [RUN]
    with pytest.raises(UsageError, match="Runs and files"):
        unmixed(both)


def test_a_folder_is_one_source_for_each_file(tmp_path, file):
    (tmp_path / "more.jsonl").write_text("{}")
    found = resolve(tmp_path)
    assert [s.name for s in found] == [str(tmp_path / "more.jsonl"), str(file)]
    assert {s.origin for s in found} == {str(tmp_path)}
    with pytest.raises(UsageError, match="named twice"):
        resolve([tmp_path, file])


def test_values_are_sources():
    assert resolve(ROWS) == [RowsSource(ROWS)]
    assert resolve(iter(ROWS)) == [RowsSource(ROWS)]
    assert resolve([]) == []
    for frame in (pl.DataFrame(ROWS), pl.LazyFrame(ROWS)):
        (found,) = resolve(frame)
        assert isinstance(found, FrameSource)
        assert is_source(found)
    for wrong in (ROWS[0], 4):
        with pytest.raises(UsageError, match="is not a source"):
            resolve(wrong)


def test_every_name_that_is_missing_is_told(store):
    with pytest.raises(InputError) as told:
        resolve(["nowhere.jsonl", "zzz"], store)
    first, second = told.value.problems
    assert first == "nowhere.jsonl: no such file or folder."
    assert second.startswith("zzz: no such file.")


def test_standard_input_is_read_once():
    (found,) = resolve("-")
    assert not found.rereadable


def test_records_have_no_scores_to_choose_from(file, store):
    with pytest.raises(UsageError, match=r"no scores to choose from in .*records\.jsonl\.$"):
        resolve(file, scorer="exact")
    with pytest.raises(UsageError, match=r"^--filter: there are no filters"):
        resolve([file, RUN], store, filter="strict")
