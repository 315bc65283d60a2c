import gzip
import io
import os
from pathlib import Path

import pytest
import zstandard

from cli.command import pennyweight, refused, scores
from pennyweight.api.score import score
from sources.samples import FORMS, PACKED, RECORDS, approximately, jsonl, parquet


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> object:
    path = tmp_path_factory.mktemp("plain") / "records.jsonl"
    path.write_bytes(jsonl(RECORDS))
    return score(path, by=["subject", "shade"]).to_dict()


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_scores(
    form: str, packed: str, tmp_path: Path, expected: object
) -> None:
    suffix, write = FORMS[form]
    path = tmp_path / f"records{suffix}{packed}"
    path.write_bytes(PACKED[packed](write(RECORDS)))
    assert score(path, by=["subject", "shade"]).to_dict() == approximately(expected)


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("form", FORMS)
def test_standard_input_tells_its_form_by_its_content(form: str, packed: str) -> None:
    data = PACKED[packed](FORMS[form][1](RECORDS))
    (group,) = scores("-", "--metric", "accuracy", stdin=data)
    assert group["records"] == len(RECORDS)
    assert group["metrics"]["accuracy"] == pytest.approx(24 / 39)


def test_the_accuracy_of_the_sample_is_what_counting_by_hand_gives() -> None:
    scored = [r for r in RECORDS if r["status"] != "error"]
    right = [r for r in scored if r["target"] == "1,000" and r["prediction"] == "1e3"]
    assert (len(right), len(scored)) == (24, 39)


def test_a_frame_and_plain_records_give_the_same_scores(expected: object) -> None:
    import polars as pl

    frame = pl.DataFrame(RECORDS, infer_schema_length=None)
    for source in (frame, RECORDS, iter(RECORDS)):
        assert score(source, by=["subject", "shade"]).to_dict() == approximately(expected)


def test_several_files_and_a_folder_are_one_source(tmp_path: Path) -> None:
    parts = [tmp_path / "a.jsonl", tmp_path / "deep" / "b.csv.gz", tmp_path / "deep" / "c.parquet"]
    parts[1].parent.mkdir()
    parts[0].write_bytes(jsonl(RECORDS[:10]))
    parts[1].write_bytes(gzip.compress(FORMS["comma"][1](RECORDS[10:20])))
    parts[2].write_bytes(parquet(RECORDS[20:]))
    (tmp_path / "notes.txt").write_text("not records")
    together = scores(*parts, "--by", "shade")
    assert together == scores(tmp_path, "--by", "shade")
    assert [g["records"] for g in together] == [14, 13, 13]
    assert scores(parts[0], "-", stdin=parts[2].read_bytes())[0]["records"] == 30


def test_what_the_name_promises_may_be_packed_or_not(tmp_path: Path) -> None:
    for name, data in {
        "plain.jsonl.gz": jsonl(RECORDS),
        "packed.jsonl": gzip.compress(jsonl(RECORDS)),
        "packed.parquet": gzip.compress(parquet(RECORDS)),
        "RECORDS.JSONL.ZST": zstandard.compress(jsonl(RECORDS)),
        "nameless": jsonl(RECORDS),
    }.items():
        (tmp_path / name).write_bytes(data)
        assert scores(tmp_path / name, "--metric", "accuracy")[0]["records"] == 40, name


def test_several_packed_streams_in_one_file_are_read_on(tmp_path: Path) -> None:
    halves = jsonl(RECORDS[:20]), jsonl(RECORDS[20:])
    for suffix in (".gz", ".zst"):
        path = tmp_path / f"records.jsonl{suffix}"
        path.write_bytes(b"".join(map(PACKED[suffix], halves)))
        assert scores(path, "--metric", "accuracy")[0]["records"] == 40


@pytest.mark.parametrize("packed", [".gz", ".zst"])
@pytest.mark.parametrize("size", [3, 40, -300, -5, -1])
def test_a_packed_file_that_was_cut_is_refused(packed: str, size: int, tmp_path: Path) -> None:
    many = jsonl([{**r, "id": f"{i}-{os.urandom(9).hex()}"} for i, r in enumerate(RECORDS * 9)])
    whole = zstandard.ZstdCompressor(write_checksum=True).compress if packed == ".zst" else None
    path = tmp_path / f"cut.jsonl{packed}"
    path.write_bytes((whole or gzip.compress)(many)[:size])
    message = refused("score", path, "--skip-bad")
    assert str(path) in message


def test_a_packed_file_with_a_flipped_byte_is_refused(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(jsonl(RECORDS)))
    data[len(data) // 2] ^= 0xFF
    path = tmp_path / "flipped.jsonl.gz"
    path.write_bytes(data)
    assert "cannot be read" in refused("score", path)


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    message = refused("score", tmp_path / "no.jsonl", tmp_path / "nor.csv")
    assert f"{tmp_path}/no.jsonl: no such file or folder." in message
    assert f"{tmp_path}/nor.csv: no such file or folder." in message


def test_a_folder_without_records_says_what_would_be_one(tmp_path: Path) -> None:
    message = refused("score", tmp_path)
    assert "no record files in this folder" in message
    assert ".jsonl" in message
    assert ".parquet" in message


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "secret.jsonl"
    path.write_bytes(jsonl(RECORDS))
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("root may read every file")
    assert f"{path}: cannot be read: Permission denied." in refused("score", path)


def test_standard_input_can_be_read_once() -> None:
    assert "only once" in refused("score", "-", "-")


@pytest.mark.parametrize(
    "name", ["no.jsonl", "no.json", "no.csv", "no.parquet", "no.jsonl.gz", "no.csv.zst"]
)
@pytest.mark.parametrize("content", [b"", b"\n \r\n\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\r\n"])
def test_an_empty_file_is_refused(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    pack = gzip.compress if name.endswith("gz") else zstandard.compress if "zst" in name else bytes
    path.write_bytes(pack(content))
    assert str(path) in refused("score", path)


def test_nothing_in_an_array_a_table_or_below_a_header_is_empty(tmp_path: Path) -> None:
    import polars as pl

    none = io.BytesIO()
    pl.DataFrame(schema={"id": pl.String}).write_parquet(none)
    for name, data in {
        "a.json": b" [ ]\n",
        "b.csv": b"id,answer\n",
        "c.parquet": none.getvalue(),
    }.items():
        (tmp_path / name).write_bytes(data)
        assert "the file is empty; it needs at least one record" in refused(
            "score", tmp_path / name
        )


def test_one_empty_file_among_others_is_told_and_can_be_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(RECORDS))
    (tmp_path / "b.jsonl").touch()
    assert "b.jsonl: the file is empty" in refused("score", tmp_path)
    assert pennyweight("score", tmp_path, "--skip-bad").code == 0
