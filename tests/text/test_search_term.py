"""What is written into a search box says where in words a text may be."""

import re
import sys
import unicodedata

import pytest

from pennyweight.text.search_term import WORD_CHARACTERS, SearchTerm


def test_every_letter_and_digit_of_unicode_is_a_part_of_words():
    part = re.compile(f"[{WORD_CHARACTERS}]")
    wrong = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code))[0] in "LN" or unicodedata.category(chr(code)) == "Co"
        if not part.match(chr(code))
    ]
    assert wrong == []
    assert [c for c in map(chr, range(sys.maxunicode + 1)) if c.isspace() and part.match(c)] == []
    apart = " \t_-.,;:!?'\"()[]{}<>/\\|@#$%^&*+=~`\u00a0\u00ab\u00bb\u2013\u2014\u2018\u201d\u2026"
    assert [c for c in apart if part.match(c)] == []


@pytest.mark.parametrize(
    ("written", "text", "kind"),
    [
        ("needle", "needle", "plain"),
        (" as written ", " as written ", "plain"),
        ('  "two words" ', "two words", "phrase"),
        ('" two words "', "two words", "phrase"),
        ('"zeb*"', "zeb*", "phrase"),
        ("two wor*", "two wor", "prefix"),
        ("*eed*", "eed*", "inside"),
        ("a *", "a *", "plain"),
        ("f(*", "f(*", "plain"),
        ("", "", "plain"),
        (" ", " ", "plain"),
        ('"a" and "b"', '"a" and "b"', "plain"),
        ("a\0*", "a\ufffd*", "plain"),
    ],
)
def test_quotes_and_stars_count_only_around_the_whole_text(written, text, kind):
    assert SearchTerm.read(written) == SearchTerm(text, kind)
