"""The API is as its description says: no 500, every answer as declared."""

import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from web.serving import replayed, serving

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance"
)
NEVER = {"POST /api/runs", "POST /api/uploads", "POST /api/runs/{run}/stop"}
"""What nothing is found for: no run is begun or under way, no file fits."""


def config(run, suite, policy, mark, record):
    """Let most requests name what is there, else nearly all end at 'no such run'."""
    keys = [["age", "smollm2", "T0", 1], ["steps", "smollm2", "T2", 2]]
    known = {"runs": [run], "keys": [json.dumps(k) for k in keys], "policies": [policy]}
    known |= {"suites": [suite], "sorts": ["latency_ms", ""], "tiers": ["T0", "T2"]}
    known["places"] = ["", json.dumps(keys[0])]
    known |= {"verdicts": ["right", "wrong"], "marks": [mark], "records": [record]}
    known |= {"people": ["Ada"]}
    bound = {"path.run": "runs", "query.key": "keys", "body.key": "keys", "query.sort": "sorts"}
    bound |= {
        "query.after": "places",
        "query.before": "places",
        "body.policy": "policies",
        "body.verdict": "verdicts",
        "body.tier": "tiers",
        "body.mark": "marks",
    }
    lines = [f"[dictionaries.{n}]\nvalues = {json.dumps(v)}" for n, v in known.items()]
    lines.append("[parameters]")
    lines += [f'"{p}" = {{ dictionary = "{n}", probability = 0.75 }}' for p, n in bound.items()]
    lines.append('[[operations]]\ninclude-name = "POST /api/plan"\n[operations.parameters]')
    lines.append('"body.suite" = { dictionary = "suites", probability = 0.75 }')
    lines.append(
        '[[operations]]\ninclude-name = "POST /api/runs/{run}/review"\n[operations.parameters]'
    )
    lines.append('"body.record" = { dictionary = "records", probability = 0.75 }')
    lines.append('"body.who" = { dictionary = "people", probability = 0.75 }')
    return "\n".join(lines)


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    folder = tmp_path_factory.mktemp("described")
    run = replayed(folder, "Is it kind?")
    (folder / "policy.yaml").write_text("policy: p\nthresholds: {blocking: {accuracy: 25%}}\n")
    with serving(folder) as server:
        server.digest(run)
        yield server, run


def test_every_answer_is_as_declared(own, tmp_path):
    program = Path(sys.executable).with_name("schemathesis")
    server, run = own
    suite = server.json("/api/suites")[1][0]["id"]
    policy = re.search(r'<option value="([0-9a-f]{16})">', server.get("/gates")[2])[1]
    asked = server.get(f"/runs/{run}/review?draw=questions&as=me")[2]
    mark = re.search(r'data-mark="([^"]+)"', asked)[1]
    drawn = server.get(f"/runs/{run}/review?as=me")[2]
    record = re.search(r'data-record="([^"]+)"', drawn)[1]
    (tmp_path / "schemathesis.toml").write_text(config(run, suite, policy, mark, record))
    done = subprocess.run(
        [
            *(program, "run", f"{server.address}/openapi.json", "--checks", CHECKS),
            *("--header", f"X-Pennyweight-Csrf: {server.csrf()}", "--phases", "fuzzing"),
            *("--max-examples", "12", "--seed", "1", "--generation-database", "none"),
            *("--request-timeout", "100"),  # a busy machine is no mistake
            *("--report-har-path", "asked.har"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert found(tmp_path / "asked.har", run) >= operations(server) - NEVER


def operations(server):
    """Name every operation that the description has."""
    paths = server.json("/openapi.json")[1]["paths"]
    return {f"{m.upper()} {path}" for path, methods in paths.items() for m in methods}


def found(har, run):
    """Name the operations that found what they were asked for."""
    entries = json.loads(har.read_text("utf-8"))["log"]["entries"]
    paths = {
        (e["request"]["method"], urlsplit(e["request"]["url"]).path)
        for e in entries
        if e["response"]["status"] < 300
    }
    return {f"{method} {path.replace(run, '{run}')}" for method, path in paths}
