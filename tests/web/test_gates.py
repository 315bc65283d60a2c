"""Gates: to look decides and keeps nothing; a verdict is kept by who may change something."""

import json
import re
from contextlib import closing
from types import SimpleNamespace

import pytest

from pennyweight.api.gate import gate, gate_run, side_count
from pennyweight.store.connection import DEFAULT
from pennyweight.store.store import Store
from pennyweight.web import gates
from pennyweight.web.gates import MAX_CHOICES
from store.samples import call, record
from store.samples import run as stored_run
from web.serving import command, replayed, serving

TOKEN, READ = "write-0123456789abcdef", "read-0123456789abcdef"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gated")
    run = replayed(folder)
    (folder / "policy.yaml").write_text(
        "policy: release\nthresholds: {blocking: {accuracy: 25%}}\n"
    )
    env = {"PENNYWEIGHT_TOKEN": TOKEN, "PENNYWEIGHT_READ_TOKEN": READ}
    with serving(folder, env=env) as server:
        server.folder = folder
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


def test_a_verdict_on_a_whole_run_names_no_side(tmp_path):
    rows = [{"task_id": f"t{n}", "passed": n > 3} for n in range(9)]
    (tmp_path / "records.jsonl").write_text("\n".join(map(json.dumps, rows)))
    command("import", "records.jsonl", "--as", "one", folder=tmp_path)
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(
            f"policy: {name}\nthresholds: {{blocking: {{pass_rate: 5%}}}}\n"
        )
        command("gate", "one", "--policy", f"{name}.yaml", folder=tmp_path)
    with serving(tmp_path) as server:
        assert "<br>worst of 2" in server.get("/")[2]


def test_a_verdict_is_kept_for_each_side_and_the_worst_is_shown(guarded):
    server, run = guarded
    assert keep(server, run, READ, tier="T0")[0] == 403
    assert keep(server, run, tier="T0")[0] == 201
    status, told = keep(server, run, tier="T2")
    assert status == 201
    assert {v["side"]: v["verdict"] for v in told["verdicts"]} == {"T0": "fail", "T2": "pass"}
    assert (told["verdict"], told["side"], told["policy"]) == ("fail", "T0", "release")
    assert "worst of 2" in server.get("/", headers=bearer(READ))[2]
    page = server.get(f"/gates?run={run}", headers=bearer(READ))[2]
    assert "Saved verdicts</h2>" in page
    shown = server.get(f"/runs/{run}", headers=bearer(READ))[2]
    for told in (page, shown):  # with the policy, the day and a link
        rows = re.findall(r'<a href="(/gates\?[^"]*)">release</a>.*?</tr>', told)
        assert {row.rpartition("=")[2] for row in rows} == {"T0", "T2"}
        assert re.search(r"<td>20\d\d-\d\d-\d\d \d\d:\d\d UTC</td>", told)
    wrong = {"policy": "none"}
    body = json.dumps(wrong).encode()
    path = f"/api/runs/{run}/verdict"
    assert server.get(path, method="POST", body=body, headers=bearer(TOKEN))[0] == 400


def _same_alone(server, run):
    """A side that is opened by itself has the verdict and the interval that it has in the grid."""
    with closing(Store(str(server.folder / DEFAULT))) as store:
        found, path = store.find(run), server.folder.with_suffix(".yaml")
        path.write_text("policy: sure\non: confident\nthresholds: {accuracy: 25%}\n")
        together = gate_run(store, found, path, where={})
        assert len(together.sides) == side_count(found) == 3
        for side in together.sides:
            alone = gate_run(store, found, path, where=side.side)
            assert alone.gates == side.verdict.gates
            weaker = gate(run, path, where=side.side, store=store)
            assert weaker.gates != alone.gates
    page = server.get(f"/gates?run={run}&policy={policy(server)}&tier=T0", headers=bearer(READ))[2]
    assert "one of the 3 sides" not in page, "gates on the value share no error rate"
    assert "Gates by value compare the value alone with the threshold" in page


def test_all_sides_are_decided_together_as_the_command_does(guarded):
    server, run = guarded
    page = server.get(f"/gates?run={run}&policy={policy(server)}", headers=bearer(READ))[2]
    grid = re.search(r'<table class="gates">(.*?)</table>', page, re.DOTALL)[1]
    rows = re.findall(r"<tr><th scope=\"row\">(.*?)</tr>", grid, re.DOTALL)
    shown = {
        re.search(r"<bdi>(.*?)</bdi>", r)[1]: re.search(r'tag \w+">(\w+)<', r)[1] for r in rows
    }
    told = command("gate", run, "--policy", "policy.yaml", "--each", "tier", "--format", "json",
                   folder=server.folder, check=False)  # fmt: skip
    words = {"pass": "Passed", "fail": "Failed", "inconclusive": "Inconclusive"}
    sides = json.loads(told.stdout)["sides"]
    assert shown == {side["name"]: words[side["verdict"]] for side in sides}
    assert len(shown) == 3
    _same_alone(server, run)
    status, saved = keep(server, run)
    assert status == 201
    assert {v["side"] for v in saved["verdicts"]} == {"T0", "T1", "T2"}


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """A server of two runs, a kept baseline, two policies, and files that only look like one."""
    folder = tmp_path_factory.mktemp("compared")
    first = replayed(folder)
    command("run", "sums/suite.yaml", "--format", "json", folder=folder)
    command("baseline", "set", "main", first, "--where", "tier=T0", folder=folder)
    (folder / "no-worse.yaml").write_text(
        "policy: no worse\ngates:\n  - {metric: accuracy, no_worse_than: 5%}\n"
    )
    (folder / "all.yaml").write_text(
        "policy: all\nthresholds: {blocking: {pass_rate: 1%, safety_rate: 90%}}\n"
        "weights: {by_category: {add: 5}}\nrequired_scenarios: [age, HAPPY-001]\n"
    )
    (folder / "action.yml").write_text("inputs:\n  policy: {default: x}\n  gates:\n    x: 1\n")
    schema = {"$schema": "x", "properties": {"thresholds": {}}, "thresholds": {}}
    (folder / "policy.schema.json").write_text(json.dumps(schema, indent=2))
    (folder / "deep.json").write_text(json.dumps({"a": {"thresholds": {}}}, indent=2))
    with serving(folder) as server:
        newest = server.json("/api/runs")[1]["runs"][0]["id"]
        yield server, first, newest, folder


def offered(server, field, query=""):
    page = server.get(f"/gates{query}")[2]
    list_ = re.search(rf'<select name="{field}">(.*?)</select>', page, re.DOTALL)[1]
    return dict(re.findall(r'<option value="([^"]+)"[^>]*>([^<]*)', list_))


def named(server, name):
    return next(i for i, n in offered(server, "policy").items() if n.endswith(name))


def test_only_policies_are_offered_and_one_has_to_be_chosen(compared):
    server, first, *_ = compared
    names = {n.rpartition("/")[2] for n in offered(server, "policy").values()}
    assert names == {"no-worse.yaml", "all.yaml"}
    assert "Choose a policy, then click Decide." in server.get(f"/gates?run={first}")[2]


def test_a_policy_that_compares_is_decided_against_a_chosen_baseline(compared):
    server, first, newest, folder = compared
    policy = named(server, "no-worse.yaml")
    at = f"/gates?run={newest}&tier=T0&policy={policy}"
    asked = server.get(at)[2]
    assert "This policy compares with a baseline. Choose one" in asked
    assert "--baseline" not in asked
    known = offered(server, "baseline", f"?run={newest}")
    assert {*known} == {"kept:main", f"run:{first}"}
    for baseline in known:
        page = server.get(f"{at}&baseline={baseline}")[2]
        assert "compared with" in page
        assert f'data-baseline="{baseline}"' in page
    told = command("gate", newest, "--policy", "no-worse.yaml", "--where", "tier=T0",
                   "--baseline", "main", "--format", "json",
                   folder=folder, check=False)  # fmt: skip
    word = json.loads(told.stdout)["verdict"]
    body = {"policy": policy, "tier": "T0", "baseline": "kept:main"}
    status, kept_ = server.post(f"/api/runs/{newest}/verdict", body)
    assert (status, kept_["verdict"]) == (201, word)
    for wrong in ("kept:none", "run:none", "none"):
        assert server.get(f"{at}&baseline={wrong}")[0] in {200, 404}
        assert server.post(f"/api/runs/{newest}/verdict", {**body, "baseline": wrong})[0] >= 400


def test_what_did_not_run_is_no_link_and_numbers_say_what_they_are(compared):
    server, first, *_ = compared
    page = server.get(f"/gates?run={first}&tier=T0&policy={named(server, 'all.yaml')}")[2]
    assert "task_id=HAPPY-001" not in page
    assert "HAPPY-001" in page
    assert "No record counts for it: Share of the adversarial scenarios" in page
    assert "needs passed and category" not in page
    assert "pass_rate (weighted)" in page
    assert "confidence intervals in brackets decide nothing." in page


def test_a_mistake_in_a_policy_names_the_file_without_its_folder(compared):
    server, first, _, folder = compared
    (folder / "wrong.yaml").write_text("thresholds: {blocking: {no_such_metric: 80%}}\n")
    try:
        page = server.get(f"/gates?run={first}&tier=T0&policy={named(server, 'wrong.yaml')}")[2]
    finally:
        (folder / "wrong.yaml").unlink()
    assert "wrong.yaml, line 1: " in page
    assert f"{folder}/wrong.yaml" not in page


def test_a_run_that_is_too_old_for_the_list_of_choices_stays_the_chosen_one(tmp_path):
    store = Store(str(tmp_path / ".pennyweight" / "pennyweight.db"))
    names = [f"20260101-000000-{i:04}" for i in range(MAX_CHOICES + 2)]
    for i, name in enumerate(names):
        store.add_run(stored_run(name, created=float(i), status="done"))
    store.close()
    (tmp_path / "policy.yaml").write_text("thresholds: {blocking: {accuracy: 25%}}\n")
    with serving(tmp_path) as server:
        for chosen in (names[0], names[-1]):
            text = server.get(f"/gates?run={chosen}&baseline=run:{names[1]}")[2]
            assert re.findall(r'value="([^"]*)" selected', text) == [chosen, f"run:{names[1]}"]


def test_a_decision_is_remembered_until_something_changes(tmp_path, monkeypatch):
    store = Store(str(tmp_path / "store.db"))
    for name in ("old", "new"):
        store.add_run(stored_run(name, status="done"))
        store.write([record(f"t{n}", name, passed=n > 3) for n in range(9)], [call("t0", name)])
    path, decided = tmp_path / "policy.yaml", []
    path.write_text("policy: it\nthresholds: {blocking: {pass_rate: 5%}}\n")
    monkeypatch.setattr(
        gates, "gate_run", lambda *a, **k: decided.append(k["where"]) or gate_run(*a, **k)
    )
    site = SimpleNamespace(store=store, suites=SimpleNamespace(folders=[tmp_path]))

    def opened(**more):
        (policy,) = gates.values(SimpleNamespace(query_params={}), site)["policies"]
        query = {"run": "new", "policy": policy, **more}
        page = gates.values(SimpleNamespace(query_params=query), site)
        assert page["problem"] == ""
        return len(decided)

    with closing(store):
        assert [opened(), opened(), opened(tier="T0"), opened(), opened(tier="T0")] == [
            1,
            1,
            2,
            2,
            2,
        ]
        path.write_text(path.read_text().replace("5%", "6%"))
        assert [opened(), opened()] == [3, 3]
        store.write([record("t9", "new", passed=False)], [call("t9", "new")])
        assert [opened(), opened()] == [4, 4]
        store.write([record("t9", "old", passed=False)], [call("t9", "old")])
        assert [opened(), opened(baseline="run:old"), opened(baseline="run:old")] == [4, 5, 5]
        store.write([record("t10", "old", passed=False)], [call("t10", "old")])
        assert opened(baseline="run:old") == 6
