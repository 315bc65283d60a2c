"""A review queue is answered without a mouse, and its labels count."""

import csv
import io
import json
import re
from urllib.parse import quote

import polars as pl
import pytest

from pennyweight.api.review import veiled
from pennyweight.store.store import Store
from pennyweight.web.addresses import read_key
from store.samples import RUN, call, record
from store.samples import run as run_row
from stored_runs.test_observations import SUITE, pennyweight, written
from web.serving import command, replayed, serving


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory):
    """A store of its own, because labels change it."""
    folder = tmp_path_factory.mktemp("reviewed")
    run = replayed(folder)
    with serving(folder) as server:
        yield server, run


@pytest.mark.parametrize("width", [390, 1280])
def test_records_are_labelled_by_keys(reviewed, open_page, width):
    server, run = reviewed
    who = f"Ada{width}"
    watched = open_page(width)
    page = watched.page
    page.goto(f"{server.address}/runs/{run}")
    page.get_by_role("link", name="Review").click()
    page.get_by_label("How many").fill("4")
    page.get_by_label("Your name").fill(who)
    page.get_by_label("Blind").check()
    page.get_by_role("button", name="Start").click()
    assert page.locator("h1").inner_text() == "Record 1 of 4"
    assert "smollm2" not in page.locator("main").inner_text()
    assert "Automatic" not in page.locator("main").inner_text()
    assert watched.overflow() <= 0
    page.keyboard.press("o")
    page.keyboard.type("as I see it, wrong")
    page.keyboard.press("Enter")
    for number, key in enumerate("rwu", 1):
        page.keyboard.press(key)
        page.get_by_role("heading", name=f"Record {number + 1} of 4").wait_for()
    page.keyboard.press("k")
    page.get_by_role("heading", name="Record 3 of 4").wait_for()
    assert page.locator("[aria-pressed=true]").inner_text().startswith("Unsure")
    page.keyboard.press("j")
    page.get_by_role("heading", name="Record 4 of 4").wait_for()
    page.keyboard.press("r")
    page.get_by_text("4 of 4 labelled").wait_for()
    assert "Cohen's kappa" in page.locator("main").inner_text()
    assert watched.overflow() <= 0
    page.get_by_role("link", name="Labelled records").click()
    assert page.locator("table.rows tbody tr").count() == 4
    drawn = server.json(f"/api/runs/{run}/review?size=4")[1]
    _, found = server.json(f"/api/runs/{run}/record?key={drawn[0].replace(' ', '%20')}")
    assert {"right"} == {r["verdict"] for r in found["remarks"] if r["who"] == who}
    assert found["remarks"][0]["note"] == "as I see it, wrong"


def test_a_blind_queue_tells_nobody_who_answered(reviewed):
    server, run = reviewed
    drawn = server.json(f"/api/runs/{run}/review?size=6&seed=8")[1]
    address = f"/runs/{run}/review?as=Zoe&size=6&seed=8&blind=1&at="
    for number, key in enumerate(drawn, 1):
        page = server.get(f"{address}{number}")[2]
        _, subject, tier, _ = json.loads(key)
        assert not {subject, tier} & set(re.findall(r"[\w-]+", page.split("<main")[1]))
        assert "record?key=" not in page
        given = dict(re.findall(r'data-(record|draw|size|seed)="([^"]*)"', page))
        given |= {"size": int(given["size"]), "seed": int(given["seed"])}
        form = {**given, "verdict": "wrong", "who": "Zoe"}
        status, answer = server.post(f"/api/runs/{run}/review", form)
        assert (status, answer) == (201, {"run": run})
        found = server.json(f"/api/runs/{run}/record?key={quote(key)}")[1]["remarks"]
        assert (found[0]["who"], found[0]["verdict"]) == ("Zoe", "wrong")
    assert "6 of 6 labelled" in server.get(f"{address}end")[2]
    status, answer = server.post(f"/api/runs/{run}/review", {**form, "record": "0" * 16})
    assert (status, "no such record any more" in answer["detail"]) == (404, True)
    assert server.post(f"/api/runs/{run}/review", {**form, "who": " "})[0] == 400
    at_rest = server.get(f"/runs/{run}/review?as=Zoe&draw=disagreement&size=6&seed=8")[2]
    assert "Answer again" not in at_rest


def test_a_label_from_elsewhere_is_asked_for_again(reviewed):
    server, run = reviewed
    key = server.json(f"/api/runs/{run}/review?size=1&seed=77")[1][0]
    form = {"key": key, "verdict": "right", "who": "Kim"}
    assert server.post(f"/api/runs/{run}/record/remarks", form)[0] == 201
    page = server.get(f"/runs/{run}/review?as=Kim&size=1&seed=77")[2]
    assert "Answer again, so that it counts as drawn at random." in page
    assert 'value="right" data-press="r" class="first" aria-pressed="true"' in page


def test_a_run_may_grow_while_it_is_labelled(tmp_path):
    store = Store(str(tmp_path / "store.db"))
    store.add_run(run_row(attempts=90, settings={"subjects": ["m"], "tiers": ["T0"]}))

    def grow(tasks):
        made = [record(f"t{n}", target="4", response="4", passed=True) for n in tasks]
        store.write(made, [call(f"t{n}") for n in tasks])

    grow(range(6))
    api = f"/api/runs/{RUN}"
    with serving(tmp_path, "--store", store.address) as server:
        pages = [
            server.get(f"/runs/{RUN}/review?as=Ada&size=5&blind=1&at={n}")[2] for n in range(1, 6)
        ]
        shown = server.json(f"{api}/review?size=5")[1]
        for start in range(6, 96, 30):
            grow(range(start, start + 30))
        gone = [key for key in shown if key not in server.json(f"{api}/review?size=5")[1]]
        assert gone
        for page in pages:
            given = dict(re.findall(r'data-(record|draw|size|seed|state)="([^"]*)"', page))
            given |= {"size": int(given["size"]), "seed": int(given["seed"])}
            form = {**given, "verdict": "right", "note": "as I see it", "who": "Ada"}
            assert server.post(f"{api}/review", form) == (201, {"run": RUN})
        for key in shown:
            remarks = server.json(f"{api}/record?key={quote(key)}")[1]["remarks"]
            assert [(r["verdict"], r["note"]) for r in remarks] == [("right", "as I see it")]
        found = server.json(f"{api}/agreement")[1]
        assert (found["labelled"], found["drawn"]) == (5, 5)
        last = read_key(RUN, server.json(f"{api}/review?size=96")[1][-1])
        other = {"record": veiled(last), "size": 5, "verdict": "wrong", "who": "Ada"}
        assert server.post(f"{api}/review", other)[0] == 201
        found = server.json(f"{api}/agreement")[1]
        assert (found["labelled"], found["drawn"]) == (6, 5), "no queue of five drew the last one"


def test_labels_are_in_the_api(reviewed):
    server, run = reviewed
    drawn = server.json(f"/api/runs/{run}/review?size=30&seed=5")[1]
    for key in drawn:
        form = {"key": key, "verdict": "right", "who": "Program", "draw": "random"}
        assert server.post(f"/api/runs/{run}/record/remarks", form)[0] == 201
    found = server.json(f"/api/runs/{run}/agreement")[1]
    assert found["drawn"] >= 30
    sides = found["metrics"][0]["sides"]
    page = server.get(f"/runs/{run}/review")[2]
    assert page.count("<td>accuracy</td>") == len(sides) > 1
    for side in sides:
        assert f"{side['share']['labelled']} of {side['share']['records']}</td>" in page
    assert server.get(f"/api/runs/{run}/review?draw=best")[0] == 422
    for wrong in ("draw=best", "size=many", "size=0"):
        assert server.get(f"/runs/{run}/review?{wrong}")[0] == 400


def test_a_question_of_the_suite_is_answered(tmp_path, open_page):
    folder = written(tmp_path)
    pennyweight(folder, "run", "suite.yaml")
    with serving(folder, "--store", folder / "store.db") as server:
        page = open_page().page
        run = server.json("/api/runs")[1]["runs"][0]["id"]
        page.goto(f"{server.address}/runs/{run}/review?draw=questions&as=Ada")
        assert "Is it kind?" in page.locator("main").inner_text()
        many = int(page.locator("h1").inner_text().split()[-1])
        for number in range(many):
            page.keyboard.press("y")
            page.get_by_text(f"{number + 1} done").or_(page.get_by_text("answered.")).wait_for()
        page.get_by_text(f"{many} of {many} answered").wait_for()
        form = {"key": json.dumps(["PERSON", "x", "T0", 1]), "mark": "m", "who": "A", "holds": True}
        assert server.post(f"/api/runs/{run}/answers", form)[0] == 404
    assert "nothing to review" in pennyweight(folder, "review", "--as", "Ada").stderr


def test_a_run_says_that_it_waits_for_people(tmp_path, open_page):
    run = replayed(tmp_path, question="Is it kind?")
    with serving(tmp_path) as server:
        digest = server.digest(run)
        many = digest["questions"]
        assert many == len(server.json(f"/api/runs/{run}/review?size=1000")[1]) > 3
        watched = open_page()
        page = watched.page
        page.goto(f"{server.address}/runs/{run}")
        told = f"{many} questions of the suite wait for a person."
        notice = page.locator(".notice", has_text=told)
        assert notice.is_visible()
        page.get_by_role("link", name="Review").click()
        assert page.get_by_text(told).is_visible()
        assert page.get_by_label("Records").input_value() == "questions"
        page.go_back()
        notice.get_by_role("link", name="Answer them").click()
        page.get_by_label("Your name").fill("Ada")
        page.get_by_role("button", name="Start").click()
        page.get_by_role("heading", name=f"Question 1 of {many}").wait_for()
        page.keyboard.press("y")
        page.get_by_role("heading", name=f"Question 2 of {many}").wait_for()
        server.digest(run)
        page.goto(f"{server.address}/runs/{run}")
        assert page.get_by_text(
            f"{many - 1} questions of the suite wait for a person."
        ).is_visible()


def test_a_run_that_only_people_decide_says_so(tmp_path):
    suite = (
        SUITE.partition("tasks:")[0]
        + """tasks:
  - {id: a, input: hello, checks: [{human: "Is it kind?"}]}
  - {id: b, input: hello}
"""
    )
    (written(tmp_path) / "suite.yaml").write_text(suite)
    pennyweight(tmp_path, "run", "suite.yaml")
    with serving(tmp_path, "--store", tmp_path / "store.db") as server:
        run = server.json("/api/runs")[1]["runs"][0]["id"]
        assert server.digest(run)["questions"] == 1
        text = server.get(f"/runs/{run}")[2]
        assert "The answers of people decide it." in text
        assert (
            f'1 question of the suite waits for a person. <a href="/runs/{run}/review?draw=q'
            in text
        )
        assert "A target or checks of the tasks" not in text


def test_the_filtered_records_are_downloaded(reviewed):
    server, run = reviewed
    server.digest(run)
    at = f"/runs/{run}/records"
    count = server.json(f"/api/runs/{run}/count?tier=T1&correct=no")[1]["count"]
    _, headers, text = server.get(f"{at}.jsonl?tier=T1&correct=no")
    rows = [json.loads(line) for line in text.splitlines()]
    assert len(rows) == count > 0
    assert "attachment" in headers["content-disposition"]
    assert {(row["tier"], row["correct"]) for row in rows} == {("T1", False)}
    table = [*csv.DictReader(io.StringIO(server.get(f"{at}.csv?tier=T1&correct=no")[2]))]
    assert [row["task_id"] for row in table] == [row["task_id"] for row in rows]
    import urllib.request

    with urllib.request.urlopen(f"{server.address}{at}.parquet") as answer:
        assert pl.read_parquet(answer.read()).height == 192
    assert server.get(f"{at}.exe")[0] == 404
    assert server.get(f"{at}.csv?correct=perhaps")[0] == 400


def test_answers_without_replies_are_shown(tmp_path):
    rows = [
        {"task_id": f"t{n}", "target": "4", "answer": f"{n} apples", "thinking": f"{n} or so"}
        for n in (4, 5)
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    done = command("import", "log.jsonl", folder=tmp_path)
    run = re.search(r"as run ([\w-]+)", done.stdout + done.stderr)[1]
    with serving(tmp_path) as server:
        key, _ = server.json(f"/api/runs/{run}/review?size=2")[1]
        for page in ("review?as=Ada&at=1&size=2&blind=1", f"record?key={quote(key)}"):
            status, _, text = server.get(f"/runs/{run}/{page}")
            assert status == 200
            reply = text.partition("<h2>Reply")[2]
            assert re.search("[45] apples", reply.partition("</section>")[0])
            assert re.search("[45] or so", reply.partition("<h2>Chain of thought</h2>")[2])
            assert "No reply." not in text
