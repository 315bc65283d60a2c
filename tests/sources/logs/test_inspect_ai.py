"""Logs of Inspect AI: archives, JSON, crashed, chunked, shards, and hostile ones."""

import json
import random
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
import zstandard

import pennyweight
from pennyweight.errors import InputError, UsageError
from pennyweight.sources.discovery import file_sources
from pennyweight.sources.logs.inspect_ai import large_sample, sample_of
from pennyweight.sources.zip_members import MemberError
from sources.logs.fixtures import expected, fixture
from sources.logs.reading import notes_of, records

HEAD = {
    "version": 2,
    "status": "success",
    "eval": {"run_id": "r1", "eval_id": "e1", "task": "sums", "model": "lab/m"},
    "results": {
        "total_samples": 4,
        "scores": [{"name": "match", "metrics": {"accuracy": {"value": 0.75}}}],
    },
}


def sample(id_: Any = "a", epoch: int = 1, value: Any = "C", **more: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "epoch": epoch,
        "input": f"What is {id_}?",
        "target": "4",
        "messages": [
            {"role": "user", "content": f"What is {id_}?"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "c", "function": "add", "arguments": {"x": 1}}]},
            {"role": "tool", "function": "add", "content": "4"},
        ],
        "output": {
            "choices": [{"message": {"role": "assistant", "content": [
                {"type": "reasoning", "reasoning": "so"}, {"type": "text", "text": "It is 4."}]},
                "stop_reason": "stop"}],
            "completion": "It is 4.",
            "time": 0.25,
        },
        "scores": {"match": {"value": value, "answer": "4", "explanation": "as said"}},
        "metadata": {"category": "easy", "level": 2},
        "events": [{"event": "x", "model_usage": {"a": 1}, "events": [1]}],
        "model_usage": {
            "lab/m": {"input_tokens": 3, "output_tokens": 5, "total_tokens": 20, "total_cost": 0.5},
            "lab/judge": {"output_tokens": 1, "total_tokens": 9, "total_cost": 0.25},
        },
        "started_at": "2026-01-02T03:04:05+00:00",
        "total_time": 1.5,
        **more,
    }  # fmt: skip


SAMPLES = [sample("a", 1), sample("a", 2), sample("b/ c", 1), sample("b/ c", 2, "I")]


def zipped(path: Path, members: list[tuple[str, bytes]], method: int = 93) -> Path:
    """Write an archive; method 93 as Inspect does, in frames of a few bytes."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members:
            info = zipfile.ZipInfo(name)
            if method != 93:
                info.compress_type = method
                archive.writestr(info, data)
                continue
            frames = [data[at : at + 500] for at in range(0, len(data), 500)]
            packed = b"".join(zstandard.ZstdCompressor().compress(frame) for frame in frames)
            archive.writestr(info, packed)
            info.compress_type, info.file_size, info.CRC = 93, len(data), zlib.crc32(data)
    return path


def as_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def members(samples: list[dict[str, Any]], head: Any = HEAD) -> list[tuple[str, bytes]]:
    named = [(f"samples/{s['id']}_epoch_{s['epoch']}.json", as_json(s)) for s in samples]
    return [("_journal/start.json", as_json({"version": 2, "eval": HEAD["eval"]})), *named,
            *([("header.json", as_json(head))] if head else [])]  # fmt: skip


def log(folder: Path, form: str = "zstandard", samples: Any = SAMPLES) -> Path:
    path = folder / "log.eval"
    match form:
        case "zstandard":
            return zipped(path, members(samples))
        case "deflate":
            return zipped(path, members(samples), zipfile.ZIP_DEFLATED)
        case "crashed":
            return zipped(path, members(samples, None))
        case "chunked":
            return zipped(path, [("header.json", as_json(HEAD)), *chunked(samples)])
        case "shards":
            for number, one in enumerate(samples):
                shard = folder / "log.shards" / str(number) / "x.eval"
                shard.parent.mkdir(parents=True)
                zipped(shard, members([one]))
            return folder
    path = folder / "log.json"
    indent = 2 if form == "indented" else None
    path.write_text(json.dumps({**HEAD, "samples": samples, "reductions": []}, indent=indent))
    return path


def chunked(samples: list[dict[str, Any]]) -> list[tuple[str, bytes]]:
    made = []
    for one in samples:
        folder = f"samples/{one['id']}_epoch_{one['epoch']}"
        said = one["messages"]
        slim = {k: v for k, v in one.items() if k not in {"messages", "events"}}
        slim |= {"input": "attachment://1", "message_refs": [[0, 1], [1, 3]]}
        made += [
            (f"{folder}/sample.json", as_json(slim)),
            (f"{folder}/skeleton.json", as_json({"version": 1})),
            (f"{folder}/messages/0.json", as_json(said[:2])),
            (f"{folder}/messages/2.json", as_json(said[2:])),
            (f"{folder}/attachments/0.json", as_json(["x", one["input"]])),
        ]
    return made


FORMS = ["zstandard", "deflate", "crashed", "chunked", "shards", "indented", "compact"]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_records(form: str, tmp_path: Path) -> None:
    rows = records(log(tmp_path, form))
    assert [(r["task_id"], r["attempt"], r["passed"]) for r in rows] == [
        ("a", 1, True), ("a", 2, True), ("b/ c", 1, True), ("b/ c", 2, False)]  # fmt: skip
    first = rows[0]
    assert {name: first[name] for name in (
        "run", "subject", "suite", "input", "target", "response", "reasoning", "answer", "status",
        "prompt_tokens", "completion_tokens", "cost_usd", "judge_cost_usd", "latency_ms",
        "duration_seconds", "category", "metadata.level", "truncated", "tool",
    )} == {
        "run": "r1", "subject": "lab/m", "suite": "sums", "input": "What is a?", "target": "4",
        "response": "It is 4.", "reasoning": "so", "answer": "4", "status": "ok",
        "prompt_tokens": 15, "completion_tokens": 5, "cost_usd": 0.5, "judge_cost_usd": 0.25,
        "latency_ms": 250, "duration_seconds": 1.5, "category": "easy", "metadata.level": 2,
        "truncated": False, "tool": "inspect",
    }  # fmt: skip
    said = json.loads(first["messages"])
    assert [one["role"] for one in said] == ["user", "assistant", "tool"]
    assert said[1]["tool_calls"] == [{"id": "c", "name": "add", "arguments": {"x": 1}}]
    (check,) = json.loads(first["checks"])
    assert check == {"role": "check", "name": "match", "holds": True, "why": "as said",
                     "evidence": [], "score": 1.0}  # fmt: skip


def test_the_tools_verdict_wins_until_a_rule_is_given(tmp_path: Path) -> None:
    path = log(tmp_path)
    scores = pennyweight.score(path)
    assert scores["accuracy"].value == scores["pass_rate"].value == 0.75
    assert pennyweight.score(path, answer="last_number")["accuracy"].value == 1
    assert pennyweight.score(path, answer="last_number").notes == (
        "by the tool's own verdict 3 of 4 passed, by the answers 4; they differ in 1 record.",
    )
    rematch = pennyweight.score(path, match="contains")
    assert rematch["accuracy"].value == rematch["pass_rate"].value == 1


@pytest.mark.parametrize("form", ["zstandard", "json"])
def test_a_scorer_gives_each_sample_its_own_score(form: str, tmp_path: Path) -> None:
    def length(task_id: str) -> float:
        return len(task_id)

    path = log(tmp_path, form, [sample("a"), sample("bbb"), sample("cc")])
    scores = pennyweight.score(path, scorers=length)
    assert scores["length"].value == pytest.approx(2)
    assert scores.sources[0].notes()  # the summary of the log is about four samples


def test_scores_errors_and_limits(tmp_path: Path) -> None:
    graded = {"match": {"value": "I"}, "parts": {"value": {"kind": "P", "long": 12.0}}}
    rows = records(log(tmp_path, samples=[
        sample("graded", scores=graded),
        sample("half", value="P"),
        sample("nan", scores={"match": {"value": float("nan")}}),
        sample("broken", error={"message": "no reply"}, scores={}),
        sample("invalid", invalidation={"reason": "leaked"}),
        sample("slow", limit={"type": "time"}),
        sample("long", limit={"type": "token"}, target=["4", "four"], value="N"),
        sample("free", target="", scores={}),
    ]))  # fmt: skip
    by_task = {r["task_id"]: r for r in rows}
    assert {t: (r["status"], r["passed"], r["impl_rate"]) for t, r in by_task.items()} == {
        "graded": ("ok", False, 0), "half": ("ok", False, 0.5), "nan": ("ok", None, None),
        "broken": ("error", None, None), "invalid": ("error", None, None),
        "free": ("ok", None, None),
        "slow": ("timeout", True, 1), "long": ("budget", False, 0),
    }  # fmt: skip
    assert by_task["nan"]["undecided"] == ["match"]
    assert by_task["broken"]["error"] == "no reply"
    assert by_task["long"]["target"] == '["4","four"]'
    assert pennyweight.score(tmp_path / "log.eval")["pass_rate"].value == 1 / 4
    path = log(tmp_path, samples=[sample(scores=graded)])
    assert [r["impl_rate"] for r in records(path, scorer="kind")] == [0.5]
    assert [r["impl_rate"] for r in records(path, scorer="parts/long")] == [None]
    with pytest.raises(UsageError, match="The log has match, parts/kind, parts/long"):
        records(path, scorer="nope")


@pytest.mark.parametrize("form", ["zstandard", "crashed", "json"])
def test_a_log_without_scores_has_none_to_choose(form: str, tmp_path: Path) -> None:
    path = log(tmp_path, form, samples=[sample(scores=None), sample(id="b", scores={})])
    assert [r["passed"] for r in records(path)] == [None, None]
    with pytest.raises(UsageError, match=r"Score 'match' is not known\. The log has no scores"):
        records(path, scorer="match")
    with pytest.raises(UsageError, match="The log has no scores"):
        pennyweight.score(path, scorer="match")


def test_what_differs_from_the_tools_summary_is_told(tmp_path: Path) -> None:
    assert notes_of(log(tmp_path)) == []
    told = notes_of(log(tmp_path, samples=SAMPLES[:2]))
    assert told == [
        "log.eval: Inspect AI reports samples 4; these records give 2.",
        "log.eval: Inspect AI reports accuracy of match 0.75; these records give 1.",
    ]
    assert notes_of(log(tmp_path, "crashed")) == [
        "log.eval: the eval did not finish (status unknown)."
    ]


def scored(name: str, value: float, reducer: str | None = None) -> dict[str, Any]:
    """A header that reports one score."""
    found = {"name": "match", "reducer": reducer, "metrics": {name: {"value": value}}}
    return {**HEAD, "results": {"total_samples": 2, "scores": [found]}}


def test_reduced_epochs_are_told_apart_from_single_ones(tmp_path: Path) -> None:
    head = scored("accuracy", 1.0, "max")
    path = zipped(tmp_path / "log.eval", members([sample(), sample(epoch=2, value="I")], head))
    (note,) = notes_of(path)
    assert "accuracy 1 of match" in note
    assert "reduced by max" in note


def test_scores_outside_of_0_to_1_decide_nothing_and_are_told(tmp_path: Path) -> None:
    head = scored("mean", 4.0)
    path = zipped(tmp_path / "log.eval", members([sample(value=7), sample("b", value=1)], head))
    assert [(row["passed"], row["score"]) for row in records(path)] == [(None, 7), (True, 1)]
    assert "outside of 0 to 1" in notes_of(path)[0]


@pytest.mark.parametrize("form", ["zstandard", "indented"])
def test_an_eval_without_samples_is_refused(form: str, tmp_path: Path) -> None:
    path = log(tmp_path, form, [])
    if form == "indented":
        path.write_text(json.dumps(HEAD))
    with pytest.raises(InputError, match="log_samples off"):
        records(path)


def test_a_tool_that_failed_keeps_its_error(tmp_path: Path) -> None:
    said = {"role": "tool", "function": "add", "content": "",
            "error": {"type": "unknown", "message": "no such file"}}  # fmt: skip
    path = zipped(tmp_path / "log.eval", members([sample(messages=[said])]))
    (row,) = records(path)
    assert json.loads(row["messages"])[0]["error"] == "no such file"


def test_the_merged_log_stands_for_its_shards(tmp_path: Path) -> None:
    log(tmp_path, "shards")
    log(tmp_path)
    assert len(file_sources(tmp_path)) == 1
    assert len(records(tmp_path)) == 4


def test_a_copy_of_an_eval_is_read_once(tmp_path: Path) -> None:
    log(tmp_path)
    log(tmp_path, "indented")
    (tmp_path / "other.json").write_text((tmp_path / "log.json").read_text().replace("e1", "e2"))
    assert len(records(tmp_path)) == 8
    assert "log.eval: not read: log.json, the same eval as log.eval." in notes_of(tmp_path)


def test_of_equal_names_the_last_counts(tmp_path: Path) -> None:
    twice = members([sample(value="I"), sample(value="C")])
    with pytest.warns(UserWarning, match="Duplicate name"):
        path = zipped(tmp_path / "x.eval", twice)
    assert [r["passed"] for r in records(path)] == [True]


@pytest.mark.parametrize("indent", [None, 2])
def test_events_are_skipped_only_where_they_are_the_samples_own(indent: int | None) -> None:
    odd = sample(metadata={"events": [1], "model_usage": {}, "x": 'a,"events":[],"model_usage":{'})
    for one in (sample(), odd, sample(attachments={"a": [2], "model_usage": {"z": 1}})):
        separators = (",", ":") if indent is None else None
        text = json.dumps(one, indent=indent, separators=separators).encode()
        assert sample_of(text) in (one, {k: v for k, v in one.items() if k != "events"})
    nested = {"id": 1, "a": {"b": 1, "events": []}, "scores": {}, "c": {"d": [], "model_usage": {}}}
    assert sample_of(as_json(nested)) == nested


@pytest.mark.parametrize("size", [1, 7, 100, 100_000])
@pytest.mark.parametrize("indent", [None, 2])
def test_a_large_sample_is_read_without_its_events(size: int, indent: int | None) -> None:
    one = sample(events=[{"text": '],"model_usage":{', "model_usage": {"x": 1}}] * 50)
    separators = (",", ":") if indent is None else None
    text = json.dumps(one, indent=indent, separators=separators).encode()
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    assert large_sample(parts) == {k: v for k, v in one.items() if k != "events"}
    with pytest.raises(MemberError, match="not as Inspect writes it"):
        large_sample([as_json({"id": 1, "big": "x" * 1000})])


def test_a_large_sample_is_read_from_its_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = log(tmp_path)
    monkeypatch.setattr("pennyweight.sources.logs.inspect_ai.MAX_MEMBER", 1_200)
    assert len(records(path)) == 4
    monkeypatch.setattr("pennyweight.sources.logs.inspect_ai.MAX_MEMBER", 100)
    with pytest.raises(InputError, match="without its events"):
        pennyweight.score(path)


def patched(path: Path, **changes: int) -> Path:
    """Change what the directory of an archive says of its samples."""
    archive = zipfile.ZipFile(path)
    infos = [info for info in archive.infolist() if info.filename.startswith("samples/")]
    archive.close()
    data = bytearray(path.read_bytes())
    for info in infos:
        at = data.rfind(b"PK\x01\x02", 0, data.rfind(info.filename.encode()))
        for field, offset in (("CRC", 16), ("compress_size", 20), ("file_size", 24)):
            if field in changes:
                data[at + offset : at + offset + 4] = changes[field].to_bytes(4, "little")
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("method", [93, zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
@pytest.mark.parametrize(
    "changes", [{"file_size": 10}, {"file_size": 1 << 30}, {"CRC": 1}, {"compress_size": 1 << 24}]
)
def test_wrong_sizes_are_told_and_left_out(
    method: int, changes: dict[str, int], tmp_path: Path
) -> None:
    path = patched(zipped(tmp_path / "x.eval", members([sample()]), method), **changes)
    with pytest.raises(InputError, match=r"samples/a_epoch_1.json: (damaged|cut off|larger)"):
        pennyweight.score(path)
    assert records(path, skip_bad=True) == []


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    bomb = zstandard.ZstdCompressor().compress(bytes(200 << 20))
    path = tmp_path / "x.eval"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members([]):
            archive.writestr(name, data)
        info = zipfile.ZipInfo("samples/../../etc/a_epoch_1.json")
        archive.writestr(info, bomb)
        info.compress_type, info.file_size = 93, 1000
    with pytest.raises(InputError, match="damaged"):
        pennyweight.score(path)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"[" * 100_000, "not JSON"),
        (b'{"id": "\xff\xfe", "epoch": 1}', "not JSON"),
        (b'{"epoch": 1}', "no sample"),
        (b"", "not JSON"),
    ],
)
def test_a_broken_sample_is_told(data: bytes, why: str, tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.eval", [*members([sample()]), ("samples/z_epoch_1.json", data)])
    with pytest.raises(InputError, match=rf"samples/z_epoch_1.json: .*{why}"):
        pennyweight.score(path)
    assert len(records(path, skip_bad=True)) == 1


def test_not_a_number_and_infinity_are_read(tmp_path: Path) -> None:
    one = sample(metadata={"a": float("nan")}, total_time=float("inf"))
    (row,) = records(log(tmp_path, samples=[one]))
    assert row["duration_seconds"] is None
    assert row["passed"] is True


@pytest.mark.parametrize("form", ["zstandard", "indented", "compact"])
def test_a_cut_file_is_told(form: str, tmp_path: Path) -> None:
    path = log(tmp_path, form)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(InputError, match="cut off"):
        pennyweight.score(path)


def test_a_missing_header_is_told(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.eval", [("header.json", b"{")])
    with pytest.raises(InputError, match=r"neither header.json nor _journal/start.json"):
        pennyweight.score(path)


@pytest.mark.parametrize("number", range(11))
def test_the_real_logs_give_what_inspect_reports(number: int) -> None:
    """Compare with the numbers that Inspect itself reported."""
    name, theirs = sorted(expected("inspect").items())[number]
    path = fixture("inspect") / name
    rows = records(path)
    assert len(rows) == theirs["sample_rows"]
    assert sum(r["status"] == "error" for r in rows) == theirs["with_error"]
    assert sum(r["status"] in {"timeout", "budget"} for r in rows) == theirs["with_limit"]
    usage = theirs["model_usage"].get(theirs["model"])
    if usage and theirs["status"] != "started":
        output = sum(r["completion_tokens"] or 0 for r in rows)
        assert output == usage["output_tokens"]
        assert sum(r["prompt_tokens"] or 0 for r in rows) == usage["total_tokens"] - output
    for score in theirs["scores"] or ():
        if score["reducer"] in {None, "mean"} and "accuracy" in score["metrics"]:
            got = pennyweight.score(path, scorer=score["name"], weight="tasks")
            assert got["impl_rate_mean"].value == pytest.approx(score["metrics"]["accuracy"])
            assert not [n for n in notes_of(path, score["name"]) if "reports" in n]
    for name_, values in theirs["score_values"].items():
        found: dict[str, int] = {}
        for row in rows:
            value = json.loads(row["scores"] or "{}").get(name_)
            if value is not None:
                text = value if isinstance(value, str) else f"{value:g}"
                found[text] = found.get(text, 0) + 1
        assert found == values


MARKS = ("messages", "output", "events", "model_usage", "id", "x")


def nested(rng: random.Random, depth: int = 0) -> Any:
    """Draw a value with the keys, and the texts, that tell where messages and events are."""
    kind = rng.randrange(6 if depth < 4 else 3)
    if kind < 3:
        texts = ("", '","messages":[', '],"output":{', '],"model_usage":{', ',"events":[', '\\"')
        return (rng.randrange(9), rng.choice(texts), None)[kind]
    if kind == 3:
        return [nested(rng, depth + 1) for _ in range(rng.randrange(3))]
    return {rng.choice(MARKS): nested(rng, depth + 1) for _ in range(rng.randrange(4))}


def test_nothing_is_lost_where_messages_and_events_are_skipped() -> None:
    rng = random.Random(5)
    skipped = 0
    for _ in range(3_000):
        events = [nested(rng) for _ in range(rng.randrange(3))]
        one = {"id": "a", "input": nested(rng), "messages": [nested(rng)], "output": {}}
        one |= {"scores": nested(rng), "metadata": nested(rng), "store": {"y": nested(rng)}}
        one |= {"events": events, "model_usage": {"m": nested(rng)}, "z": nested(rng)}
        read = sample_of(json.dumps(one, separators=(",", ":")).encode(), messages=False)
        skipped += "messages" not in read
        kept = {name: value for name, value in read.items() if name in one}
        assert kept == {name: one[name] for name in kept}
        assert one.keys() - kept.keys() <= {"messages", "events"}
    assert skipped > 1_500
