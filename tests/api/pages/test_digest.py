"""Runs are read once, however often they are scored, and give the same scores."""

import pytest

from pennyweight.api.pages.digest import digest
from pennyweight.api.report import report
from pennyweight.api.score import score
from pennyweight.api.sources import resolve
from pennyweight.errors import InputError
from pennyweight.sources.source import copied
from pennyweight.store.store import Store
from pennyweight.stored_runs.source import RunSource
from store.samples import call, record, run

SETTINGS = {
    "answer": {"kind": "last_number", "value": ""},
    "match": {
        "kind": "exact", "absolute": "0", "relative": "0", "separator": "", "each": "exact",
    },
}  # fmt: skip


@pytest.fixture
def source(tmp_path):
    store = Store(str(tmp_path / "pennyweight.db"))
    made = run(attempts=60, status="done", settings=SETTINGS)
    store.add_run(made)
    rows = [
        record(f"t{i:02}", tier=tier, target=str(i % 7), response=f"So it is {i % 5}.",
               input="?", category="ab"[i % 2], latency_ms=10.0 * i, model="m-1")
        for i in range(30)
        for tier in ("T0", "T1")
    ]  # fmt: skip
    store.write(rows, [call("t00")])
    yield RunSource(made, store)
    store.close()


class Counted(RunSource):
    """A run that counts how often it is read."""

    times = 0

    def frames(self, names=None):
        Counted.times += 1
        return RunSource.frames(self, names)


def test_a_copy_is_scored_as_the_run_is(source):
    seen = []
    with copied([source], seen.append) as (held,):
        assert held.run_id == source.run_id
        for by in ("tier", "category", ()):
            pairs = zip(score([held], by=by).groups, score([source], by=by).groups, strict=True)
            for one, other in pairs:
                assert (one.group, one.records) == (other.group, other.records)
                for name, e in one.estimates.items():
                    same = other[name]
                    assert e.value == pytest.approx(same.value), name
                    assert (e.records, e.skipped) == (same.records, same.skipped), name
    assert seen == [60]


def test_files_stay_what_they_are(tmp_path):
    (tmp_path / "records.jsonl").write_text('{"answer": "4"}')
    sources = resolve(tmp_path)
    with copied(sources) as held:
        assert held == sources


def test_a_digest_reads_a_run_once_and_tells_how_far_it_is(source):
    told = []
    found = digest([Counted(source.run, source.store)], progress=lambda *one: told.append(one))
    assert Counted.times == 1
    assert list(dict.fromkeys(what for what, _ in told)) == ["read", "measure", "score", "compare"]
    assert ("read", 60) in told
    assert ("measure", 60) in told
    whole = score([source]).groups[0]
    assert found["whole"]["estimates"]["accuracy"][0] == whole["accuracy"].value
    assert [s["name"] for s in found["sides"]] == ["T0", "T1"]
    rows = found["charts"]["categories"]["rows"]
    expected = score([source], by="category", metrics="accuracy").groups
    assert [r["value"] for r in rows] == [g["accuracy"].value for g in expected]


def test_a_report_can_be_about_some_of_the_records(tmp_path):
    rows = [
        {"task_id": str(i), "tier": f"T{i % 2}", "target": "1", "answer": "1" if i % 3 else "2"}
        for i in range(12)
    ]
    made = report(rows, tmp_path / "r.md", where={"tier": "t1", "correct": "true"})
    assert made.digest["whole"]["records"] == 4
    assert made.digest["sides"] == []
    assert "--where tier=t1 --where correct=true" in (tmp_path / "r.md").read_text()
    with pytest.raises(InputError, match="no records with tier=T9"):
        report(rows, where={"tier": "T9"})
