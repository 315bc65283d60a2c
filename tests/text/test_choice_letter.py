"""The letter of a choice: by letter, by text, by both or by index."""

import pytest

from pennyweight.text.choice_letter import choice_letter

NUMBERS = '["2", "4", "8"]'


@pytest.mark.parametrize(
    ("text", "choices", "letter"),
    [
        ("2", NUMBERS, "a"),  # the text comes before the index
        ("B) 4", NUMBERS, "b"),
        ("B) 8", NUMBERS, None),
        ("D", NUMBERS, None),
        ("", NUMBERS, None),
        ("rome", '["Rome", "rome"]', None),
        ("1", '{"text": ["Rome", "Oslo"], "label": ["x", "y"]}', "b"),
        ("a", "no JSON", None),
        (None, NUMBERS, None),
        ("a", None, None),
    ],
)
def test_letters(text: str | None, choices: str | None, letter: str | None) -> None:
    assert choice_letter(text, choices) == letter
