"""`pennyweight run --on workers` and `pennyweight work`."""

import shlex

import pytest
from click.testing import CliRunner

from pennyweight.cli.group import cli

SUITE = "suite: s\ntasks: [a, b]\nsubjects: ['python:bot:answer']\n"


@pytest.fixture
def suite(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bot.py").write_text("def answer(text):\n    return '4'\n\n\nother = answer\n")
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
def test_the_command_that_is_shown_works_on_what_options_changed():
    options = ["-m", "python:bot:other", "--limit", "1", "--set", "runs=2"]
    put = CliRunner().invoke(cli, ["run", "s.yaml", "--on", "workers", "--store", "o.db", *options])
    shown = shlex.split(put.stderr.splitlines()[-1].partition("pennyweight ")[2])
    assert shown[2:] == ["--store", "o.db", "-m", "python:bot:other", "--set", "runs=2"]
    unsure = CliRunner().invoke(cli, ["work", "--store", "o.db"])
    assert "It would:" in str(unsure.exception)
    done = CliRunner().invoke(cli, shown)
    assert done.exit_code == 0, done.output
    assert "This worker made 2 attempts" in done.stderr


@pytest.mark.usefixtures("suite")
def test_places_that_are_none():
    wrong = CliRunner().invoke(cli, ["run", "s.yaml", "--on", "mars", "--store", "store.db"])
    assert "'workers'" in str(wrong.exception)
    both = CliRunner().invoke(cli, ["run", "s.yaml", "--on", "workers", "--record", "x.jsonl"])
    assert both.exit_code == 2
