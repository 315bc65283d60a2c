"""A key in the environment is found nowhere after a run, whatever the provider does with it."""

import base64
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import polars as pl
import pytest

from cli.command import pennyweight as command
from cli.command import refused
from models.hostile import Behaviour, in_a_thread, in_turn, response

KEY = "sk-live/4f9a+8b7c=6d5e4f3a2b1c"
ESCAPED = "".join(f"\\u{ord(sign):04x}" for sign in KEY)


def traces() -> list[bytes]:
    """Give what would be left of the key: itself, any 12 signs of it, and its encodings."""
    raw = KEY.encode()
    shapes = [KEY, quote(KEY, safe=""), KEY.replace("/", "\\/"), ESCAPED, raw.hex()]
    wrapped = [f"{prefix}{KEY}".encode() for prefix in ("", "Bearer ", "k:", "user:")]
    shapes += [base64.b64encode(text).decode()[8:-4] for text in wrapped]
    parts = [KEY[i : i + 12] for i in range(len(KEY) - 11)]
    return [shape.encode() for shape in (*shapes, *parts)]


ECHO = " ".join(
    [
        f"Authorization: Bearer {KEY}",
        f"https://x/?key={quote(KEY, safe='')}",
        base64.b64encode(KEY.encode()).decode(),
        "Basic " + base64.b64encode(f"user:{KEY}".encode()).decode(),
        KEY.encode().hex(),
    ]
)


def bodies(text: str) -> dict[str, dict[str, object]]:
    """Write a text into a reply of each format, at every place that a record keeps."""
    openai = {
        "model": f"m {text}",
        "choices": [
            {
                "finish_reason": text,
                "message": {
                    "role": "assistant",
                    "content": f"{text}\nFINAL_ANSWER: {text}",
                    "reasoning_content": text,
                    "tool_calls": [
                        {"id": text, "function": {"name": text, "arguments": json.dumps([text])}}
                    ],
                },
            }
        ],
    }
    message = {"type": "message", "content": [{"type": "output_text", "text": text}]}
    call = {"type": "function_call", "call_id": text, "name": text, "arguments": f'["{text}"]'}
    responses = {
        "model": text,
        "status": "completed",
        "output": [{"type": "reasoning", "summary": [{"text": text}]}, message, call],
    }
    anthropic = {
        "model": text,
        "stop_reason": text,
        "content": [{"type": "thinking", "thinking": text}, {"type": "text", "text": text}],
    }
    google = {
        "modelVersion": text,
        "candidates": [{"finishReason": "STOP", "content": {"parts": [{"text": text}]}}],
    }
    return {
        "openai": openai,
        "openai-responses": responses,
        "anthropic": anthropic,
        "google": google,
    }


def replies(provider: str) -> Behaviour:
    """Echo the key in every way, one after the other."""
    headers = {"X-Echo": KEY, "X-Request": quote(KEY, safe="")}
    escaped = json.dumps(bodies("@")[provider]).replace("@", ESCAPED).encode()
    slashed = json.dumps(bodies(KEY)[provider]).replace("/", "\\/").encode()
    error = {"error": {"message": ECHO, "type": ECHO, "code": KEY}}
    long = {"error": {"message": "." * 480 + KEY}}
    return in_turn(
        response(bodies(ECHO)[provider], headers=headers),
        response(escaped, headers=headers),
        response(slashed),
        response(error, 401, headers=headers),
        response(error, 400),
        response(long, 400),
        response(json.dumps(long).replace("/", "\\/").encode(), 400),
        response(b"", 307, headers={"Location": f"https://x/?key={quote(KEY, safe='')}"}),
        response(KEY.encode(), 403, kind="text/plain"),
        response(error, 404),
    )


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pennyweight", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("provider", ["openai", "openai-responses", "anthropic", "google"])
def test_the_key_is_found_nowhere(
    provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in {"OUR_KEY": KEY, "PENNYWEIGHT_STORE": "store.db", "COLUMNS": "300"}.items():
        monkeypatch.setenv(name, value)
    said: list[str] = []

    def pennyweight(*arguments: str) -> int:
        done = command(*arguments)
        said.extend((done.out, done.err))
        return done.code

    with in_a_thread({"m": replies(provider)}) as served:
        address, seen = served["m"]
        tasks = "\n".join(f'  - {{id: t{i}, input: "2 + 2?", target: "4"}}' for i in range(10))
        subject = f'{{name: m, model: {provider}/m, base_url: "{address}", key_env: OUR_KEY}}'
        text = f"suite: s\ntasks:\n{tasks}\nsubjects: [{subject}]\nlimits: {{concurrency: 1}}\n"
        (tmp_path / "suite.yaml").write_text(text)
        assert pennyweight("run", "suite.yaml", "--dry-run", "--format", "json") == 0
        first = process("run", "suite.yaml", "--record", "tape.jsonl")
        assert first.returncode == 4, first.stderr
        said += [first.stdout, first.stderr]
        with closing(sqlite3.connect(tmp_path / "store.db")) as kept:  # so that the log stays too
            kept.execute("SELECT count(*) FROM pennyweight_record").fetchone()
            assert pennyweight("run", "--resume", "--record", "tape.jsonl") == 4
            for form in ("table", "json", "markdown", "csv"):
                assert pennyweight("show", "--format", form) == 0
                assert pennyweight("runs", "--format", form) == 0
                assert pennyweight("score", "latest", "--format", form) == 0
            for name in ("records.jsonl", "records.csv", "records.parquet"):
                assert pennyweight("export", "latest", "-o", name) == 0
            assert pennyweight("export", "latest") == 0
            assert pennyweight("score", "latest", "--per-task", "measured.jsonl") == 0
            files = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
        assert KEY.encode() in seen[0]  # it was sent

    assert {"store.db", "store.db-wal", "tape.jsonl", "records.csv"} <= {p.name for p in files}
    table = pl.read_parquet(tmp_path / "records.parquet")
    places = {str(path): data for path, data in files.items()}
    places |= {"printed": "".join(said).encode(), "parquet": str(table.to_dicts()).encode()}
    for place, data in places.items():
        found = [trace for trace in traces() if trace in data]
        assert not found, f"{place} holds {found}"
    assert sum(table["status"] == "ok") == 3
    assert "[key]" in "".join(table["response"].drop_nulls())


def test_a_key_written_where_its_variable_belongs_is_not_repeated(tmp_path: Path) -> None:
    subject = f'{{model: openai/m, base_url: "http://127.0.0.1:9", key_env: "{KEY}"}}'
    path = tmp_path / "suite.yaml"
    path.write_text(f"suite: s\ntasks: [{{input: a}}]\nsubjects: [{subject}]\n")
    said = refused("run", path)
    assert "line 3: key_env is not the name of an environment variable" in said
    assert KEY not in said
