"""Spans of a trace arrive in any number of requests; its end makes it an attempt."""

import json
from pathlib import Path

import pytest

import pennyweight
from pennyweight.api.pages import live_traces
from pennyweight.api.pages.live_traces import JSON, TraceInbox
from pennyweight.errors import StoreError, UsageError
from pennyweight.store.store import Store
from sources.logs.test_otel import (
    AGENT,
    AGENT_SPANS,
    CHAT,
    QUESTION,
    REPLY,
    span,
    spans,
    with_parts,
)


def sent(inbox: TraceInbox, *several: object, run: str = "live") -> int:
    return inbox.receive(json.dumps(spans(*several)).encode(), JSON, run)  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store.db"))


def test_a_trace_is_stored_when_its_root_ends(store: Store) -> None:
    inbox = TraceInbox(store)
    assert [sent(inbox, one) for one in with_parts()[0]] == [0, 0]
    assert store.runs() == []
    assert sent(inbox, *AGENT_SPANS) == 1
    (frame,) = store.records("live")
    (row,) = frame.to_dicts()
    assert (row["task_id"], row["input"], row["response"]) == ("sum", QUESTION, REPLY)
    assert (row["passed"], row["prompt_tokens"]) == (True, 20)
    assert [turn["role"] for turn in json.loads(row["work"])["turns"]][:1] != []
    assert pennyweight.score("live", store=store)["pass_rate"].value == 1


def test_a_span_after_the_end_completes_its_attempt_once(store: Store) -> None:
    inbox = TraceInbox(store)
    assert sent(inbox, span("01", "", AGENT)) == 1
    assert sent(inbox, span("02", "01", CHAT)) == 1
    (frame,) = store.records("live")
    assert frame["prompt_tokens"].to_list() == [10]
    again = (span("01", "", AGENT), span("02", "01", CHAT))
    assert [sent(inbox, one) for one in again] == [0, 0]
    assert store.runs()[0].attempts == 1


def test_a_run_goes_on_after_the_server_started_again(store: Store) -> None:
    for trace in ("aa", "bb"):
        assert sent(TraceInbox(store), span("01", "", AGENT, trace=trace)) == 1
    (run,) = store.runs()
    assert (run.attempts, run.settings["tasks"], run.settings["runs"]) == (2, 1, 2)
    assert {key.attempt for key in store.attempts("live")} == {1, 2}


def test_traces_do_not_go_into_a_run_of_a_suite(store: Store, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"task_id": "a", "passed": true}\n')
    pennyweight.import_logs(tmp_path / "a.jsonl", "mine", store=store)
    with pytest.raises(UsageError, match="Run mine is not one of traces"):
        sent(TraceInbox(store), span("01", "", AGENT), run="mine")


def test_what_could_not_be_stored_is_stored_when_it_is_sent_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = TraceInbox(store)
    sent(inbox, span("02", "01", CHAT))

    def fail(*_: object) -> None:
        raise StoreError("locked")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "write", fail)
        with pytest.raises(StoreError):
            sent(inbox, span("01", "", AGENT))
    assert sent(inbox, span("01", "", AGENT)) == 1
    (frame,) = store.records("live")
    assert frame["prompt_tokens"].to_list() == [10]


def test_traces_that_never_end_make_room(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_traces, "MAX_SPANS", 2)
    inbox = TraceInbox(store)
    for trace in ("aa", "bb", "cc"):
        sent(inbox, span("02", "01", CHAT, trace=trace))
    assert sent(inbox, span("01", "", AGENT, trace="aa"), span("01", "", AGENT, trace="cc")) == 2
    (frame,) = store.records("live")
    assert sorted(frame["prompt_tokens"].to_list(), key=str) == [10, None]
