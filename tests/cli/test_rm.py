"""`pennyweight rm`: it asks, in words that a suite's name cannot bend."""

from contextlib import closing

import pytest
from click.testing import CliRunner

from pennyweight.api.runs import delete_run
from pennyweight.cli.rm import command
from pennyweight.errors import UsageError
from pennyweight.store.lanes.batches import StoredBatch, add_batch
from pennyweight.store.lease import Owner, release_run, take_run
from pennyweight.store.store import Store
from store.samples import RUN, run


def test_a_hostile_name_of_a_suite_does_not_reach_the_terminal(tmp_path):
    address = str(tmp_path / "s.db")
    with closing(Store(address)) as store:
        store.add_run(run(suite="s\x1b]0;owned\x07\x1b[2J"))
        asked = CliRunner().invoke(command, [RUN, "--store", address], input="n\n")
        assert f"Delete run {RUN} of s with 0 records?" in asked.output
        assert "\x1b" not in asked.output
        assert [r.id for r in store.runs()] == [RUN]
        gone = CliRunner().invoke(command, [RUN, "--store", address, "--yes"])
        assert gone.exit_code == 0
        assert store.runs() == []


def test_a_run_that_is_being_made_is_not_deleted(tmp_path):
    address = str(tmp_path / "s.db")
    with closing(Store(address)) as store:
        store.add_run(run())
        maker = Owner.here().text
        assert take_run(store, RUN, maker)
        refused = CliRunner().invoke(command, [RUN, "--store", address, "--yes"])
        assert "still running" in str(refused.exception)
        release_run(store, RUN, maker)
        assert CliRunner().invoke(command, [RUN, "--store", address, "--yes"]).exit_code == 0
        assert store.runs() == []


def test_batches_that_are_out_are_not_abandoned_by_the_way(tmp_path):
    address = str(tmp_path / "s.db")
    with closing(Store(address)) as store:
        store.add_run(run())
        add_batch(store, StoredBatch("b", RUN, "attempt", "m", "out", "h", requests=5))
        refused = CliRunner().invoke(command, [RUN, "--store", address], input="y\n")
        assert "waits for 5 requests in batches" in str(refused.exception)
        assert f"'pennyweight collect {RUN}'" in str(refused.exception)
        with pytest.raises(UsageError):
            delete_run(RUN, store)
        assert [r.id for r in store.runs()] == [RUN]
        assert CliRunner().invoke(command, [RUN, "--store", address, "--yes"]).exit_code == 0
        assert store.runs() == []


def test_where_nobody_answers_it_says_how_to_go_on(tmp_path):
    address = str(tmp_path / "s.db")
    with closing(Store(address)) as store:
        store.add_run(run())
        asked = CliRunner().invoke(command, [RUN, "--store", address], input="")
        said = f"Run {RUN} was not deleted. --yes deletes without asking."
        assert (type(asked.exception), str(asked.exception)) == (UsageError, said)
        assert [r.id for r in store.runs()] == [RUN]
