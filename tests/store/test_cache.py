"""What is kept of runs: measures, digests, verdicts of gates, and the mark of their state."""

import json

from pennyweight.record import AttemptKey
from pennyweight.store import cache as kept
from pennyweight.store import queries as look
from pennyweight.store.queries import Filter
from pennyweight.store.remarks import add_remark, of_runs, remarks
from pennyweight.store.verdicts import BehaviourVerdict, save_verdicts
from store.samples import RUN, call, record, run

DIGEST = {
    "stamp": "s", "metric": None, "value": None, "low": None, "high": None, "records": 1,
    "errors": 0, "cost_usd": None, "data": "{}",
}  # fmt: skip
DECISION = {"policy": "release", "side": "T0", "verdict": "fail", "stamp": "s"}


def listed(store):
    return [dict(zip(kept.LISTED, row, strict=True)) for row in kept.listed(store)]


def test_many_measures_are_kept_and_replaced(store):
    store.add_run(run())
    names = (*look.ORDER, "correct", "ra_ratio", "answer", "cot_tokens")
    rows = [(f"t{i:05}", "m", "T0", 1, i % 2 == 0, i / 3, "a\tb\n\\N", i) for i in range(6_000)]
    kept.save_measured(store, RUN, names, rows)
    kept.save_measured(store, RUN, names, [(*row[:4], None, None, None, 7) for row in rows[:5_500]])
    kept.analyze(store)
    store.write([record(row[0]) for row in rows[5_500:]], [])
    found = look.page(store, RUN, Filter(ranges={"cot_tokens": (5_500, None)}), limit=1).rows[0]
    assert [found[n] for n in names] == [*rows[5_500]]
    store.write([record(rows[3][0])], [])
    (found,) = look.page(store, RUN, Filter({"task_id": "t00003"})).rows
    assert (found["correct"], found["answer"], found["cot_tokens"]) == (None, None, 7)


def test_postgresql_gets_statistics_of_all_that_a_search_reads(store):
    if store.engine.dialect.name == "sqlite":
        return
    known = "SELECT relname FROM pg_class WHERE reltuples >= 0 AND relname LIKE 'pennyweight_%%'"
    read = {"pennyweight_record", "pennyweight_measured"}
    with store.engine.connect() as connection:
        assert not read & set(connection.exec_driver_sql(known).scalars())
    kept.analyze(store)
    with store.engine.connect() as connection:
        assert read <= set(connection.exec_driver_sql(known).scalars())


def test_runs_are_listed_with_what_is_kept_of_them(store):
    assert kept.listed(store) == ()
    store.add_run(run())
    store.add_run(run("20260101-000000-0002", created=2.0))
    kept.save_digest(store, RUN, **{**DIGEST, "metric": "accuracy", "value": 0.5})
    kept.save_decision(store, RUN, **{**DECISION, "verdict": "pass"})
    kept.save_decision(store, RUN, **DECISION)
    newer, older = listed(store)
    assert (newer["id"], newer["records"]) == ("20260101-000000-0002", None)
    assert (older["id"], older["value"]) == (RUN, 0.5)


def test_what_ended_or_got_other_rules_since_its_digest_is_outdated(store):
    store.add_run(run())
    assert kept.outdated(kept.listed(store)) == frozenset()  # there is no digest yet

    def digested():
        kept.save_digest(store, RUN, **{**DIGEST, "stamp": kept.stamp(store, run())})
        return kept.outdated(kept.listed(store))

    assert digested() == frozenset()
    changes = ({"status": "done", "ended": 2.5}, {"settings": {"match": {"kind": "exact"}}})
    for change in changes:
        store.set_run(RUN, **change)
        assert kept.outdated(kept.listed(store)) == {RUN}
        assert digested() == frozenset()


def test_the_last_verdict_of_each_policy_on_each_side_is_kept(store):
    assert kept.policy_verdicts(store) == ()
    store.add_run(run())
    kept.save_digest(store, RUN, **DIGEST)
    kept.save_decision(store, RUN, **{**DECISION, "verdict": "pass"})
    kept.save_decision(store, RUN, **DECISION)
    kept.save_decision(store, RUN, **{**DECISION, "side": "T1", "verdict": "pass"})
    first, second = kept.policy_verdicts(store)
    assert (first.side, first.verdict, first.current) == ("T0", "fail", True)
    assert (second.side, second.verdict) == ("T1", "pass")
    assert kept.policy_verdicts(store, "another") == ()
    kept.save_digest(store, RUN, **{**DIGEST, "stamp": "later"})
    assert not any(d.current for d in kept.policy_verdicts(store, RUN))


def test_the_state_changes_with_what_is_written(store):
    assert kept.state(store, RUN) is None
    store.add_run(run())
    marks = [kept.stamp(store, run())]
    assert kept.stamp(store, run()) == marks[0]
    store.write([record("t99")], [call("t99")])
    marks.append(kept.stamp(store, run()))
    key = AttemptKey(RUN, "m", "T0", "t99", 1)
    given = BehaviourVerdict(key, "mark", "Ada", "r", holds=True, why="", at=5.0)
    save_verdicts(store, [given])
    marks.append(kept.stamp(store, run()))
    store.set_run(RUN, status="done", settings={"match": {"kind": "exact"}})
    marks.append(kept.stamp(store, run()))
    assert len(set(marks)) == 4
    kept.save_digest(store, RUN, **{**DIGEST, "stamp": marks[-1]})
    state = kept.state(store, RUN)
    assert state.digest_stamp == state.stamp
    assert state.run.settings == {"match": {"kind": "exact"}}


def test_a_run_is_removed_with_all_that_is_kept_of_it(store):
    store.add_run(run())
    add_remark(store, RUN, who="a", note="n", tags=["t"])
    add_remark(store, AttemptKey(RUN, "m", "T0", "t00", 1), who="b", verdict="right")
    kept.save_digest(store, RUN, **DIGEST)
    kept.save_decision(store, RUN, **DECISION)
    kept.save_measured(store, RUN, (*look.ORDER, "correct"), [("t00", "m", "T0", 1, True)])
    assert [r.tags for r in remarks(store, RUN)] == [("t",)]
    assert [r.who for r in remarks(store, AttemptKey(RUN, "m", "T0", "t00", 1))] == ["b"]
    assert of_runs(store) == ((RUN, "n", json.dumps(["t"])),)
    store.remove(RUN)
    store.add_run(run())
    assert look.page(store, RUN, Filter()).rows == []
    assert look.distinct(store, RUN, "task_id") == []
    assert remarks(store, RUN) == []
    assert of_runs(store) == ()
    assert kept.digest(store, RUN) is None
    assert kept.policy_verdicts(store) == ()
