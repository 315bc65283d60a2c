"""A process that loses its run while it submits: it sends nothing that the new owner sends too."""

from contextlib import closing

import pennyweight
from batch_serving import batch_suite
from pennyweight.api.lanes.collect import collect
from pennyweight.engine.batches import outbox
from pennyweight.engine.ending import TakenOver
from pennyweight.models.batch import anthropic
from pennyweight.models.batch.dialect import BatchSize
from pennyweight.store.lanes.batches import batches_of
from pennyweight.store.lease import owner_of, release_run
from pennyweight.store.store import Store


def test_who_lost_the_run_while_it_submits_sends_no_further_batch(
    server, store_address, tmp_path, monkeypatch
):
    """Between its two batches another process collects: it drops the second, and sends its own."""
    monkeypatch.setattr(anthropic, "SIZE", BatchSize(5, 10**8))
    monkeypatch.setattr(outbox, "GROUP", 2)
    server.control(hold=True)
    submit, others = anthropic.submit, []

    def interrupted(*given):
        sent = submit(*given)
        if not others:
            others.append("begun")
            with closing(Store(store_address)) as other:
                run = other.find("latest").id
                release_run(other, run, owner_of(other, run).text)
                others.append(collect(run, store=other))
        return sent

    monkeypatch.setattr(anthropic, "submit", interrupted)
    with closing(Store(store_address)) as store:
        path = batch_suite(tmp_path, server, "anthropic", tasks=10)
        run = pennyweight.run(path, store=store)
        assert isinstance(run.ended.reason, TakenOver)
        assert (run.exit_code, others[1].is_waiting) == (4, True)
        assert server.submissions() == [5, 5]
        assert sum(batch.requests for batch in batches_of(store, run.id)) == 10
        server.control(hold=False)
        while (run := collect(run.id, store=store)).is_waiting:
            pass
        assert (run.status, run.made, server.submissions()) == ("done", 10, [5, 5])
        spent = store.spent(run.id)
        assert (spent["calls"], spent["held_usd"]) == (10, None)
