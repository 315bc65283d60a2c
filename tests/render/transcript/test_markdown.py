"""Markdown of models is shown with marks and formulas, and can neither act nor hide anything."""

import re

import pytest

from pennyweight.render.transcript.markdown import document, plain

KNOWN = set(
    "blockquote br code del details div em hr li mark ol p pre s small span strong summary table "
    "tbody td th thead tr ul".split()
)
ATTRIBUTES = set("class dir display mathvariant start stretchy tabindex".split())
MATHS = set("math mfrac mi mn mo mrow mspace msup mtable mtd mtext mtr".split())


def html(text, **more):
    shown = document([(text, "")], **more)
    return str(shown.head + shown.middle + shown.tail)


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>\n\n<svg onload=alert(1)>",
        "[a](javascript:alert(1)) [b](https://example.com/) ![c](http://example.com/p.png)",
        "<https://example.com/> [x]: http://example.com/ 'title'",
        r"$\href{javascript:alert(1)}{x}$ $\style{color:red}{x}$ $\class{a}{x}$",
        r"$\text{<script>alert(1)</script>}$ $\mathrm{\"onload=x\"}$",
        "```<b>\n</code></pre><script>\n```",
        "~~~python\n'''</pre><img src=x onerror=alert(1)>\n~~~",
        "|a|b|\n|:-|-:|\n|<i>|`</td>`|",
        "# <b>\n> <u>\n1. <a href=x>",
    ],
)
def test_nothing_of_a_text_becomes_an_element_that_acts(text):
    shown = html(text)
    for tag, attributes in re.findall(r"<([a-zA-Z0-9]+)([^>]*)>", shown):
        assert tag in KNOWN | MATHS, shown
        for name in re.findall(r"([\w-]+)=", attributes):
            assert name in ATTRIBUTES, shown


def test_every_word_stays_visible():
    text = "[ref]: http://x.example 'secret'\n\n<!-- hidden -->\n\n"
    for whole in (text, text + "> " * 30 + "deep"):
        shown = html(whole)
        for word in ("ref", "http://x.example", "secret", "hidden", *whole.split()[-1:]):
            assert word.strip("<>!-'") in shown


def test_controls_are_made_visible_and_joined_scripts_stay():
    shown = html("a\u202eb क्ष 👩\u200d👧 \x1b[31m")
    assert "⟨U+202E⟩" in shown
    assert "⟨U+001B⟩" in shown
    assert "क्ष 👩\u200d👧" in shown


def test_money_is_no_formula():
    assert "<math" not in html("It costs $5, or $10 for two; between $3-$4.")
    assert html("$x$, \\(y\\) and $$z$$").count("<math") == 3
    assert html("\\[\na\n= b\n\\]").count('<math display="block"') == 1
    assert 'class="boxed"' in html("The answer is \\boxed{7}.")


def test_a_formula_that_cannot_be_read_is_shown_as_it_is_written():
    assert html("$\\frac{1}$") == "<p><code>$\\frac{1}$</code></p>\n"
    assert "<math" not in html("$" + "{" * 300 + "}" * 300 + "$")


def test_marks_never_cross_elements():
    pieces = [("- one\n", ""), ("- two **bold", "evidence"), (" more** and ", ""), ("7", "found")]
    shown = str(document(pieces).head)
    start = '<mark class="evidence">'
    assert f"<li>{start}two </mark><strong>{start}bold</mark> more</strong>" in shown
    assert shown.count("<li>") == 2
    assert '<mark class="found">7</mark>' in shown


@pytest.mark.parametrize(
    "piece",
    ["**a", "[", "![[]", "> a", "- a", "_a_", "$a ", "$", "\\(", "\\[\n", "|a", "~~a", "<a ", "&",
     "\\begin{align}\n", "a|b\n-|-\n", "\u202e", "x", "<http://", "\\boxed{", "\ufdd0"],
)  # fmt: skip
def test_a_huge_text_is_bounded(piece):
    shown = document([(piece * (200_000 // len(piece)), "")], 50_000)
    whole = shown.head + shown.middle + shown.tail
    assert 1_000 < len(whole.encode()) <= 50_000
    assert shown.cut


def test_a_long_text_is_folded_by_lines():
    text = "\n\n".join(f"Line {n}." for n in range(200))
    for shown in (document([(text, "")]), plain([(text, "")])):
        assert "Line 0." in shown.head
        assert "Line 100." in shown.middle
        assert "Line 199." in shown.tail
        assert shown.hidden > 100
    assert not document([("\n".join("abc"), "")]).hidden


def test_code_is_coloured_and_folded():
    shown = html("```python\n" + "x = 1\n" * 100 + "```")
    assert '<pre class="code">x = <span class="nu">1</span>' in shown
    assert "<summary>64 more lines</summary>" in shown
