"""The rows of a table of records: escaped, cut, and the same whatever their neighbours hold."""

import pytest

from pennyweight.render.page.record_rows import table_rows
from pennyweight.web.record_rows import record_hrefs

PLAIN = {
    "task_id": "t1", "subject": "m", "tier": "T0", "attempt": 1, "status": "ok", "correct": True,
    "passed": True, "impl_rate": None, "input": "How many?", "error": None, "answer": "7",
    "latency_ms": 1234.5, "cost_usd": None, "self_correcting": False,
}  # fmt: skip
COLUMNS = ("subject", "input", "answer", "latency_ms", "cost_usd", "self_correcting")


def rows(*changes):
    held = {name: [{**PLAIN, **one}[name] for one in changes] for name in PLAIN}
    return table_rows(held, COLUMNS, record_hrefs(held, "/runs/a&b/record?"), opens=True)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>'\"&", "&lt;script&gt;&#39;&#34;&amp;"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("a" * 61, "a" * 59 + "…"),
        ("a" * 60, "a" * 60),
        ("a" * 59 + "<", "a" * 59 + "&lt;"),
        ("\x1b" * 40, "⟨U+001B⟩" * 7 + "⟨U+…"),
        ("a" * 58 + "\r\n", "a" * 58 + "\n"),
    ],
)
def test_a_text_is_escaped_and_cut(text, shown):
    assert f'dir="auto">{shown}</td>' in rows({"answer": text})


def test_a_row_does_not_depend_on_its_neighbours():
    changes = [{}, {"answer": "<b>"}, {"input": "x" * 300, "task_id": "ä/1"}, {"status": "error"}]
    assert rows(*changes) == "".join(rows(one) for one in changes)


def test_what_a_row_says():
    said = rows(
        {}, {"status": "error", "input": None, "error": "gone"}, {"correct": None, "passed": None}
    )
    first, second, third = said.splitlines()
    assert first.startswith('<tr data-href="/runs/a&amp;b/record?key=%5B%22t1%22%2C%22m%22%2C%22T0')
    assert '<span class="good">✓ right</span>' in first
    assert '<td class="num">1,234 ms</td><td class="num">—</td><td class="num">no</td>' in first
    assert '<span class="bad">error</span>' in second
    assert ">gone</td>" in second
    assert '<td><span class="quiet">—</span></td>' in third
    assert rows() == ""


@pytest.mark.parametrize(
    ("correct", "passed", "impl_rate", "said"),
    [
        (False, False, None, "✗ wrong"),
        (False, False, 0.25, "✗ not passed"),
        (False, True, 1.0, "✓ passed"),
        (True, False, None, "✗ not passed"),
        (True, None, None, "—"),
    ],
)
def test_what_decided_a_row_is_said(correct, passed, impl_rate, said):
    row = {"correct": correct, "passed": passed, "impl_rate": impl_rate}
    assert f">{said}</span></td>" in rows(row)
