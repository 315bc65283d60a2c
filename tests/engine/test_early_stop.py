"""Runs that end when they are decided: few attempts, the right verdict, and the same one again."""

import json
import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from pennyweight.gates.sequential import sizes
from pennyweight.store.store import Store

MODEL = """\
import hashlib

def answer(prompt, share):
    drawn = int(hashlib.md5(prompt.encode()).hexdigest(), 16) % 100
    return "FINAL_ANSWER: 4" if drawn < share else "FINAL_ANSWER: 5"

def good(prompt):
    return answer(prompt, 95)

def bad(prompt):
    return answer(prompt, 60)

def attack(prompt):
    return "FINAL_ANSWER: 5" if "variant 7?" in prompt else "FINAL_ANSWER: 4"
"""
POLICY = "on: confident\nthresholds: {accuracy: {threshold: '≥ 85%', indifference: 10%}}\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "answers.py").write_text(MODEL)
    (tmp_path / "policy.yaml").write_text(POLICY)
    for name in ("good", "bad", "attack"):
        tasks = [
            {"id": f"t{i}", "input": f"2 + 2, variant {i}?", "target": "4"} for i in range(300)
        ]
        given = {"suite": name, "tasks": tasks, "subjects": [f"python:answers:{name}"], "seed": 1}
        (tmp_path / f"{name}.json").write_text(json.dumps(given))
    return tmp_path


def pennyweight(folder, *arguments):
    environment = {**os.environ, "PENNYWEIGHT_STORE": "store.db", "PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, "-m", "pennyweight", *map(str, arguments)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_good_and_a_bad_system_are_told_apart_with_few_attempts(folder):
    for suite, code in (("good", 0), ("bad", 1)):
        done = pennyweight(
            folder, "run", f"{suite}.json", "--until-decided", "policy.yaml", "--format", "json"
        )
        assert done.returncode == code, done.stderr
        store = Store(str(folder / "store.db"))
        run = store.find("latest")
        made = sum(store.statuses(run.id).values())
        assert (run.status, run.attempts) == ("done", made)
        assert made < 150
        assert json.loads(done.stdout)["records"] == made
        again = pennyweight(folder, "gate", "latest", "--policy", "policy.yaml", "--format", "json")
        assert again.returncode == code
        assert json.loads(again.stdout) == json.loads(done.stdout)
        store.close()


def test_it_stops_at_the_suites_end_and_says_that_it_is_open(folder):
    near = POLICY.replace("10%", "0.5%").replace("85%", "95%")
    (folder / "near.yaml").write_text(near)
    done = pennyweight(folder, "run", "good.json", "--until-decided", "near.yaml")
    assert done.returncode == 3, done.stderr
    assert "300 of at most 300 attempts made" in done.stderr
    assert "rules out neither 95.0 % or better" in done.stdout.replace("\n    ", " ")


def test_a_required_task_that_fails_ends_it_at_once(folder):
    (folder / "required.yaml").write_text(POLICY + "required_scenarios: [t7]\n")
    done = pennyweight(folder, "run", "attack.json", "--until-decided", "required.yaml")
    assert done.returncode == 1, done.stderr
    assert "t7 did not pass" in done.stdout


def test_what_is_required_is_tried_first_and_one_failure_ends_it(folder):
    (folder / "required.yaml").write_text(POLICY + "required_scenarios: [t7, t8]\n")
    done = pennyweight(folder, "run", "attack.json", "--until-decided", "required.yaml")
    assert done.returncode == 1, done.stderr
    assert "2 of at most 300 attempts made" in done.stderr
    good = pennyweight(folder, "run", "good.json", "--until-decided", "required.yaml")
    assert good.returncode == 0, good.stderr
    store = Store(str(folder / "store.db"))
    kept = store.find("latest").settings["until_decided"]
    tried = {key.task_id for key in store.attempts(store.find("latest").id)}
    prefix = {task[0] for task in kept["tasks"][: len(tried) - 2]}
    assert prefix <= tried  # the test itself goes by the random order
    assert {"t7", "t8"} <= tried
    store.close()


def test_the_order_is_another_in_every_run_and_kept_for_going_on(folder):
    for _ in range(2):
        assert (
            pennyweight(folder, "run", "good.json", "--until-decided", "policy.yaml").returncode
            == 0
        )
    store = Store(str(folder / "store.db"))
    one, two = (run.settings["until_decided"] for run in store.runs())
    assert one["seed"] != two["seed"]
    assert one["tasks"] != two["tasks"]
    (folder / "near.yaml").write_text(POLICY.replace("10%", "0.5%").replace("85%", "95%"))
    before = store.find("latest")
    pennyweight(folder, "run", "--resume", "--until-decided", "near.yaml", "--yes")
    after = store.find("latest")
    assert (after.id, after.settings["until_decided"]) == (
        before.id,
        before.settings["until_decided"],
    )
    assert after.attempts > before.attempts
    store.close()


def test_thresholds_may_depend_on_a_version_which_is_kept(folder):
    steps = {"v1": "≥ 50%", "v2": "≥ 99.9%"}
    text = json.dumps({"on": "confident", "progressive_thresholds": {"accuracy": steps}})
    (folder / "steps.yaml").write_text(text)
    for version, code in (("v1.4", 0), ("v2.1", 1)):
        options = ["--until-decided", "steps.yaml", "--version", version]
        done = pennyweight(folder, "run", "bad.json", *options)
        assert done.returncode == code, done.stderr
        again = pennyweight(folder, "run", "--resume", "--until-decided", "steps.yaml", "--yes")
        assert again.returncode == code, again.stderr
    store = Store(str(folder / "store.db"))
    assert store.find("latest").settings["until_decided"]["version"] == "v2.1"
    again = pennyweight(folder, "gate", "latest", "--policy", "steps.yaml")
    assert again.returncode == 1, again.stderr  # by the version of the run
    store.close()
    alone = pennyweight(folder, "run", "bad.json", "--version", "v1")
    assert (alone.returncode, "--until-decided" in alone.stderr) == (2, True)


def test_a_missing_baseline_is_told_before_anything_is_called(folder):
    (folder / "paired.yaml").write_text("gates: [{metric: accuracy, no_worse_than: 5%}]")
    done = pennyweight(folder, "run", "good.json", "--until-decided", "paired.yaml")
    assert (done.returncode, "--baseline names one" in done.stderr) == (2, True)
    assert not Store(str(folder / "store.db")).runs()


def test_records_of_one_category_are_tested_as_such(folder):
    suite = json.loads((folder / "good.json").read_text())
    for place, task in enumerate(suite["tasks"]):
        task["category"] = "core" if place % 3 else "other"
    (folder / "parts.json").write_text(json.dumps(suite))
    assert (
        pennyweight(folder, "run", "parts.json", "--until-decided", "policy.yaml").returncode == 0
    )
    some = ["latest", "--policy", "policy.yaml", "--where", "category=core", "--format", "json"]
    (only,) = json.loads(pennyweight(folder, "gate", *some).stdout)["gates"]
    assert 5 < only["tasks"] <= only["records"]  # it may be decided before the last of a part
    assert f"after {only['tasks']} of 200 tasks" in only["why"]


def test_the_policy_of_the_docs_decides_early(folder):
    shipped = Path(__file__).parents[2] / "examples" / "gates" / "early.yaml"
    for page in ("gates.md", "ci.md"):
        assert "early.yaml" in (shipped.parents[2] / "docs" / page).read_text("utf-8")
    done = pennyweight(folder, "run", "bad.json", "--until-decided", shipped)
    assert done.returncode == 1, done.stderr


def test_an_outage_ends_it_without_a_verdict(folder):
    (folder / "answers.py").write_text('def good(prompt):\n    raise OSError("no route")\n')
    done = pennyweight(folder, "run", "good.json", "--until-decided", "policy.yaml")
    assert done.returncode == 3, done.stderr
    assert "10 of at most 300 attempts made" in done.stderr
    assert "10 of 10 attempts could not be made" in done.stdout


def test_all_parts_share_one_limit_of_seconds(folder):
    """Each part alone would have the time it takes; all of them together take three seconds."""
    (folder / "answers.py").write_text(
        "import time\n\ndef good(prompt):\n    time.sleep(0.05)\n    return 'FINAL_ANSWER: 4'\n"
    )
    (folder / "near.yaml").write_text(POLICY.replace("10%", "0.5%").replace("85%", "99%"))
    suite = json.loads((folder / "good.json").read_text())
    suite |= {"tasks": suite["tasks"][:60], "limits": {"concurrency": 1, "seconds": 1}}
    (folder / "slow.json").write_text(json.dumps(suite))
    done = pennyweight(folder, "run", "slow.json", "--until-decided", "near.yaml")
    assert "Time limit reached (" in done.stderr
    assert "--until-decided near.yaml --yes" in done.stderr, "what continues it stops early too"
    with closing(Store(str(folder / "store.db"))) as store:
        assert sum(store.statuses(store.find("latest").id).values()) < 60


def test_it_can_be_resumed(folder):
    first = pennyweight(folder, "run", "good.json", "--until-decided", "policy.yaml")
    again = pennyweight(folder, "run", "--resume", "--until-decided", "policy.yaml", "--yes")
    assert (first.returncode, again.returncode) == (0, 0), again.stderr
    store = Store(str(folder / "store.db"))
    (run,) = store.runs()
    assert run.attempts == sum(store.statuses(run.id).values()) < 150
    store.close()


def test_options_make_no_smaller_suite_of_it(folder):
    narrowed = ["--until-decided", "policy.yaml", "--concurrency", "2"]
    first = pennyweight(folder, "run", "good.json", *narrowed)
    again = pennyweight(folder, "gate", "latest", "--policy", "policy.yaml")
    resumed = pennyweight(folder, "run", "--resume", *narrowed[:2])
    assert [one.returncode for one in (first, again, resumed)] == [0] * 3, again.stdout
    assert "tasks)" not in resumed.stderr, "no part is named: the run has the whole suite"


def test_what_cannot_be_decided_early_is_refused_before_anything_is_called(folder):
    (folder / "value.yaml").write_text("thresholds: {accuracy: 85}")
    done = pennyweight(folder, "run", "good.json", "--until-decided", "value.yaml")
    assert (done.returncode, "nothing can be decided early" in done.stderr) == (2, True)
    assert not Store(str(folder / "store.db")).runs()


def test_looks_are_few_and_reach_the_end():
    for tasks in (1, 10, 11, 500, 10_000):
        found = list(sizes(tasks))
        assert found[-1] == tasks
        assert found == sorted(set(found))
        assert len(found) <= 60


def test_watch_runs_again_when_a_file_changes(folder):
    environment = {
        **os.environ,
        "PENNYWEIGHT_STORE": ".pennyweight/store.db",
        "PYTHONPATH": str(folder),
    }
    small = json.loads((folder / "good.json").read_text())
    small["tasks"] = small["tasks"][:3]
    (folder / "small.json").write_text(json.dumps(small))
    process = subprocess.Popen(
        [sys.executable, "-m", "pennyweight", "run", "small.json", "--watch"],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        waits = (line for line in process.stderr if line.startswith("Waiting"))
        next(waits)
        time.sleep(0.01)
        (folder / "small.json").write_text(json.dumps({**small, "runs": 2}))
        next(waits)
    finally:
        process.terminate()
        process.wait(10)
        process.stderr.close()
    store = Store(str(folder / ".pennyweight" / "store.db"))
    assert [run.attempts for run in store.runs()] == [6], "what stands is not made again"
    store.close()
