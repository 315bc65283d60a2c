"""The API: what the page can do, a program can do."""

import json
import re
import subprocess
import sys
import time

import pytest

from web.serving import replayed, serving


def until(ask, holds):
    """Ask again until it holds."""
    end = time.monotonic() + 120
    while not holds(found := ask()):
        assert time.monotonic() < end, found
        time.sleep(0.1)
    return found


def key(task="age", tier="T0", attempt=1):
    return json.dumps([task, "smollm2", tier, attempt])


def quoted(text):
    from urllib.parse import quote

    return quote(text, safe="")


def test_runs_and_their_scores(site):
    server, run = site
    digest = server.digest(run)
    assert digest["whole"]["records"] == 192
    listed = server.json("/api/runs")[1]["runs"]
    found = next(r for r in listed if r["id"] == run)
    sides = {s["name"]: s["estimates"]["pass_rate"] for s in digest["sides"]}  # it has checks
    best = max(sides, key=lambda name: sides[name][0])
    assert [found["value"], found["low"], found["high"]] == sides[best][:3]
    assert found["sides"][0]["name"] == best
    assert {s["name"] for s in found["sides"]} == set(sides)
    assert found["metric"] == "pass_rate"


def pages(server, run, query=""):
    rows, after = [], ""
    while True:
        at = f"/api/runs/{run}/records?limit=50{query}" + (f"&after={quoted(after)}" * bool(after))
        page = server.json(at)[1]
        rows += page["records"]
        after = page["after"]
        if not after:
            return rows


def test_records_are_paged_filtered_and_counted(site):
    server, run = site
    server.digest(run)
    rows = pages(server, run)
    assert len(rows) == 192
    names = [(r["task_id"], r["subject"], r["tier"], r["attempt"]) for r in rows]
    assert names == sorted(set(names))
    right = pages(server, run, "&correct=yes")
    assert [r["task_id"] for r in right] == [r["task_id"] for r in rows if r["correct"]]
    assert 0 < len(right) < 192
    slow = pages(server, run, "&latency_ms_min=9000&tier=T1")
    assert [r["task_id"] for r in slow] == [
        r["task_id"] for r in rows if r["tier"] == "T1" and r["latency_ms"] >= 9000
    ]
    count = server.json(f"/api/runs/{run}/count?correct=yes")[1]
    assert count == {"count": len(right), "more": False}
    apples = pages(server, run, "&q=BASKET%20holds")
    assert {r["task_id"] for r in apples} == {"apples"}
    assert pages(server, run, "&q=100%25_%21") == []
    last = server.json(f"/api/runs/{run}/records?last=true&limit=10")[1]
    assert [r["task_id"] for r in last["records"]] == [n[0] for n in names[-10:]]
    before = server.json(f"/api/runs/{run}/records?limit=10&before={quoted(last['before'])}")[1]
    assert [r["attempt"] for r in before["records"]] == [n[3] for n in names[-20:-10]]


def test_records_are_sorted(site):
    server, run = site
    server.digest(run)
    rows = pages(server, run)
    slow = pages(server, run, "&sort=latency_ms&order=down")
    assert [r["latency_ms"] for r in slow] == sorted((r["latency_ms"] for r in rows), reverse=True)
    names = lambda found: [(r["task_id"], r["tier"], r["attempt"]) for r in found]  # noqa: E731
    right = pages(server, run, "&sort=correct&tier=T1")
    ordered = sorted((r for r in rows if r["tier"] == "T1"), key=lambda r: r["correct"])
    assert names(right) == names(ordered)
    last = server.json(f"/api/runs/{run}/records?sort=latency_ms&last=true&limit=5")[1]
    assert [r["latency_ms"] for r in last["records"]] == [r["latency_ms"] for r in slow[4::-1]]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/runs/{run}/records?sort=input", 400),
        ("/api/runs/{run}/records?sort=latency_ms&order=left", 400),
        (
            "/api/runs/{run}/records?sort=latency_ms&after=%5B%22a%22%2C%22b%22%2C%22c%22%2C1%5D",
            400,
        ),
        (
            "/api/runs/{run}/records?sort=correct&after=%5B1%2C%22a%22%2C%22b%22%2C%22c%22%2C1%5D",
            400,
        ),
        ("/api/runs/none", 404),
        ("/api/runs/" + "x" * 300, 404),
        ("/api/runs/{run}/records?correct=maybe", 400),
        ("/api/runs/{run}/records?latency_ms_min=x", 400),
        ("/api/runs/{run}/records?latency_ms_min=nan", 400),
        ("/api/runs/{run}/records?after=x", 400),
        ("/api/runs/{run}/records?limit=0", 422),
        ("/api/runs/{run}/record?key=%5B%22a%22%2C%22b%22%2C%22c%22%2C1%5D", 404),
        ("/api/runs/{run}/record?key=%5B%22%5Cud800%22%2C%22b%22%2C%22c%22%2C1%5D", 404),
        ("/api/runs/{run}/record?key=" + "%5B" * 1900, 400),
        ("/api/nothing", 404),
    ],
)
def test_what_is_wrong_is_told(site, path, status):
    server, run = site
    code, told = server.json(path.format(run=run))
    assert code == status
    assert told["detail"]


def test_a_verdict_is_kept_with_who_and_when(site):
    server, run = site
    body = {"key": key("birds"), "verdict": "wrong", "note": "off by\0 one", "who": "Ada"}
    status, told = server.post(f"/api/runs/{run}/record/remarks", body)
    assert status == 201
    (remark,) = told["remarks"]
    assert (remark["verdict"], remark["note"], remark["who"]) == ("wrong", "off by one", "Ada")
    assert remark["at"] <= time.time()
    nothing = server.post(f"/api/runs/{run}/record/remarks", {"key": key("birds")})
    assert nothing[0] == 400
    status, told = server.post(f"/api/runs/{run}/remarks", {"tags": ["first", ""], "who": "Ada"})
    assert (status, told["tags"]) == (201, ["first"])


def test_keys_are_never_told(filled):
    secret = "sk-very-secret-value"
    with serving(filled[0], env={"OPENAI_API_KEY": secret}) as server:
        found = {p["name"]: p["ready"] for p in server.json("/api/providers")[1]}
        assert found["openai"] is True
        for path in ("/new", "/api/providers", "/openapi.json"):
            assert secret not in server.get(path)[2]


def test_a_run_is_planned_started_and_seen_to_its_end(tmp_path):
    replayed(tmp_path)
    with serving(tmp_path) as server:
        (suite,) = server.json("/api/suites")[1]
        form = {"suite": suite["id"], "tiers": ["T0", "T2"], "runs": 1}
        status, plan = server.post("/api/plan", form)
        assert (status, plan["attempts"], plan["unsound"]) == (200, 64, [])
        status, made = server.post("/api/runs", form)
        assert status == 201
        state = until(
            lambda: server.json(f"/api/runs/{made['run']}")[1],
            lambda s: s["status"] == "done" and not s["here"],
        )
        assert (state["made"], state["errors"]) == (64, 0)
        events = server.get(f"/api/runs/{made['run']}/events?once=true")[2]
        assert json.loads(events.removeprefix("data: "))["made"] == 64
        assert server.post(f"/api/runs/{made['run']}/stop", {})[0] == 400
        rows = pages(server, made["run"])
        assert {r["tier"] for r in rows} == {"T0", "T2"}


def test_a_run_is_stopped_and_resumed(tmp_path):
    from engine.serving import server as model_server
    from engine.serving import suite as written

    with model_server(0.05) as address:
        written(tmp_path, address, tasks=400, limits="{concurrency: 4}")
        with serving(tmp_path) as server:
            (suite,) = server.json("/api/suites")[1]
            run = server.post("/api/runs", {"suite": suite["id"]})[1]["run"]
            ask = lambda: server.json(f"/api/runs/{run}")[1]  # noqa: E731
            until(ask, lambda s: s["made"] > 0)
            assert server.post(f"/api/runs/{run}/stop", {})[0] == 202
            state = until(ask, lambda s: not s["here"])
            assert state["status"] == "stopped"
            assert 0 < state["made"] < 400
            assert server.post(f"/api/runs/{run}/resume", {})[0] == 202
            state = until(ask, lambda s: s["status"] == "done" and not s["here"])
            assert state["made"] == 400


def test_a_plan_says_what_is_unsound(tmp_path):
    text = UPLOAD.replace("local/smollm2-135m", "openai/gpt-5-mini")
    twice = text.replace("]\nsubj", ', {id: b, input: "1+1", target: "2"}]\nsubj')
    (tmp_path / "suite.yaml").write_text(twice, encoding="utf-8")
    with serving(tmp_path, env={"OPENAI_API_KEY": "sk-none"}) as server:
        (suite,) = server.json("/api/suites")[1]
        (said,) = server.post("/api/plan", {"suite": suite["id"]})[1]["unsound"]
        assert "'b' is the same task as 'a'" in said


UPLOAD = """
suite: up
tasks: [{id: a, input: "1+1", target: "2"}]
subjects: [local/smollm2-135m]
"""


def upload(server, body, query="kind=suite"):
    given = {"Content-Type": "application/octet-stream", "X-Pennyweight-Csrf": server.csrf()}
    return server.json(f"/api/uploads?{query}", method="POST", body=body, headers=given)


def test_a_suite_and_a_data_set_are_uploaded(tmp_path):
    with serving(tmp_path) as server:
        status, made = upload(server, UPLOAD.encode())
        assert status == 201
        assert server.post("/api/plan", {"suite": made["suite"]})[1]["attempts"] == 1
        rows = b'{"id": "a", "input": "1+1", "target": "2"}\n' * 1
        query = "kind=jsonl&subject=local/smollm2-135m&name=mine&answer=last_number"
        status, made = upload(server, rows, query)
        assert status == 201
        plan = server.post("/api/plan", {"suite": made["suite"]})[1]
        assert (plan["suite"], plan["attempts"]) == ("mine", 1)
        assert [s["uploaded"] for s in server.json("/api/suites")[1]] == [True, True]


@pytest.mark.parametrize(
    "more",
    [
        "tasks: /etc/passwd",
        "tasks: {from: /etc/passwd}",
        "subjects: [{name: x, command: id}]",
        "subjects: ['python:os:system']",
        "subjects: [local//etc/passwd.gguf]",
        "subjects: [{name: x, model: local/~root/x.gguf}]",
        "subjects: [litellm/ollama/x]",
        "subjects: ['replay:/etc/passwd']",
        "tasks: hf:owner/name",
        "judge: local//etc/passwd.gguf",
        "judge: {models: local/smollm2-135m, more: [local/~/x.gguf]}",
        "tiers: {T0: {files: {a: /etc/passwd}}}",
        "workspace: /etc",
        "tasks: [{id: a, input: x, must_not: [{not_python: 'os:system'}]}]",
        "subjects: [{model: openai/x, base_url: 'http://evil.example', key_env: HOME}]",
        "tiers: {T0: {examples: /etc/passwd}}",
        "tasks: [{id: a, input: x, checks: [{command: id}]}]",
        "tasks: [{id: a, input: x, checks: [{python: 'os:system'}]}]",
        "judge: {models: local/smollm2-135m, rubric: /etc/passwd}",
        "just text",
        "[" * 5000,
    ],
)
def test_an_upload_may_not_reach_beyond_its_data(site, more):
    server, _ = site
    name = more.partition(":")[0]
    kept = [line for line in UPLOAD.strip().splitlines() if not line.startswith(name)]
    body = "\n".join([*kept, more]) if ":" in more else more
    status, told = upload(server, body.encode())
    assert status == 400, told
    assert "/tmp" not in str(told["detail"])


@pytest.mark.parametrize(("query", "most"), [("kind=suite", 2_000_000), ("kind=csv", 50_000_000)])
def test_an_upload_is_capped(site, query, most):
    server, _ = site
    status, told = upload(server, b"x" * (most + 1), query)
    assert status == 413
    assert f"{most:,}" in told["detail"]


def test_an_upload_learns_nothing_about_files(site, tmp_path):
    server, _ = site
    there = tmp_path / "there.gguf"
    there.write_bytes(b"GGUF")
    told = []
    for path in (there, tmp_path / "none.gguf"):
        for line in (f"subjects: [local/{path}]", f"judge: local/{path}"):
            kept = UPLOAD.replace("subjects", "#") if line.startswith("subjects") else UPLOAD
            status, said = upload(server, f"{kept}{line}\n".encode())
            assert status == 400
            assert "may not name" in said["detail"]
            told.append(re.sub("'local/[^']*'", "", said["detail"]))
    assert told[:2] == told[2:]


def test_nothing_is_left_of_an_upload_that_is_refused(tmp_path):
    with serving(tmp_path) as server:
        assert upload(server, b"just text")[0] == 400
        assert upload(server, b"x" * 3_000_000)[0] == 413
        assert list((tmp_path / ".pennyweight" / "uploads").iterdir()) == []


def test_words_that_look_like_calls_are_only_words(site):
    server, _ = site
    task = {"id": "a", "input": "python: what is a list?", "target": "command: none", "from": "me"}
    body = f"suite: up\ntasks: [{json.dumps(task)}]\nsubjects: [local/smollm2-135m]\n"
    status, made = upload(server, body.encode())
    assert (status, "suite" in made) == (201, True)


def test_a_data_set_may_not_name_code(site):
    server, _ = site
    for check in ({"python": "os:getcwd"}, {"not_python": "os:getcwd"}, {"command": "id"}):
        rows = json.dumps({"id": "a", "input": "x", "checks": [check]}).encode()
        status, told = upload(server, rows, "kind=jsonl&subject=local/smollm2-135m")
        assert status == 400, told


def test_an_upload_has_a_limit_of_time(site):
    server, _ = site
    loop = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    status, told = upload(server, f"{UPLOAD}prompt: '{loop}'\n".encode())
    assert status == 400
    assert "the template takes longer than 5 seconds" in told["detail"]
    assert server.get("/api/runs")[0] == 200


def test_what_is_not_in_a_suite_is_named(site):
    server, _ = site
    suite = server.json("/api/suites")[1][0]["id"]
    for name, known in (("tiers", "T0, T1, T2"), ("subjects", "smollm2")):
        for path in ("/api/plan", "/api/runs"):
            status, told = server.post(path, {"suite": suite, name: ["NOPE"]})
            assert status == 400
            assert "'NOPE'" in told["detail"]
            assert known in told["detail"]


def test_a_plan_is_refused_where_the_start_is(tmp_path):
    text = UPLOAD.replace(
        "local/smollm2-135m", "{model: openai/our-own, base_url: 'http://127.0.0.1:9'}"
    )
    (tmp_path / "suite.yaml").write_text(text.replace('"2"', "010"))
    with serving(tmp_path) as server:
        (suite,) = server.json("/api/suites")[1]
        for path in ("/api/plan", "/api/runs"):
            status, told = server.post(path, {"suite": suite["id"], "usd": 0.5})
            assert status == 400
            assert "price" in str(told["detail"])
        assert server.post("/api/plan", {"suite": suite["id"]})[0] == 200


def test_tags_of_two_windows_come_together(tmp_path):
    run = replayed(tmp_path)
    with serving(tmp_path) as server:
        say = lambda **body: server.post(f"/api/runs/{run}/remarks", body)  # noqa: E731
        assert say(add=["a", "b"])[1]["tags"] == ["a", "b"]
        assert say(add=["c"])[1]["tags"] == ["a", "b", "c"]
        assert say(remove=["a"], note="n")[1]["tags"] == ["b", "c"]
        assert say(note="only a note")[1]["tags"] == ["b", "c"]
        assert say(who="Ada")[0] == 400


def test_a_run_that_was_killed_is_interrupted_and_resumed(tmp_path):
    from engine.serving import server as model_server
    from engine.serving import suite as written
    from pennyweight.store.store import Store

    with model_server(0.05) as address, serving(tmp_path) as server:
        written(tmp_path, address, tasks=300, limits="{concurrency: 2}")
        process = subprocess.Popen(
            [sys.executable, "-m", "pennyweight", "run", "suite.yaml"],
            cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        (run,) = until(lambda: server.json("/api/runs")[1]["runs"], len)
        ask = lambda: server.json(f"/api/runs/{run['id']}")[1]  # noqa: E731
        assert until(ask, lambda s: s["made"] > 0)["status"] == "running"
        process.kill()
        process.wait()
        store = Store(str(tmp_path / ".pennyweight" / "pennyweight.db"))
        store.set_run(run["id"], created=run["created"] - 60)  # it is not just beginning
        store.close()
        assert ask()["status"] == "interrupted"
        assert server.json("/api/runs")[1]["runs"][0]["status"] == "interrupted"
        page = server.get(f"/runs/{run['id']}")[2]
        assert "data-resume>Resume" in page
        assert "ended unexpectedly" in page
        assert server.post(f"/api/runs/{run['id']}/resume", {})[0] == 202
        state = until(ask, lambda s: s["status"] == "done" and not s["here"])
        assert state["made"] == 300


def test_a_run_is_renamed_and_archived_and_only_a_finished_one_deleted(site):
    server, run = site
    status, found = server.post(f"/api/runs/{run}/label", {"title": "Nightly", "archived": True})
    assert (status, found["title"], found["archived"]) == (201, "Nightly", True)
    assert run not in server.get("/")[2]
    assert "Nightly" in server.get("/?archived=1")[2]
    _, found = server.post(f"/api/runs/{run}/label", {"title": "", "archived": False})
    assert (found["title"], found["archived"]) == (None, False)
    assert server.get(f"/api/runs/{run}", method="DELETE")[0] == 403  # no CSRF value
    headers = {"X-Pennyweight-Csrf": server.csrf()}
    assert server.get("/api/runs/nope", method="DELETE", headers=headers)[0] == 404
    assert server.get(f"/runs/{run}")[0] == 200
