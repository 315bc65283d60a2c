"""Tables in an object store: the numbers of the same files on disk, and no key in any message."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import pennyweight
from cli.command import pennyweight as command
from cli.command import refused
from pennyweight.errors import InputError
from pennyweight.sources import object_access, objects
from pennyweight.sources.objects import object_sources
from sources.object_store import ObjectServer, object_store
from sources.test_partitions import hive, part, records

POLICY = {"gates": [{"metric": "accuracy", "no_worse_than": "5%"}]}
SECRETS = ("not-to-be-shown", "Credential=")


def serving(monkeypatch: pytest.MonkeyPatch, server: ObjectServer) -> None:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Lay a table out on disk, as Parquet and as JSONL."""
    rows = records(240)
    hive(tmp_path / "parquet", rows)
    hive(tmp_path / "jsonl", rows, ".jsonl")
    part(tmp_path / "parquet" / "_temporary" / "x.parquet", rows)
    part(tmp_path / "parquet" / "subject=m1" / "tier=T0" / ".hidden.parquet", rows)
    return tmp_path


@pytest.fixture
def server(table: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectServer]:
    files = {str(p.relative_to(table)): p.read_bytes() for p in table.rglob("*") if p.is_file()}
    with object_store(files) as made:
        serving(monkeypatch, made)
        yield made


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_the_numbers_are_those_of_files(table: Path, server: ObjectServer, form: str) -> None:
    here, there = table / form, f"s3://{server.bucket}/{form}"
    by = ["subject", "tier"]
    expected = pennyweight.score(here, by=by).to_dict()
    for name in (there, f"{there}/", f"{there}/**/*.{form}", f"{there}/*/*/part-*.{form}"):
        assert pennyweight.score(name, by=by).to_dict() == expected, name
    one = "subject=m1/tier=T0/part-0"
    single = pennyweight.score(f"{there}/{one}.{form}", by=by)
    assert single.to_dict() == pennyweight.score(here / f"{one}.{form}", by=by).to_dict()
    sides = [f"{there}/*/tier=T{n}/*.{form}" for n in (0, 1)]
    assert {side.group.records for side in pennyweight.compare(sides).sides} == {80, 160}
    assert len(server.asked) > 5


def test_long_objects_are_read_in_parts(
    table: Path, server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "ROWS", 7)
    for form in ("parquet", "jsonl"):
        found = pennyweight.score(f"s3://{server.bucket}/{form}", by="tier").to_dict()
        assert found == pennyweight.score(table / form, by="tier").to_dict()


def test_a_folder_with_several_kinds_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, here = records(30), tmp_path / "t"
    part(here / "a.parquet", rows[:10])
    part(here / "b.jsonl", rows[10:20])
    part(here / "c.jsonl", rows[20:]).rename(here / "c.ndjson")
    with object_store({f"t/{path.name}": path.read_bytes() for path in here.iterdir()}) as server:
        serving(monkeypatch, server)
        found = pennyweight.score(f"s3://{server.bucket}/t")
    assert found.groups[0].records == len(rows)
    assert found.to_dict() == pennyweight.score(here).to_dict()


def test_a_store_that_never_answers_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_access, "READ_SECONDS", 1)
    with object_store({}) as other, socket.create_server(("127.0.0.1", 0)) as silent:
        serving(monkeypatch, other)
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        told = refused("score", f"s3://{other.bucket}/t")
    assert f"s3://{other.bucket}/t: the store does not answer." in told
    assert "come from the environment" in told


def test_a_baseline_that_cannot_be_read_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = part(tmp_path / "rows.jsonl", records(1))
    with object_store({}, status=403) as server:
        serving(monkeypatch, server)
        name = f"s3://{server.bucket}/t"
        with pytest.raises(InputError) as raised:
            pennyweight.gate(here, POLICY, baseline=name)
    assert raised.value.problems[0].startswith(f"{name}: cannot be read: ")
    assert "come from the environment" in raised.value.hint


def test_bad_records_have_their_object_and_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = b'{"answer": "4", "target": "4"}\n\n{"latency_ms": -1}\nnonsense\n'
    with object_store({"a.jsonl": lines}) as server:
        serving(monkeypatch, server)
        name = f"s3://{server.bucket}/a.jsonl"
        said = refused("score", name)
    assert f"{name}, line 3:" in said
    assert f"{name}, line 4:" in said


def test_mistakes_are_told_without_keys(server: ObjectServer) -> None:
    mine = f"s3://{server.bucket}"
    said = {
        f"{mine}/none.parquet": "no such object, or no such bucket",
        "s3://other/none.parquet": "no such object, or no such bucket",
        "s3://": "no bucket is named; write s3://BUCKET/TABLE",
        "s3:///table": "no bucket is named; write s3://BUCKET/TABLE",
        f"{mine}/none": "there are no Parquet or JSONL files",
        f"{mine}/none/*.jsonl": "there are no Parquet or JSONL files",
        f"{mine}/parquet/*": "the pattern must end in .parquet, .jsonl or .ndjson",
        f"{mine}/a.csv": "Parquet and uncompressed JSONL are read",
        f"{mine}/a.jsonl.gz": "Parquet and uncompressed JSONL are read",
    }
    for name, expected in said.items():
        told = refused("score", name)
        assert f"{name}: " in told
        assert expected in told
        assert not any(secret in told for secret in SECRETS)
    assert all(path.startswith((f"/{server.bucket}", "/other")) for path in server.asked)


def test_a_damaged_object_and_a_hostile_server_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with object_store({"a.parquet": b"PAR1 nothing else"}) as server:
        serving(monkeypatch, server)
        told = refused("score", f"s3://{server.bucket}/a.parquet")
        assert f"s3://{server.bucket}/a.parquet: cannot be read: " in told
        assert "come from the environment" in told
    with object_store({}, status=403) as server:
        serving(monkeypatch, server)
        told = refused("score", f"s3://{server.bucket}/a.parquet")
    assert "403" in told
    assert "not-to-be-shown" not in told


def test_records_cannot_name_an_address(tmp_path: Path, server: ObjectServer) -> None:
    address = f"s3://{server.bucket}/parquet"
    row = dict.fromkeys(("task_id", "answer", "target", "response", "subject", "run"), address)
    path = part(tmp_path / "rows.jsonl", [row])
    assert command("score", path).code == 0
    assert server.asked == []


def test_other_stores_have_the_same_form() -> None:
    (one,) = object_sources("gcs://bucket/tier=T0/a.parquet")
    assert (one.name, one.origin) == ("gs://bucket/tier=T0/a.parquet",) * 2
    with pytest.raises(InputError, match="uncompressed JSONL"):
        object_sources("az://box/a.csv")
