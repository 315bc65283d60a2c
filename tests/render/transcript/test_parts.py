"""Long lists and paragraphs fold by lines, and look like one."""

import re

import pytest

from pennyweight.render.transcript.markdown import document


@pytest.mark.parametrize("mark", ["1.", "-", "7)"])
def test_a_long_list_is_folded_between_its_items(mark):
    shown = document([("\n".join(f"{mark} item **{n}**" for n in range(300)), "")])
    assert "<strong>0</strong>" in shown.head
    assert "<strong>150</strong>" in shown.middle
    assert "<strong>299</strong>" in shown.tail
    whole = shown.head + shown.middle + shown.tail
    assert whole.count("<li>") == whole.count("</li>") == 300
    assert whole.count('class="on"') == 299
    if mark != "-":
        first = int(mark[:-1])
        assert [*map(int, re.findall('start="([0-9]+)"', whole))] == [*range(first, first + 300)]


def test_a_short_list_stays_one():
    shown = document([("3. a\n4. b\n   - c", "")])
    assert shown.head.count("<ol") == shown.head.count("<ul") == 1
    assert 'class="on"' not in shown.head


def test_a_long_paragraph_is_folded_between_its_lines():
    text = "\n".join(f"line *{n}*" for n in range(200))
    shown = document([(text, "")])
    whole = shown.head + shown.middle + shown.tail
    assert shown.hidden > 100
    assert whole.count("<em>") == 200
    assert whole.count("<br") + whole.count("</p>") == 200
    spanning = "\n".join(f"line *{n}*" for n in range(60))
    shown = document([(f"**bold\n{spanning}\nbold** end", "")])
    assert shown.head.count("<strong>") == shown.head.count("</strong>") == 1
