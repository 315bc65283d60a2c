"""What failed: each number is the number of records that its link selects."""

import json
import re
import shutil
from collections import Counter

import pytest

from cli.command import pennyweight
from pennyweight.api.pages.digest_cache import compute
from pennyweight.api.static_site.lists import filter_of
from pennyweight.render.page.what_failed import what_failed
from pennyweight.store import queries
from pennyweight.store.store import Store
from store.samples import RUN, record, run
from web.serving import ROOT

JUDGED = '"replay:examples/judged/tape.jsonl"'


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """The judged example, from its recording."""
    folder = tmp_path_factory.mktemp("judged")
    shutil.copytree(ROOT / "examples" / "judged", folder / "examples" / "judged")
    suite = folder / "examples" / "judged" / "suite.yaml"
    suite.write_text(suite.read_text().replace("local/smollm2-135m", JUDGED))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("PENNYWEIGHT_STORE", raising=False)
        done = pennyweight("run", "examples/judged/suite.yaml")
        store = Store()
        yield store, store.find(re.search(r"Run (\S+):", done.err)[1])
        store.close()


def counted(store, name, tables):
    """The number that each row states, and how many records its link selects."""
    return [
        (row.failed, queries.count(store, name, filter_of(wanted)))
        for table in tables
        for row, wanted in ((row, json.loads(row.href)) for row in table.rows)
    ]


def test_items_of_the_rubric_are_counted_by_the_pass_mark(judged):
    store, found = judged
    digest = compute(store, found)
    failing = {one["name"]: one for one in digest["failing"] if one["kind"] == "rubric"}
    rubric = found.settings["judge"]["rubric"]
    points = {i["id"]: i["points"] for c in rubric["categories"] for i in c["items"]}
    shares = {}  # the same, written as plainly as possible
    for row in store.judgments(found.id).filter(status="ok").to_dicts():
        key = (row["task_id"], row["subject"], row["tier"], row["attempt"])
        for name, item in json.loads(row["items"]).items():
            if isinstance(item["score"], int | float):
                shares.setdefault((name, key), []).append(item["score"] / points[name])
    means = {place: sum(v) / len(v) for place, v in shares.items()}
    failed = Counter(name for (name, _), mean in means.items() if mean < rubric["pass_mark"])
    tried = Counter(name for name, _ in means)
    assert {n: (one["failed"], one["of"]) for n, one in failing.items()} == {
        n: (number, tried[n]) for n, number in failed.items()
    }
    assert failing
    numbers = counted(store, found.id, what_failed(digest, json.dumps))
    assert numbers
    assert all(stated == listed for stated, listed in numbers)


@pytest.fixture
def checked(store_address):
    """A run whose records have checks with odd names, and errors of two kinds."""
    store = Store(store_address)
    store.add_run(run(status="done", attempts=7, settings={"log": {"tools": [], "files": []}}))

    def checks(**held):
        listed = [{"name": n.replace("_", " "), "holds": h} for n, h in held.items()]
        listed.append({"name": "50% _x", "holds": False})
        return json.dumps({"checks": json.dumps(listed)})

    rows = [
        record("a", response="x", extra=checks(polite=False, short=True, Polite=True)),
        record("b", response="x", extra=checks(polite=False, short=False)),
        record("c", response="x", extra=checks(polite=True, polite_too=False)),
        record("d", response="x", extra=checks(polite=None)),
        record("e", status="error", error="gone: 50% of _it", error_kind="timeout"),
        record("f", status="error", error="gone: 50% of _it all", error_kind="timeout"),
        record("g", status="error", error="no", error_kind="refused"),
    ]
    store.write(rows, [])
    yield store
    store.close()


def test_checks_and_errors_are_counted_exactly(checked):
    digest = compute(checked, checked.find(RUN))
    failing = {one["name"]: (one["failed"], one["of"]) for one in digest["failing"]}
    expected = {"50% _x": (4, 4), "polite": (2, 3), "short": (1, 2), "polite too": (1, 1)}
    assert failing == expected
    tables = {t.title: t for t in what_failed(digest, json.dumps)}
    assert [(r.name, r.failed) for r in tables["Kinds of errors"].rows] == [
        *(("timeout", 2), ("refused", 1))
    ]
    numbers = counted(checked, RUN, tables.values())
    assert len(numbers) == 4 + 2 + 3
    assert all(stated == listed for stated, listed in numbers)


@pytest.fixture
def verified(store_address):
    """A run of an agent whose work commands verify; two attempts were ended by limits."""
    store = Store(store_address)
    store.add_run(run(status="done", attempts=5, text="subjects: [{command: [./agent]}]"))

    def work(tests, notes=None):
        checks = [{"check": "verify", "command": "make  test\n# all", "holds": tests}]
        checks += [{"check": "keep", "command": "test -s notes", "holds": notes}]
        return json.dumps({"checks": checks})

    rows = [
        record("a", work=work(False, True), passed=False),
        record("b", work=work(False, False), passed=False),
        record("c", work=work(True), passed=True),
        record("d", work="{broken", status="timeout"),
        record("e", status="budget"),
    ]
    store.write(rows, [])
    yield store
    store.close()


def test_commands_that_verify_work_and_limits_are_counted(verified):
    digest = compute(verified, verified.find(RUN))
    assert {one["name"]: (one["failed"], one["of"]) for one in digest["failing"]} == {
        "verify: make test # all": (2, 3),
        "keep: test -s notes": (1, 2),
    }
    tables = {t.title: t for t in what_failed(digest, json.dumps)}
    limits = [(r.name, r.failed, r.of) for r in tables["Attempts ended by a limit"].rows]
    assert limits == [("out of time", 1, 5), ("out of budget", 1, 5)]
    numbers = counted(verified, RUN, tables.values())
    assert len(numbers) == 4
    assert all(stated == listed for stated, listed in numbers)
