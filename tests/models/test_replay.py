"""Recordings: what was answered once is answered again, to the last digit."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from models.saved import ask
from pennyweight.errors import UsageError
from pennyweight.models.failure import CallError
from pennyweight.models.model import Model, Reply, Request, Usage
from pennyweight.models.providers import find
from pennyweight.models.replay import Recorder, RecordError, Recording, key_of


class Counting(Model):
    """A model that never says the same thing twice."""

    account = "here"
    limit = None

    def __init__(self, name: str = "ours/m") -> None:
        self.name = name
        self.calls = 0

    async def call(self, request: Request) -> Reply:
        self.calls += 1
        return Reply(
            f"{self.name} {self.calls} ü", "why", usage=Usage(1, 2), latency_ms=0.1 + self.calls
        )

    async def close(self) -> None:
        pass


def record(path: Path, model: Model, *requests: Request) -> list[Reply]:
    recorder = Recorder(path)
    wrapped = recorder.wrap(model)

    async def main() -> list[Reply]:
        return [await wrapped.call(r) for r in requests]

    replies = asyncio.run(main())
    recorder.close()
    return replies


REQUESTS = [
    ask(attempt=1),
    ask(attempt=2),
    ask(seed=1),
    ask(seed=2),
    ask("else"),
    ask(temperature=1),
]


def test_a_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "made" / "r.jsonl"
    replies = record(path, Counting(), *REQUESTS)
    model = find(f"replay:{path}")
    assert model.name == "ours/m"

    async def again() -> list[Reply]:
        return [await model.call(r) for r in reversed(REQUESTS)]

    assert asyncio.run(again()) == replies[::-1]


def test_equal_prompts_of_two_tiers_or_tasks_have_a_reply_each(tmp_path: Path) -> None:
    asked = [replace(ask(), label=label) for label in ("T0\0a", "T1\0a", "T0\0b")]
    replies = record(tmp_path / "r.jsonl", Counting(), *asked)
    assert len({reply.text for reply in replies}) == 3
    model = find(f"replay:{tmp_path / 'r.jsonl'}")

    async def again() -> list[Reply]:
        return [await model.call(r) for r in reversed(asked)]

    assert asyncio.run(again()) == replies[::-1]
    with pytest.raises(CallError, match="has no reply"):
        asyncio.run(model.call(replace(ask(), label="T2\0a")))


def test_a_recording_without_labels_still_answers(tmp_path: Path) -> None:
    (reply,) = record(tmp_path / "r.jsonl", Counting(), ask())
    model = find(f"replay:{tmp_path / 'r.jsonl'}")
    assert asyncio.run(model.call(replace(ask(), label="T0\0a"))) == reply


def test_an_attempt_that_was_made_again_is_answered_as_the_last_time(tmp_path: Path) -> None:
    *_, last = record(tmp_path / "r.jsonl", Counting(), ask(), ask())
    assert asyncio.run(find(f"replay:{tmp_path / 'r.jsonl'}").call(ask())) == last


def test_a_missing_reply_is_an_error(tmp_path: Path) -> None:
    record(tmp_path / "r.jsonl", Counting(), ask())
    model = find(f"replay:{tmp_path / 'r.jsonl'}")
    with pytest.raises(CallError, match="attempt 2") as caught:
        asyncio.run(model.call(ask(attempt=2)))
    assert (caught.value.kind, caught.value.retryable) == ("replay", False)


def test_the_key_knows_everything_that_matters() -> None:
    keys = {key_of("m", r) for r in REQUESTS} | {key_of("other", ask())}
    assert len(keys) == len(REQUESTS) + 1


def test_several_models_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    record(path, Counting("a/m"), ask())
    record(path, Counting("b/m"), ask())
    with pytest.raises(UsageError, match="but: a/m, b/m"):
        find(f"replay:{path}")
    assert asyncio.run(find(f"replay:{path}#b/m").call(ask())).text == "b/m 1 ü"
    with pytest.raises(UsageError, match="is not known"):
        find(f"replay:{path}#c/m")


def test_a_line_that_was_cut_is_left_out_and_written_over(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    record(path, Counting(), ask())
    with path.open("a") as file:
        file.write('{"key": "half')
    assert len(Recording.read(path).replies) == 1
    record(path, Counting(), ask("else"))
    assert len(Recording.read(path).replies) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is missing")
def test_a_full_disk_stops_further_calls_and_loses_no_answer() -> None:
    recorder, model = Recorder(Path("/dev/full")), Counting()
    wrapped = recorder.wrap(model)
    assert asyncio.run(wrapped.call(ask())).text == "ours/m 1 ü"
    with pytest.raises(RecordError, match="No space left") as caught:
        asyncio.run(wrapped.call(ask("else")))
    assert (caught.value.exit_code, model.calls) == (4, 1)
    with pytest.raises(RecordError, match="1 reply is in the store, but not in this file"):
        recorder.close()


def test_a_file_that_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written: Is a directory"):
        Recorder(tmp_path)


def test_a_wrong_file_names_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"key": 1}\nno\n')
    with pytest.raises(UsageError, match=r"line 1: not a recorded reply .*, and 1 more"):
        Recording.read(path)


def test_a_file_is_looked_for_beside_the_suite_and_then_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite, here = tmp_path / "suite", tmp_path / "here"
    record(suite / "both.jsonl", Counting("suite/m"), ask())
    record(here / "both.jsonl", Counting("here/m"), ask())
    record(here / "one.jsonl", Counting("here/m"), ask())
    monkeypatch.chdir(here)
    assert find("replay:both.jsonl", folder=suite).name == "suite/m"
    assert find("replay:one.jsonl", folder=suite).name == "here/m"


@pytest.mark.parametrize(
    "held",
    [
        b"line one\nprecious last line without newline",
        b"no newline at all",
        b"suite: s\n",
        b'{"key": 1}\n{"key": "half',
        b'{"task_id": "a", "answer": "4"}\n{"task_id": "b", "answer": "5"}',
        b'{"key": "a", "model": "m"}\n',
        b"SQLite format 3\x00\x10\x00",
        b"[" * 100_000,
    ],
)
def test_a_file_that_is_no_recording_is_left_as_it_is(tmp_path: Path, held: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(held)
    with pytest.raises(UsageError, match="exists and is not a recording; name another file"):
        Recorder(path)
    assert path.read_bytes() == held


@pytest.mark.parametrize("cut", [b"", b'{"k', b'{"key": "0123'])
def test_a_recorder_that_died_at_its_first_line_is_followed(tmp_path: Path, cut: bytes) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(cut)
    record(path, Counting(), ask())
    assert len(Recording.read(path).replies) == 1


def test_a_whole_reply_that_only_lacks_its_newline_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    record(path, Counting(), ask())
    path.write_bytes(path.read_bytes().rstrip())
    record(path, Counting(), ask("else"))
    assert len(Recording.read(path).replies) == 2
