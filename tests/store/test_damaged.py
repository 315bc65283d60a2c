"""Cells of a store are data of unknown origin: wrong ones give an error, never a traceback."""

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pennyweight.api.digest_cache import compute
from pennyweight.api.records import remark_on_record, remark_on_run
from pennyweight.cli.group import cli
from pennyweight.errors import PennyweightError, StoreError
from pennyweight.record import AttemptKey
from pennyweight.store.cache import save_decision
from pennyweight.store.store import JUDGMENT_COLUMNS, Store
from pennyweight.store.tables import METADATA, RUN
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
        for number, value in enumerate(WRONG):
            copy = f"{place}-{number}.db"
            shutil.copy(sample, copy)
            with closing(sqlite3.connect(copy)) as connection:
                try:
                    connection.execute(f"UPDATE OR FAIL {table} SET {column.name} = ?", (value,))
                except sqlite3.IntegrityError:
                    continue
                connection.commit()
            words = COMMANDS[(3 * place + number) % len(COMMANDS)]
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
