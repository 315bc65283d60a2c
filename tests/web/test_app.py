"""Whatever breaks, the answer is ours: JSON to a program, a page to a person."""

import sqlite3

from web.serving import replayed, serving


def test_what_breaks_is_told_in_our_own_words(tmp_path):
    run = replayed(tmp_path)
    with sqlite3.connect(tmp_path / ".assay" / "assay.db") as store:
        store.execute("UPDATE assay_run SET settings = '[1]'")
    with serving(tmp_path) as server:
        status, told = server.json(f"/api/runs/{run}")
        assert status == 500
        assert "Something broke" in told["detail"]
        status, headers, page = server.get(f"/runs/{run}")
        assert status == 500
        assert "<h1>Something broke</h1>" in page
        assert "default-src 'none'" in headers["content-security-policy"]
        assert server.get("/new")[0] == 200
