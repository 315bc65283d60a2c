"""Differences are marked word by word, for as long as a page has time for it."""

from itertools import pairwise

from pennyweight.text.word_diff import WordDiff


def test_what_differs_is_marked():
    left, right = WordDiff().mark("Add 2 and 3.\nIt is 5.", "Add 2 and 3.\nIt is 6!")
    assert "".join(text for text, _ in left) == "Add 2 and 3.\nIt is 5."
    assert [text for text, other in left if other] == ["5."]
    assert [text for text, other in right if other] == ["6!"]


def test_a_page_has_one_budget_for_all_its_differences():
    differences = WordDiff(0.0)
    assert differences.mark("it is 7", "it is 8") is None


def test_long_texts_are_compared_by_lines_first():
    """A thousand words are too many to compare each with each."""
    lines = [f"Line {n} has a few words of its own, as the others do.\n" for n in range(200)]
    other = [*lines[:50], "Here is one more.\n", *lines[50:199], "Line 199 has none.\n"]
    left, right = WordDiff().mark("".join(lines), "".join(other))
    assert "".join(text for text, _ in left) == "".join(lines)
    assert "".join(text for text, _ in right) == "".join(other)
    assert [text for text, differs in right if differs] == ["Here is one more.\n", "none"]
    assert all(a[1] != b[1] for side in (left, right) for a, b in pairwise(side))
    assert WordDiff().mark("".join(lines), "".join(f"not {line}" for line in lines)) is None


def test_texts_that_would_take_minutes_are_given_up():
    assert WordDiff(0.05).mark("x " * 900, "y " * 900) is None
    assert WordDiff().mark("x " * 4_000, "y " * 4_000) is None
