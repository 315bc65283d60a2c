"""Runs against servers that behave badly: each attempt gets its status, the run ends, and nothing
is invented."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cli.command import Result, pennyweight
from models.hostile import (
    GOOD,
    Behaviour,
    endless,
    half_a_head,
    hang,
    in_a_thread,
    in_turn,
    no_http,
    reset,
    response,
)
from pennyweight.engine import limiter
from pennyweight.store.store import Store

SLOW_DOWN = {"error": {"message": "slow down", "type": "rate_limit_error"}}


async def until_a_date(writer: asyncio.StreamWriter) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
    await response(SLOW_DOWN, 429, headers={"Retry-After": date})(writer)


BAD: dict[str, tuple[Behaviour, str, str]] = {
    "limited": (response(SLOW_DOWN, 429), "rate_limit", "HTTP 429): slow down"),
    "limited_1s": (response(SLOW_DOWN, 429, headers={"Retry-After": "1"}), "rate_limit", "429"),
    "a_day": (
        response(SLOW_DOWN, 429, headers={"Retry-After": "86400"}),
        "rate_limit",
        "asks to wait 86,400 s",
    ),
    "broken": (response(b"<html>", 500, "text/html"), "server", "HTTP 500"),
    "empty_503": (response(b"", 503), "server", "HTTP 503"),
    "reset": (reset, "connection", "clos|reset"),
    "half_a_body": (response(length=4000), "connection", "broke off"),
    "half_a_head": (half_a_head, "connection|malformed", ""),
    "no_http": (no_http, "malformed", "not valid HTTP"),
    "cut_json": (response(b'{"choices": [{"mess'), "malformed", "not a JSON"),
    "other_json": (response({"hello": "world"}), "malformed", "no choices"),
    "page": (response(b"<html>4</html>", kind="text/html"), "malformed", "text/html"),
    "hang": (hang, "timeout", "no answer within 1 s"),
    "no_key": (response({"error": {"message": "who?"}}, 401), "auth", "key_env"),
}
"""What a server does for ever, with the kind of the error and what its message says."""

NO_USAGE = {name: value for name, value in GOOD.items() if name != "usage"}

GOOD_IN_THE_END: dict[str, Behaviour] = {
    "after_429": in_turn(response(SLOW_DOWN, 429, headers={"Retry-After": "1"}), response()),
    "after_date": in_turn(until_a_date, response()),
    "after_500": in_turn(response(b"", 500), response()),
    "after_reset": in_turn(reset, response()),
    "plain_text": response(kind="text/plain"),
    "no_usage": response(NO_USAGE),
}


class Ran(NamedTuple):
    result: Result
    records: dict[str, dict[str, Any]]
    calls: dict[str, list[str]]


def suite(folder: Path, addresses: dict[str, str], tasks: int = 1, **more: str) -> Path:
    lines = ["suite: hostile", "tasks:"]
    lines += [f'  - {{id: t{i}, input: "2 + 2?", target: "4"}}' for i in range(tasks)]
    lines += ["subjects:"]
    lines += [
        f'  - {{name: {name}, model: openai/m, base_url: "{address}/v1"}}'
        for name, address in addresses.items()
    ]
    settings = {
        "limits": "{concurrency: 4, timeout: 1}",
        "answer": "last_line",
        "prices": "{openai/m: {input: 1, output: 1}}",
        **more,
    }
    path = folder / "suite.yaml"
    path.write_text("\n".join([*lines, *(f"{k}: {v}" for k, v in settings.items())]) + "\n")
    return path


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """Run one suite against all of them at once, with three tries instead of six."""
    folder = tmp_path_factory.mktemp("hostile")
    behaviours = {**{name: bad[0] for name, bad in BAD.items()}, **GOOD_IN_THE_END}
    with pytest.MonkeyPatch.context() as patch, in_a_thread(behaviours) as served:
        patch.setattr(limiter, "TRIES", 3)
        patch.setattr(limiter, "LIMITED", 0.0)
        address = str(folder / "store.db")
        path = suite(folder, {name: at for name, (at, _) in served.items()})
        result = pennyweight("run", path, "--store", address, "--format", "json", "--by", "subject")
    store = Store(address)
    run = store.find("latest").id
    rows = [row for frame in store.records(run) for row in frame.to_dicts()]
    calls: dict[str, list[str]] = {}
    with store.engine.connect() as connection:
        for name, status in connection.exec_driver_sql(
            "SELECT subject, status FROM pennyweight_call ORDER BY id"
        ):
            calls.setdefault(name, []).append(status)
    yield Ran(result, {row["subject"]: row for row in rows}, calls)
    store.close()


def test_the_run_ends_with_exit_4_and_says_what_failed(ran: Ran) -> None:
    assert ran.result.code == 4, ran.result
    assert "Traceback" not in ran.result.err
    assert "2 rate_limit" in ran.result.err or "3 rate_limit" in ran.result.err
    assert "1 timeout" in ran.result.err
    assert "pennyweight run --resume" in ran.result.err


@pytest.mark.parametrize("name", BAD)
def test_what_was_not_answered_is_an_error_and_no_answer(ran: Ran, name: str) -> None:
    _, kind, says = BAD[name]
    row = ran.records[name]
    assert row["status"] == "error"
    assert row["error_kind"] in kind.split("|")
    assert re.search(says.replace("(", r"\(").replace(")", r"\)"), row["error"]), row["error"]
    for column in ("response", "reasoning", "prompt_tokens", "completion_tokens", "cost_usd"):
        assert row[column] is None, column
    retried = name not in {"no_key", "a_day"}
    assert row["tries"] == len(ran.calls[name]) == (3 if retried else 1)
    assert "ok" not in ran.calls[name]


@pytest.mark.parametrize("name", GOOD_IN_THE_END)
def test_what_was_answered_in_the_end_counts(ran: Ran, name: str) -> None:
    row = ran.records[name]
    assert (row["status"], row["error"], row["response"]) == ("ok", None, "4")
    assert row["tries"] == len(ran.calls[name]) == (2 if name.startswith("after") else 1)
    assert ran.calls[name][-1] == "ok"
    if name in {"after_429", "after_date"}:  # waiting is kept apart from the latency
        assert row["wait_ms"] > 900


def test_no_usage_is_null_and_not_zero(ran: Ran) -> None:
    row = ran.records["no_usage"]
    for column in ("prompt_tokens", "completion_tokens", "cost_usd"):
        assert row[column] is None
    assert ran.records["plain_text"]["cost_usd"] == pytest.approx(6e-6)


def test_errors_are_left_out_of_the_scores(ran: Ran) -> None:
    groups = {g["group"]["subject"]: g for g in ran.result.json["groups"]}
    for name in BAD:
        assert groups[name]["errors"] == 1
        assert groups[name]["metrics"]["accuracy"] is None
    for name in GOOD_IN_THE_END:
        assert groups[name]["errors"] == 0
        assert groups[name]["metrics"]["accuracy"] == 1.0
    assert groups["no_usage"]["metrics"]["cost_usd_mean"] is None


def test_an_endless_body_is_dropped(tmp_path: Path) -> None:
    with in_a_thread({"m": endless}) as served:
        path = suite(tmp_path, {"m": served["m"][0]}, limits="{timeout: 60}")
        assert pennyweight("run", path, "--store", tmp_path / "s.db").code == 4
    store = Store(str(tmp_path / "s.db"))
    (row,) = next(store.records(store.find("latest").id)).to_dicts()
    store.close()
    assert (row["error_kind"], row["tries"], row["response"]) == ("too_large", 1, None)
    assert "larger than 9 MB" in row["error"]


def process(folder: Path, *arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pennyweight", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PENNYWEIGHT_STORE": str(folder / "store.db")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_provider_that_asks_to_wait_a_day_ends_the_run(tmp_path: Path) -> None:
    behaviour = response(SLOW_DOWN, 429, headers={"Retry-After": "86400"})
    with in_a_thread({"m": behaviour}) as served:
        address, seen = served["m"]
        running = process(tmp_path, "run", suite(tmp_path, {"m": address}, tasks=200))
        _, said = running.communicate(timeout=60)
        assert running.returncode == 4, said
        assert "asks to wait 86,400 s" in said
        assert "pennyweight run --resume" in said
        assert len(seen) <= 4  # who was under way; nobody knocks again
    assert _status(tmp_path) in {"stopped", "failed"}


def test_a_refused_key_does_not_fail_a_thousand_times(tmp_path: Path) -> None:
    behaviour = response({"error": {"message": "no such key", "code": "invalid_api_key"}}, 401)
    with in_a_thread({"m": behaviour}) as served:
        address, seen = served["m"]
        running = process(tmp_path, "run", suite(tmp_path, {"m": address}, tasks=1000))
        _, said = running.communicate(timeout=60)
        assert running.returncode == 4, said
        assert "refused 10 calls in a row" in said
        assert len(seen) < 20


def test_ctrl_c_does_not_wait_for_a_limited_provider(tmp_path: Path) -> None:
    behaviour = response(SLOW_DOWN, 429, headers={"Retry-After": "290"})
    with in_a_thread({"m": behaviour}) as served:
        address, seen = served["m"]
        running = process(tmp_path, "run", suite(tmp_path, {"m": address}, tasks=200))
        try:
            _wait_for(seen)
            running.send_signal(signal.SIGINT)
            _, said = running.communicate(timeout=30)
        finally:
            running.kill()
        assert running.returncode == 130, said
        assert "pennyweight run --resume" in said


def _wait_for(seen: list[bytes]) -> None:
    """Wait for a call, and for its answer to have arrived."""
    end = time.monotonic() + 30
    while not seen and time.monotonic() < end:
        time.sleep(0.02)
    assert seen, "no call came"
    time.sleep(0.5)


def _status(folder: Path) -> str:
    store = Store(str(folder / "store.db"))
    try:
        return store.find("latest").status
    finally:
        store.close()


def test_a_setting_that_is_not_sent_is_told_before_the_first_call(tmp_path: Path) -> None:
    good = {"type": "message", "content": [{"type": "text", "text": "4"}], "model": "m"}
    with in_a_thread({"m": response(good)}) as served:
        path = suite(tmp_path, {"m": served["m"][0].removesuffix("/v1")}, seed="3")
        path.write_text(path.read_text().replace("openai/m", "anthropic/m").replace("/v1", ""))
        result = pennyweight("run", path, "--store", tmp_path / "s.db", "--format", "json")
    assert result.code == 0, result.err
    lines = result.err.splitlines()
    told = [i for i, line in enumerate(lines) if "m ignores seed" in line]
    began = next(i for i, line in enumerate(lines) if line.startswith("Run "))
    assert len(told) == 1
    assert told[0] < began


def test_an_unknown_price_is_told_once(tmp_path: Path) -> None:
    with in_a_thread({"m": response()}) as served:
        address = served["m"][0]
        path = suite(tmp_path, {"a": address, "b": address}, tasks=3, prices="{}")
        result = pennyweight("run", path, "--store", tmp_path / "s.db", "--format", "json")
        limited = path.read_text().replace("timeout: 1", "timeout: 1, usd: 1.0")
        path.write_text(limited)
        refused = pennyweight("run", path, "--store", tmp_path / "s.db")
    assert result.code == 0, result.err
    assert result.err.count("The price of openai/m is not known") == 1
    assert all(g["metrics"]["cost_usd_mean"] is None for g in result.json["groups"])
    assert refused.code == 2
    assert "limits.usd cannot be enforced" in refused.err


def test_a_budget_holds_for_a_server_that_does_not_say_what_it_took(tmp_path: Path) -> None:
    with in_a_thread({"m": response(NO_USAGE)}) as served:
        address, seen = served["m"]
        limits, settings = "{concurrency: 4, tokens: 400}", "{max_tokens: 10}"
        path = suite(tmp_path, {"m": address}, tasks=100, limits=limits, settings=settings)
        result = pennyweight("run", path, "--store", tmp_path / "s.db")
        assert result.code == 4, result.err
        told = f"Token limit reached: 0 of 400 tokens used, and {len(seen) * 32} tokens reserved"
        assert f"{told} for calls that reported no usage" in result.err
        assert "Raise the limits in the suite, then: pennyweight" in result.err
        assert 4 < len(seen) <= 400 // 32  # "2 + 2?" may be 6 tokens, 16 around it, 10 out


def test_a_plan_in_every_format(tmp_path: Path) -> None:
    path = suite(tmp_path, {"a": "http://127.0.0.1:9", "b": "http://127.0.0.1:9"}, tasks=3)
    found = pennyweight("run", path, "--dry-run", "--format", "json").json
    assert found["attempts"] == 6
    assert [side["subject"] for side in found["plan"]] == ["a", "b"]
    assert found["cost_usd"] is None  # there is no limit of output tokens
    assert found["plan"][0]["example"] == [{"role": "user", "content": "2 + 2?"}]
    assert found["plan"][0]["price_source"] == "suite"
    csv = pennyweight("run", path, "--dry-run", "--format", "csv").out.splitlines()
    assert csv[0] == "subject,tier,attempts,prompt_tokens,output_tokens,cost_usd"
    assert csv[1] == f"a,T0,3,{found['plan'][0]['prompt_tokens']},,"
    markdown = pennyweight("run", path, "--dry-run", "--format", "markdown").out
    assert markdown.startswith("| subject | tier |")
    assert "6 attempts" in pennyweight("run", path, "--dry-run").out
    assert not (tmp_path / ".pennyweight").exists()


def test_a_dry_run_of_a_resumed_run_calls_nothing(tmp_path: Path) -> None:
    with in_a_thread({"m": in_turn(response(b"{}", 400), response())}) as served:
        address, seen = served["m"]
        path = suite(tmp_path, {"m": address})
        assert pennyweight("run", path, "--store", tmp_path / "s.db").code == 4
        plan = pennyweight("run", "--resume", "--dry-run", "--store", tmp_path / "s.db")
        assert plan.code == 0, plan.err
        assert "1 to retry" in plan.err
        assert len(seen) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is missing")
def test_a_recording_on_a_full_disk_stops_the_run_and_loses_no_answer(tmp_path: Path) -> None:
    with in_a_thread({"m": response()}) as served:
        address, seen = served["m"]
        path = suite(tmp_path, {"m": address}, tasks=200)
        running = process(tmp_path, "run", path, "--record", "/dev/full")
        _, said = running.communicate(timeout=60)
        assert running.returncode == 4, said
        assert "/dev/full can no longer be written: No space left on device" in said
        assert "Traceback" not in said
        assert 0 < len(seen) < 200
    store = Store(str(tmp_path / "store.db"))
    made = sum(frame.height for frame in store.records(store.find("latest").id))
    store.close()
    assert made == len(seen)


def test_a_recording_that_cannot_be_made_is_refused_before_the_first_call(tmp_path: Path) -> None:
    with in_a_thread({"m": response()}) as served:
        address, seen = served["m"]
        path = suite(tmp_path, {"m": address})
        result = pennyweight("run", path, "--record", tmp_path, "--store", tmp_path / "s.db")
        assert result.code == 2
        assert f"--record {tmp_path}: the file cannot be written" in result.err
        assert not seen
    assert not (tmp_path / "s.db").exists()
