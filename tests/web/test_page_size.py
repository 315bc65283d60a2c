"""No page is larger than 300 kB, uncompressed, with 36 sides or with every chart."""

import json
import random
import re
from html import unescape

import pytest
from bench.sample_store import RUN, SIDES, fill

from pennyweight.store.store import Store
from web.serving import command, serving

MAX_BYTES = 300_000
POLICY = "policy: release\nthresholds:\n  blocking: {accuracy: 25%, latency_p95_ms: 9s}\n"


@pytest.fixture(scope="module")
def sided(tmp_path_factory):
    """A server of a run with 36 sides and 30 tasks."""
    folder = tmp_path_factory.mktemp("sided")
    (folder / "policy.yaml").write_text(POLICY)
    store = Store(str(folder / "pennyweight.db"))
    fill(store, 30 * SIDES)
    store.close()
    with serving(folder, env={"PENNYWEIGHT_STORE": store.address}) as server:
        server.digest(RUN)
        yield server


def test_no_page_is_large_with_36_sides(sided):
    at = f"/runs/{RUN}"
    records = sided.get(f"{at}/records")[2]
    record, *_ = re.findall(r'href="(/runs/[^"]+/record\?[^"]+)"', records)
    policy = re.search(r'<option value="([0-9a-f]{16})">', sided.get("/gates")[2])[1]
    metrics = [f"{at}/metrics?page={page}" for page in range(1, 5)]
    pages = (
        "/", at, f"{at}?all=1", f"{at}?all=1&sort=latency_p95_ms&baseline=m3+%C3%97+T1",
        f"{at}?by=subject", f"{at}/grid", f"{at}/grid?rows=disagreement&only=differs", *metrics,
        f"{at}/records", f"{at}/records?q=divided", unescape(record),
        f"{at}/task?task=task-0000007", f"{at}/review", f"/compare?run={RUN}", "/new",
        f"/gates?run={RUN}", f"/gates?run={RUN}&policy={policy}", "/docs",
    )  # fmt: skip
    sizes = {}
    for page in pages:
        status, _, text = sided.get(page)
        assert status == 200, page
        sizes[page] = len(text.encode())
    assert len(set(metrics)) == 4
    assert {page: size for page, size in sizes.items() if size > MAX_BYTES} == {}
    assert sizes[f"{at}?all=1"] > 100_000  # all sides are there


def test_no_page_is_large_with_nine_sides_that_have_every_chart(tmp_path):
    rng = random.Random(4)
    rows = [
        {
            "task_id": f"t{task}", "subject": f"provider/a-model-with-a-long-name-{subject}",
            "tier": tier, "attempt": attempt, "category": f"kind {task % 12}", "target": "4",
            "answer": str(rng.choice([4, 4, 5])), "prob_correct": rng.random(),
            "response": "so " * rng.randrange(5, 400), "latency_ms": rng.lognormvariate(6, 1),
            "cost_usd": 0.001 * (1 + subject), "prompt_tokens": 50,
            "completion_tokens": rng.randrange(20, 900),
        }
        for task in range(60)
        for subject in range(3)
        for tier in ("T0", "T1", "T2")
        for attempt in range(1, 6)
    ]  # fmt: skip
    (tmp_path / "records.jsonl").write_text("\n".join(map(json.dumps, rows)))
    command("import", "records.jsonl", "--as", "nine", folder=tmp_path)
    with serving(tmp_path) as server:
        server.digest("nine")
        pages = {at: server.get(f"/runs/nine{at}")[2] for at in ("", "/metrics")}
    assert {at: len(text.encode()) for at, text in pages.items() if len(text) > MAX_BYTES} == {}
    both = "".join(pages.values())
    charts = ("sides", "frontier", "categories", "reliability", "repeats", "latency", "tokens")
    assert [name for name in charts if f'id="chart-{name}"' not in both] == []
    assert "All records together" in both
