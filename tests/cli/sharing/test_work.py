"""`pennyweight run --on workers` and `pennyweight work`."""

import pytest
from click.testing import CliRunner

from pennyweight.cli.group import cli

SUITE = "suite: s\ntasks: [a, b]\nsubjects: ['python:bot:answer']\n"


@pytest.fixture
def suite(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bot.py").write_text("def answer(text):\n    return '4'\n")
    (tmp_path / "s.yaml").write_text(SUITE)


@pytest.mark.usefixtures("suite")
def test_put_up_and_work():
    store = ["--store", "store.db"]
    put = CliRunner().invoke(cli, ["run", "s.yaml", "--on", "workers", *store])
    assert put.exit_code == 0, put.output
    run = put.stdout.strip()
    assert f"2 attempts of run {run} wait for workers: pennyweight work {run}" in put.stderr
    done = CliRunner().invoke(cli, ["work", run, *store])
    assert done.exit_code == 0, done.output
    assert f"This worker made 2 attempts of run {run}." in done.stderr
    assert done.stdout == ""


@pytest.mark.usefixtures("suite")
def test_places_that_are_none():
    wrong = CliRunner().invoke(cli, ["run", "s.yaml", "--on", "mars", "--store", "store.db"])
    assert "'workers'" in str(wrong.exception)
    both = CliRunner().invoke(cli, ["run", "s.yaml", "--on", "workers", "--record", "x.jsonl"])
    assert both.exit_code == 2
