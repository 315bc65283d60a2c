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
    ("written", "terms"),
    [
        ("needle", ["plain needle"]),
        (" two  words ", ["plain two", "plain words"]),
        ("3.14 foo-bar", ["plain 3.14", "plain foo-bar"]),
        ('  "two words" ', ["phrase two words"]),
        ('" two words "', ["phrase two words"]),
        ('"zeb*"', ["phrase zeb*"]),
        ("two wor*", ["plain two", "prefix wor"]),
        ('num* "needle in"\t33', ["prefix num", "phrase needle in", "plain 33"]),
        ("*eed*", ["inside eed*"]),
        ("a *", ["plain a", "plain *"]),
        ("f(*", ["plain f(*"]),
        ("", []),
        (" ", []),
        ('""', ['plain ""']),
        ('"a" and "b"', ["phrase a", "plain and", "phrase b"]),
        ('"a"b "c', ['plain "a"b', 'plain "c']),
        ('5" disk', ['plain 5"', "plain disk"]),
        ("again again", ["plain again"]),
        ("a\0*", ["plain a\ufffd*"]),
    ],
)
def test_terms_are_between_spaces_and_quotes_and_stars_count_around_whole_ones(written, terms):
    assert [f"{term.kind} {term.text}" for term in SearchTerm.read(written)] == terms
