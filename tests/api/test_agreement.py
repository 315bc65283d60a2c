"""One policy on one run has one verdict: by command, Python, report, page and pytest."""

import asyncio
import json
import re
from itertools import product
from pathlib import Path

import pytest

import pennyweight as api
from cli.command import pennyweight
from pennyweight import pytest_plugin
from pennyweight.errors import UsageError
from pennyweight.store.store import Store
from pennyweight.web.app import make_app

MODEL = """\
import hashlib

def answer(prompt, share=95):
    drawn = int(hashlib.md5(prompt.encode()).hexdigest(), 16) % 100
    return "FINAL_ANSWER: 4" if drawn < share else "FINAL_ANSWER: 5"

def worse(prompt):
    return answer(prompt, 60)
"""
TASKS = [{"id": f"t{i}", "input": f"2 + 2, variant {i}?", "target": "4"} for i in range(200)]
SUITE = {"suite": "sums", "tasks": TASKS[:60], "subjects": ["python:answers:answer"], "seed": 1}
POLICIES = {
    "early": "on: confident\nthresholds: {accuracy: {threshold: '≥ 85%', indifference: 10%}}\n",
    "value": "thresholds: {accuracy: 50%}\n",
    "strict": "thresholds: {accuracy: 99.9%}\n",
    "passes": "errors: 90%\nthresholds: {pass_rate: 50%}\n",
    "paired": "gates: [{metric: accuracy, no_worse_than: 5%}]\n",
}
TITLES = {"Passed": "pass", "Failed": "fail", "Inconclusive": "inconclusive"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("PENNYWEIGHT_STORE", "GITHUB_ACTIONS", "PENNYWEIGHT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pennyweight.engine.early_stop.secrets.randbits", lambda _: 7)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "answers.py").write_text(MODEL)
    for name, text in POLICIES.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def made(*options, code=0, **changes):
    """Run the suite, changed in some places; gives the id of the run."""
    Path("suite.json").write_text(json.dumps({**SUITE, **changes}))
    done = pennyweight("run", "suite.json", *options)
    assert done.code == code, done.err
    return Store().find("latest").id


def titled(text):
    return TITLES[re.search("|".join(f"{title}(?=: )" for title in TITLES), text)[0]]


def by_command(run, policy, baseline=None):
    options = ("--baseline", baseline) if baseline else ()
    done = pennyweight("gate", run, "--policy", f"{policy}.yaml", "--format", "json", *options)
    return done.json["verdict"]


def by_python(run, policy, baseline=None):
    return api.gate(run, f"{policy}.yaml", baseline=baseline).verdict


def by_report(run, policy, baseline=None):
    options = ("--baseline", baseline) if baseline else ()
    done = pennyweight("report", run, "-o", "r.md", "--policy", f"{policy}.yaml", *options)
    assert done.code == 0, done.err
    (shown,) = api.report(run, policy=f"{policy}.yaml", baseline=baseline).verdicts
    assert shown["verdict"].verdict == titled(Path("r.md").read_text())
    return shown["verdict"].verdict


def by_page(run, policy, baseline=None):
    app = make_app(Store(), folders=[Path.cwd()])
    listed = got(app, "/gates", f"run={run}")
    choice = re.search(rf'<option value="([0-9a-f]{{16}})"[^>]*>[^<]*{policy}\.yaml', listed)[1]
    query = f"run={run}&policy={choice}" + (f"&baseline=run:{baseline}" if baseline else "")
    return titled(got(app, "/gates", query))


def by_pytest(run, policy, baseline=None):
    settings = {"policies": [f"{policy}.yaml"], "baseline": baseline}
    case = pytest_plugin.Case(Path("suite.json"), "verdict", gate=True, settings=settings)
    return pytest_plugin._verdict(case, run, Store().address).verdict


WAYS = (by_command, by_python, by_report, by_page, by_pytest)


def got(app, path, query):
    """Get a page of the application without a server."""
    body = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        body.append(message.get("body", b""))

    headers = [(b"host", b"127.0.0.1:8000")]
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET",
        "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": query.encode(),
        "root_path": "", "headers": headers, "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8000),
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    return b"".join(body).decode()


def agreed(run, policy, baseline=None):
    words = {way.__name__: way(run, policy, baseline) for way in WAYS}
    assert len(set(words.values())) == 1, words
    return words["by_command"]


def test_a_whole_run(folder):
    run = made()
    words = [agreed(run, policy) for policy in ("early", "value", "strict")]
    assert words == ["pass", "pass", "fail"]


def test_an_early_stopped_run(folder):
    run = made("--until-decided", "early.yaml", tasks=TASKS)
    words = [agreed(run, policy) for policy in ("early", "value", "strict")]
    assert words == ["pass", "inconclusive", "fail"]


@pytest.mark.parametrize("way", ["table", "markdown"])
def test_an_early_stopped_run_shows_its_sequential_test(folder, way):
    def printed(run, code):
        done = pennyweight("gate", run, "--policy", "early.yaml", "--format", way)
        assert done.code == code, done.err
        return " ".join(done.out.split())

    zone = r"indifference zone 75\.0 to 85\.0 %"
    early = made("--until-decided", "early.yaml", tasks=TASKS)
    passed = rf"Sequential test after \d+ of 200 tasks; {zone}"
    assert re.search(passed, printed(early, 0))
    worse = made(
        "--until-decided", "early.yaml", code=1, tasks=TASKS, subjects=["python:answers:worse"]
    )
    failed = rf"after \d+ of 200 tasks its interval, .*, rules out 85\.0 % or better \({zone}\)"
    assert re.search(failed, printed(worse, 1))
    assert "zone" not in printed(made(), 0)


def test_one_of_several_runs_of_which_one_was_stopped_early(folder):
    early, whole = made("--until-decided", "early.yaml", tasks=TASKS), made()
    with pytest.raises(UsageError, match="--where run=ID"):
        api.gate([early, whole], "early.yaml")
    for run, policy in product((early, whole), ("early", "value")):
        alone = api.gate(run, f"{policy}.yaml")
        picked = api.gate([early, whole], f"{policy}.yaml", where={"run": run})
        assert picked.to_dict() == alone.to_dict()
        options = ("--policy", f"{policy}.yaml", "--where", f"run={run}", "--format", "json")
        assert pennyweight("gate", early, whole, *options).json == alone.to_dict()


def test_an_interrupted_run(folder):
    subject = {"model": "python:answers:answer", "max_tokens": 5}
    run = made(code=4, subjects=[subject], limits={"tokens": 60, "concurrency": 1})
    assert Store().find(run).attempts > sum(Store().statuses(run).values())
    assert agreed(run, "passes") == "inconclusive"


def test_a_run_with_a_baseline(folder):
    before = made()
    worse = made(subjects=["python:answers:worse"])
    assert [agreed(worse, "paired", before), agreed(before, "paired", worse)] == ["fail", "pass"]


def test_a_run_whose_verdicts_are_pending(folder):
    run = made(tasks=[{"id": "a", "input": "Hi", "checks": [{"human": "Kind?"}]}])
    assert agreed(run, "passes") == "inconclusive"


def test_each_side_of_a_run_with_several_tiers(folder):
    run = made(tiers={"T0": {}, "T1": {"system": "Be careful."}}, tasks=TASKS[:20])
    shown = api.report(run, policy="strict.yaml").verdicts
    for tier, verdict in zip(("T0", "T1"), shown, strict=True):
        alone = api.gate(run, "strict.yaml", where={"tier": tier})
        assert (verdict["side"], verdict["verdict"].to_dict()) == (tier, alone.to_dict())
