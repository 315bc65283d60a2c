"""Differences are marked word by word, for as long as a page has time for it."""

from pennyweight.text.word_diff import WordDiff


def test_what_differs_is_marked():
    left, right = WordDiff().mark("Add 2 and 3.\nIt is 5.", "Add 2 and 3.\nIt is 6!")
    assert "".join(text for text, _ in left) == "Add 2 and 3.\nIt is 5."
    assert [text for text, other in left if other] == ["5."]
    assert [text for text, other in right if other] == ["6!"]


def test_a_page_has_one_budget_for_all_its_differences():
    differences = WordDiff(0.0)
    assert differences.mark("it is 7", "it is 8") is None


def test_texts_that_would_take_minutes_are_given_up():
    assert WordDiff(0.05).mark("x " * 900, "y " * 900) is None
    assert WordDiff().mark("x " * 4_000, "y " * 4_000) is None
