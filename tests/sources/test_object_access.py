"""Keys come from the environment alone, nothing is sent without them, and no message has them."""

import http.server
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from background import in_background
from cli.command import refused
from pennyweight.errors import InputError
from pennyweight.sources.object_access import access, without_secrets

AWS = {"AWS_ACCESS_KEY_ID": "AKIA-one", "AWS_SECRET_ACCESS_KEY": "se/cret+one"}


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Have no variable of a store, but a file of keys of another tool."""
    for name in os.environ:
        if name.startswith(("AWS_", "GOOGLE_", "AZURE_")):
            monkeypatch.delenv(name)
    home = tmp_path / ".aws"
    home.mkdir()
    (home / "credentials").write_text(
        "[default]\naws_access_key_id = FILE-ID\naws_secret_access_key = file-secret\n"
        "aws_session_token = FILE-TOKEN\n"
    )
    (home / "config").write_text("[default]\nregion = file-region-1\n")
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Have a store, and a metadata service, that refuse all; return the headers they get."""
    got: list[str] = []

    class Refuses(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            got.append(str(self.headers))
            self.send_response(403)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_HEAD = do_PUT = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with in_background(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refuses)) as server:
        place = f"127.0.0.1:{server.server_port}"
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://me:hunter2@{place}")
        monkeypatch.setenv("AWS_METADATA_ENDPOINT", f"http://{place}")
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
        yield got


@pytest.mark.parametrize(
    ("store", "variables"),
    [
        ("s3", ["AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", "AWS_SKIP_SIGNATURE=true"]),
        ("gs", ["GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SKIP_SIGNATURE=true"]),
        ("az", ["AZURE_STORAGE_ACCOUNT_KEY", "AZURE_SKIP_SIGNATURE=true"]),
        ("abfss", ["AZURE_STORAGE_SAS_TOKEN", "AZURE_SKIP_SIGNATURE=true"]),
    ],
)
@pytest.mark.parametrize("rest", ["b/t.parquet", "b/t.jsonl", "b/t", "b/*.parquet"])
def test_nothing_is_sent_without_keys(
    store: str, variables: list[str], rest: str, heard: list[str]
) -> None:
    told = refused("score", f"{store}://{rest}")
    assert f"{store}://{rest}: no keys are set: set " in told
    assert all(name in told for name in variables)
    assert "docs/tables.md" in told
    assert heard == []


def test_keys_of_files_are_not_used(heard: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in AWS.items():
        monkeypatch.setenv(name, value)
    told = refused("score", "s3://files/t.parquet")
    assert not any(word in told for word in (*AWS.values(), "hunter2", "Warning"))
    assert heard
    for headers in heard:
        assert "AKIA-one" in headers
        assert "us-east-1" in headers
        assert not any(word in headers for word in ("FILE-", "file-region"))
    heard.clear()
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    refused("score", "s3://public/t.parquet")
    assert heard
    assert not any("Credential=" in headers for headers in heard)


def test_a_region_is_needed_at_amazon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    with pytest.raises(InputError, match="s3://b/t: no region is set: set AWS_REGION"):
        access("s3://b/t")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    assert access("s3://b/t")["storage_options"]["aws_region"] == "eu-central-1"


def test_a_key_file_that_is_missing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(tmp_path / "none.json"))
    assert "gs://b/t: GOOGLE_SERVICE_ACCOUNT names no file." in refused("score", "gs://b/t")


def test_secrets_of_the_environment_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "abc123==")
    monkeypatch.setenv("SOME_TOKEN", "x")
    assert without_secrets("key abc123== is wrong, x is not") == "key … is wrong, x is not"
    assert without_secrets("?key=abc123%3D%3D") == "?key=…"
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://me:hunter2@127.0.0.1:1")
    assert without_secrets("http://me:hunter2@127.0.0.1:1/b") == "http://…@127.0.0.1:1/b"
    assert without_secrets("password hunter2") == "password …"
