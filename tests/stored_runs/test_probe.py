"""A truncation probe of a run: real calls of a server that continues an assistant's message."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import pennyweight
from background import in_background
from cli.command import pennyweight as command
from pennyweight.errors import UsageError

PROMPT = "{{ input }} Think, then write FINAL_ANSWER: and the number."


class Continuing(BaseHTTPRequestHandler):
    """Knows the sum once the chain of thought has it; before that it guesses 0."""

    protocol_version = "HTTP/1.1"
    bodies: list[dict] = []  # noqa: RUF012 - the requests of one test
    fail = False
    pause = 0.0
    replies: dict[str, str] = {}  # noqa: RUF012 - by the last line of the beginning

    def do_POST(self) -> None:
        time.sleep(self.pause)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.bodies.append(body)
        start = body["messages"][-1]
        text = "First we add the two.\nThey make\n12 + 30 = 42\n\nFINAL_ANSWER: 42"
        if start["role"] == "assistant":
            text = " **42**.\nThat is it." if "= 42" in start["content"] else " 0"
            text = self.replies.get(start["content"].rpartition("\n")[2], text)
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 10, "completion_tokens": 5}
        found = {"choices": [{"finish_reason": "stop", "message": message}], "usage": usage}
        out = json.dumps(found).encode()
        self.send_response(500 if self.fail and start["role"] == "assistant" else 200)
        self.send_header("Content-Length", str(len(out)))
        self.end_headers()
        self.wfile.write(out)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENNYWEIGHT_STORE", str(tmp_path / "store.db"))
    Continuing.bodies.clear()
    with in_background(ThreadingHTTPServer(("127.0.0.1", 0), Continuing)) as server:
        yield f"http://127.0.0.1:{server.server_port}/v1"


def suite(address: str, **more: object) -> Path:
    tasks = [{"id": name, "input": f"{name}: 12 + 30?", "target": "42"} for name in "ab"]
    subject = {"name": "m", "model": "openai/m", "base_url": address}
    prices = {"openai/m": {"input": 1, "output": 2}}
    keys = {"suite": "s", "tasks": tasks, "subjects": [subject], "prompt": PROMPT, "seed": 1}
    keys |= {"prices": prices, "settings": {"thinking": "low", "temperature": 0}, **more}
    file = Path(f"s{len(more)}.json")
    file.write_text(json.dumps(keys))
    return file


def test_answers_are_forced_after_each_part_of_the_chain(address: str) -> None:
    first = pennyweight.run(suite(address, limits={"usd": 1}), progress=False)
    assert "reasoning_effort" in Continuing.bodies[0]
    Continuing.bodies.clear()
    made = pennyweight.run(first.id, probe="truncation", progress=False)
    assert made.attempts == made.made == 10
    starts = {body["messages"][-1]["content"] for body in Continuing.bodies}
    assert "\n\nFINAL_ANSWER:" in starts
    assert "First we add the two.\nThey make\n12 + 30 = 42\n\nFINAL_ANSWER:" in starts
    assert len(starts) == 5
    for body in Continuing.bodies:
        assert body["continue_final_message"]
        assert body["add_generation_prompt"] is False
        assert "reasoning_effort" not in body
        assert body["messages"][0]["content"].endswith(PROMPT.removeprefix("{{ input }}"))
    scores = pennyweight.score(made.id, by="tier")
    right = {g.group["tier"]: g.estimates["accuracy"].value for g in scores.groups}
    assert right == {f"probe@{p}%": float(p == 100) for p in (0, 25, 50, 75, 100)}
    area = pennyweight.score(made.id, by="subject")["truncation_aoc"]
    assert area.value == pytest.approx(7 / 8)
    assert area.low < area.value < area.high
    assert made.spent["usd"] == pytest.approx(10 * 20e-6)


def test_a_probe_that_stopped_is_resumed_without_calls_made_twice(address: str) -> None:
    first = pennyweight.run(suite(address), progress=False)
    probe = command("run", first.id, "--probe", "truncation", "--limit", "1")
    assert probe.code == 0, probe.err
    assert "truncation_aoc" in probe.err
    (run, *_) = pennyweight.runs()
    assert run.attempts == 5
    Continuing.bodies.clear()
    again = command("run", "--resume", run.id)
    assert again.code == 0, again.err
    assert not Continuing.bodies


def test_a_probe_that_is_killed_is_continued_and_gives_the_same_area(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [{"id": f"t{i}", "input": f"{i}: 12 + 30?", "target": "42"} for i in range(30)]
    flying, most = 3, 5 * len(tasks)
    given = suite(address, tasks=tasks, limits={"concurrency": flying, "usd": 1})
    first = pennyweight.run(given, progress=False)
    whole = pennyweight.run(first.id, probe="truncation", progress=False)
    monkeypatch.setattr(Continuing, "pause", 0.02)
    Continuing.bodies.clear()
    arguments, kept = ["run", first.id, "--probe", "truncation"], 0
    for kill in range(1, 4):
        before = len(Continuing.bodies)
        process = subprocess.Popen([sys.executable, "-m", "pennyweight", *arguments])
        while process.poll() is None and len(Continuing.bodies) < before + 25:
            time.sleep(0.005)
        process.kill()
        assert process.wait() == -9
        run = pennyweight.runs()[0]
        stored = run.records().height
        assert kept <= stored < most
        assert len(Continuing.bodies) <= stored + kill * flying
        kept, arguments = stored, ["run", "--resume", run.id]
    monkeypatch.chdir(tmp_path.parent)  # a run is continued from any folder
    done = command("run", "--resume", run.id)
    assert done.code == 0, done.err
    assert len(Continuing.bodies) <= most + 3 * flying
    rows = pennyweight.load(run.id).records()
    assert rows.select("tier", "task_id").n_unique() == rows.height == most
    area, other = (
        pennyweight.score(one, by="subject")["truncation_aoc"] for one in (run.id, whole.id)
    )
    assert (area.value, area.records) == (other.value, other.records)


def test_what_cannot_be_probed_is_refused_before_any_call(address: str) -> None:
    first = pennyweight.run(suite(address), tasks=["a"], progress=False)
    calls = len(Continuing.bodies)
    refused = [
        (first.id, {"probe": "other"}, "The probe 'other' is not known"),
        (suite(address), {"probe": "truncation"}, "needs the id of a stored run"),
    ]
    for given, options, words in refused:
        with pytest.raises(UsageError, match=words):
            pennyweight.run(given, progress=False, **options)
    two = pennyweight.run(
        suite(address, tiers={"T0": {}, "T1": {"temperature": 1}}), tasks=["a"], progress=False
    )
    with pytest.raises(UsageError, match=r"one subject in one tier; name it: --tier T0\|T1"):
        pennyweight.run(two.id, probe="truncation", progress=False)
    made = pennyweight.run(two.id, probe="truncation", tiers=["T1"], progress=False)
    assert made.made == 5
    Path("probed_function.py").write_text("def reply(prompt):\n    return 'x\\nFINAL_ANSWER: 4'")
    subjects = ["python:probed_function:reply"]
    function = pennyweight.run(suite(address, subjects=subjects, prices={}, runs=1), progress=False)
    with pytest.raises(UsageError, match="cannot be probed"):
        pennyweight.run(function.id, probe="truncation", progress=False)
    assert len(Continuing.bodies) == calls + 2 + 5


def test_a_run_without_chains_is_refused(address: str) -> None:
    bare = suite(address, answer={"regex": "(?s).*"})
    first = pennyweight.run(bare, progress=False)
    with pytest.raises(UsageError, match="has no chain of thought to cut"):
        pennyweight.run(first.id, probe="truncation", progress=False)


def test_a_probe_is_decided_by_a_policy_and_listed_in_the_order_of_its_cuts(address: str) -> None:
    first = pennyweight.run(suite(address), progress=False)
    made = pennyweight.run(first.id, probe="truncation", progress=False)
    policy = Path("probe.yaml")
    policy.write_text("gates: [{metric: truncation_aoc, threshold: '>= 50%', on: value}]")
    gated = command("gate", made.id, "--policy", str(policy), "--format", "json")
    found = json.loads(gated.out)
    assert (gated.code, found["records"], found["gates"][0]["value"]) == (0, 10, 7 / 8)
    cuts = [f"probe@{p}%" for p in (0, 25, 50, 75, 100)]
    for shown in (("score", made.id, "--by", "tier"), ("compare", made.id)):
        assert re.findall(r"(?m)^(probe@\d+%) +2 ", command(*shown).out) == cuts


@pytest.mark.parametrize(
    ("rule", "prefix", "reply"),
    [
        ("last_number", "FINAL_ANSWER:", " 12 + 30 = 42"),
        ("last_line", "FINAL_ANSWER:", " so it is\n42"),
        ({"last_regex": "[0-9]+"}, "FINAL_ANSWER:", " 12 and 30 make 42"),
        ({"regex": "FINAL_ANSWER: (.*)"}, "FINAL_ANSWER:", " 42\nI added 12 and 30."),
        ("boxed", "FINAL_ANSWER: \\boxed{", "42}$"),
        ({"json": "$.sum"}, "```json", '{"sum": 42}\n```'),
    ],
)
def test_answers_of_a_probe_are_found_by_the_rule_of_the_run(
    address: str, rule: object, prefix: str, reply: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Continuing, "replies", {prefix: reply, "": reply})
    settings = {"temperature": 0, "max_tokens": 700}
    first = pennyweight.run(suite(address, answer=rule, settings=settings), progress=False)
    Continuing.bodies.clear()
    made = pennyweight.run(first.id, probe="truncation", progress=False)
    assert {body["max_tokens"] for body in Continuing.bodies} == {700}
    assert all(prefix in body["messages"][-1]["content"] for body in Continuing.bodies)
    assert pennyweight.score(made.id)["accuracy"].value == 1
