"""Cells of a store are data of unknown origin: wrong ones give an error, never a traceback."""

import json
import shutil
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pennyweight.api.pages.digest_cache import DigestCache, compute
from pennyweight.api.pages.records import remark_on_record, remark_on_run
from pennyweight.api.pages.run_list import listing
from pennyweight.api.runs import status_of
from pennyweight.cli.group import cli
from pennyweight.errors import PennyweightError, StoreError
from pennyweight.record import AttemptKey
from pennyweight.store.cache import save_decision
from pennyweight.store.store import JUDGMENT_COLUMNS, Store
from pennyweight.store.tables import DIGEST, METADATA, RECORD, RUN
from pennyweight.store.verdicts import BehaviourVerdict, save_scenarios, save_verdicts
from store.samples import RUN as ID
from store.samples import call, record
from store.samples import run as stored_run

MATCH = {"kind": "exact", "absolute": "0", "relative": "0", "separator": "|", "each": "exact"}
SETTINGS = {"subjects": ["m"], "tiers": ["T0"], "answer": {"kind": "last_line", "value": ""}}
RUBRIC = {"pass_mark": 0.5, "categories": [{"items": [{"id": "a", "points": 1}]}]}
JUDGE = {"judges": ["j"], "more": [], "mark": "f", "consensus": "mean", "rubric": RUBRIC}
SETTINGS |= {"match": MATCH, "judge": JUDGE}
TEXT = "suite: s\ntasks: [{id: a, input: x, target: '2'}]\nsubjects: [openai/gpt-5]\n"
KEY = AttemptKey(ID, "m", "T0", "a", 1)
WRONG = ("abc", b"\xff\x00", -1, 1e300, 2**62, "[1", "{}", "[]", "null", '{"kind": 1}')
COMMANDS = (
    ("runs",), ("show", ID), ("show", ID, "a"), ("score", ID), ("score", ID, "--by", "hint"),
    ("export", ID, "-o", "out.jsonl"), ("export", ID, "--judgments", "-o", "out.csv"),
    ("report", ID, "-o", "out.html"), ("gate", ID, "--policy", "policy.yaml"),
    ("run", "--resume", ID, "--dry-run"),
)  # fmt: skip


def filled(address):
    """Fill a store with one run that has a bit of everything."""
    with closing(Store(address)) as store:
        run = stored_run(status="done", text=TEXT, path="absent.yaml", attempts=2)
        store.add_run(replace(run, settings=SETTINGS))
        texts = {"messages": "[]", "tool_calls": "[]", "work": "{}", "extra": '{"hint": "x"}'}
        values = {"response": "FINAL_ANSWER: 2", "target": "2", "cost_usd": 0.1, **texts}
        store.write([record("a", **values), record("b", **values)], [call("a"), call("b")])
        judged = {**KEY._asdict(), "judge": "j", "fingerprint": "f", "status": "ok", "at": 1.0}
        judged |= {"score": 0.5, "passed": True, "items": '{"a": {"score": 1}}'}
        store.write_judgments([tuple(map(judged.get, JUDGMENT_COLUMNS))], [])
        save_scenarios(store, ID, {"a": json.dumps({"checks": [{"contains": "2"}]})})
        verdict = BehaviourVerdict(KEY, "m", "code", "s", True, "why", 1.0, evidence="[]")
        save_verdicts(store, [verdict])
        remark_on_run(store, ID, tags=["t"], note="n")
        remark_on_record(store, KEY, note="n")
        compute(store, store.find(ID))
        save_decision(store, ID, policy="p", side="", verdict="pass", stamp="s")


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    path = tmp_path_factory.mktemp("sample") / "store.db"
    filled(str(path))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


@pytest.mark.parametrize("table", [t for t in METADATA.tables if not t.endswith("aside")])
def test_no_cell_gives_a_traceback(table, sample, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("policy.yaml").write_text("thresholds: {blocking: {accuracy: 0%}}\n")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    raised = []
    for place, column in enumerate(METADATA.tables[table].c):
        for number in range(place % 2, len(WRONG), 2):  # each value in every second column
            value = WRONG[number]
            copy = f"{place}-{number}.db"
            shutil.copy(sample, copy)
            with closing(sqlite3.connect(copy)) as connection:
                try:
                    connection.execute(f"UPDATE OR FAIL {table} SET {column.name} = ?", (value,))
                except sqlite3.IntegrityError:
                    continue
                connection.commit()
            words = COMMANDS[(3 * place + number // 2) % len(COMMANDS)]
            done = CliRunner().invoke(cli, [*words, "--store", copy], standalone_mode=False)
            usual = (PennyweightError, click.ClickException, click.exceptions.Exit, SystemExit)
            if done.exception and not isinstance(done.exception, usual):
                raised.append(f"{column.name} = {value!r}: {words}: {done.exception!r}")
    assert not raised, "\n".join(raised[:20])


def test_a_wrong_cost_is_named(store, tmp_path):
    filled(store.address)
    if store.engine.dialect.name != "sqlite":
        pytest.skip("PostgreSQL has types")
    with closing(sqlite3.connect(store.address)) as connection:
        connection.execute("UPDATE pennyweight_record SET cost_usd = 'abc' WHERE task_id = 'b'")
        connection.commit()
    with pytest.raises(StoreError, match="cost_usd of a record is 'abc', which is not a number"):
        list(store.records(ID))


def damage(store, query):
    with store.engine.begin() as connection:
        connection.exec_driver_sql(query)


@pytest.mark.parametrize(
    "query",
    [
        f"UPDATE pennyweight_run SET settings = 'abc' WHERE id = '{ID}'",
        f"UPDATE pennyweight_run SET created = -1 WHERE id = '{ID}'",
        f"UPDATE pennyweight_remark SET tags = '[1]' WHERE run = '{ID}'",
        f"UPDATE pennyweight_decision SET verdict = 'abc' WHERE run = '{ID}'",
    ],
)
def test_a_damaged_run_does_not_hide_the_others(store, query):
    filled(store.address)
    store.add_run(stored_run("other", created=2.0, settings=SETTINGS))
    damage(store, query)
    done = CliRunner().invoke(cli, ["runs", "--store", store.address])
    assert done.exit_code == 0, done.output
    assert "other" in done.stdout
    digests = DigestCache(store)
    found = listing(store, digests, lambda run: status_of(run, store))
    while digests.waiting:
        time.sleep(0.01)
    assert [row.id for row in found.runs()] == ["other"]
    ((run, problem),) = ((one.id, one.problem) for one in found.damaged)
    assert run == ID
    assert problem.startswith("The store is damaged: ")
    assert found.damaged[0].advice.startswith(f"Delete it with 'pennyweight rm {ID}'")
    if "remark" not in query and "decision" not in query:  # the command shows neither
        assert f"Run {ID} cannot be read. {problem} {found.damaged[0].advice}" in done.stderr
        data = CliRunner().invoke(cli, ["runs", "--store", store.address, "--format", "json"])
        assert json.loads(data.stdout)["damaged"][0]["id"] == ID


def test_the_list_leaves_out_a_damaged_digest_and_computes_it_again(store):
    filled(store.address)
    if store.engine.dialect.name != "sqlite":
        pytest.skip("PostgreSQL has types")
    digests = DigestCache(store)
    damage(store, "UPDATE pennyweight_digest SET records = 'abc', value = 'x'")
    (row,) = listing(store, digests, lambda run: run.status).runs()
    assert (row.id, row.records, row.value) == (ID, None, None)
    while digests.waiting:
        time.sleep(0.01)
    (row,) = listing(store, digests, lambda run: run.status).runs()
    assert row.records == 2


@pytest.mark.parametrize("place", [("whole", "estimates"), ("charts", "answers"), ("by",)])
def test_a_digest_of_another_form_is_computed_again(store, place):
    filled(store.address)
    digests, run = DigestCache(store), store.find(ID)
    whole = digests.get(run).digest
    wrong = json.loads(json.dumps(whole))
    inner = wrong
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = {"accuracy": [7]}
    with store.engine.begin() as connection:
        connection.execute(DIGEST.update().values(data=json.dumps(wrong)))
    again = DigestCache(store).get(run).digest
    assert {**again, "seconds": 0} == {**json.loads(json.dumps(whole)), "seconds": 0}


@pytest.mark.parametrize("cell", ["[1", '[["a"]]', '[["a", "b"]]', "[[1, 2]]", '{"a": 1}', "7"])
def test_malformed_logprobs_are_named(store, cell):
    filled(store.address)
    store.set_run(ID, settings={**SETTINGS, "confidence": "logprobs"})
    with store.engine.begin() as connection:
        connection.execute(RECORD.update().values(logprobs=cell))
    done = CliRunner().invoke(cli, ["score", ID, "--store", store.address], standalone_mode=False)
    assert isinstance(done.exception, StoreError)
    assert "logprobs of a record is " in str(done.exception)


def test_a_damaged_run_is_told_and_can_be_deleted_and_others_stay_usable(store):
    filled(store.address)
    store.add_run(stored_run("other", created=2.0, settings=SETTINGS))
    with store.engine.begin() as connection:
        connection.execute(RUN.update().where(RUN.c.id == ID).values(settings="abc"))
    with pytest.raises(StoreError, match=f"settings of run {ID} is 'abc', which is not JSON"):
        store.find(ID)
    assert store.find("other").id == "other"
    done = CliRunner().invoke(cli, ["rm", ID, "--yes", "--store", store.address])
    assert done.exit_code == 0, done.output
    assert [run.id for run in store.runs()] == ["other"]
