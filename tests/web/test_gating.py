"""Gates: to look decides and keeps nothing; a verdict is kept by who may change something."""

import json

import pytest

from web.serving import replayed, serving

TOKEN, READ = "write-0123456789abcdef", "read-0123456789abcdef"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gated")
    run = replayed(folder)
    (folder / "policy.yaml").write_text(
        "policy: release\nthresholds: {blocking: {accuracy: 25%}}\n"
    )
    env = {"ASSAY_TOKEN": TOKEN, "ASSAY_READ_TOKEN": READ}
    with serving(folder, env=env) as server:
        yield server, run


def bearer(token):
    return {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}


def kept(server, run):
    runs = server.json("/api/runs", headers=bearer(READ))[1]["runs"]
    (found,) = [r for r in runs if r["id"] == run]
    return found


def policy(server):
    from re import search

    page = server.get("/gates", headers=bearer(READ))[2]
    return search(r'<option value="([0-9a-f]{16})">', page)[1]


def keep(server, run, token=TOKEN, **where):
    body = json.dumps({"policy": policy(server), **where}).encode()
    path = f"/api/runs/{run}/verdict"
    return server.json(path, method="POST", body=body, headers=bearer(token))


def test_looking_keeps_nothing_and_chooses_nothing(guarded):
    server, run = guarded
    page = server.get(f"/gates?run={run}", headers=bearer(READ))[2]
    assert "Failed: release" not in page
    for token in (READ, TOKEN):
        at = f"/gates?run={run}&policy={policy(server)}&tier=T0"
        assert "Failed: release" in server.get(at, headers=bearer(token))[2]
    assert (kept(server, run)["verdict"], kept(server, run)["verdicts"]) == (None, [])


def test_a_verdict_is_kept_for_each_side_and_the_worst_is_shown(guarded):
    server, run = guarded
    assert keep(server, run, READ, tier="T0")[0] == 403
    assert keep(server, run, tier="T0")[0] == 201
    status, told = keep(server, run, tier="T2")
    assert status == 201
    assert {v["side"]: v["verdict"] for v in told["verdicts"]} == {"T0": "fail", "T2": "pass"}
    assert (told["verdict"], told["side"], told["policy"]) == ("fail", "T0", "release")
    assert "worst of 2" in server.get("/", headers=bearer(READ))[2]
    wrong = {"policy": "none"}
    body = json.dumps(wrong).encode()
    path = f"/api/runs/{run}/verdict"
    assert server.get(path, method="POST", body=body, headers=bearer(TOKEN))[0] == 400
