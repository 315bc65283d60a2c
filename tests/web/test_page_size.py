"""No page is larger than 300 kB, uncompressed, with 36 sides."""

import re
from html import unescape

import pytest
from bench.sample_store import RUN, SIDES, fill

from pennyweight.store.store import Store
from web.serving import serving

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
