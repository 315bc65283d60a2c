"""Wrong steps are marked at their place, with the value that was computed."""

import pytest

from pennyweight.render.transcript.markdown import document, plain
from pennyweight.render.transcript.steps import with_wrong_steps


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("5 + 3 = 8", []),
        ("So 5 + 3 = 9.", [("5 + 3 = 9", "computed: 8")]),
        ("9 = 5 + 3", [("9 = 5 + 3", "computed: 8")]),
        ("7 / 2 = 3.4", [("7 / 2 = 3.4", "computed: 3.5")]),
        ("10 / 3 = 3.4", [("10 / 3 = 3.4", "computed: about 3.33333")]),
        ("1 + 1 = 3, 2 + 2 = 5", [("1 + 1 = 3", "computed: 2"), ("2 + 2 = 5", "computed: 4")]),
    ],
)
def test_marks_have_the_computed_value(text: str, marks: list[tuple[str, str]]) -> None:
    pieces = with_wrong_steps([(text, "")])
    assert "".join(part for part, _ in pieces) == text
    found = [(part, kind.removeprefix("wrong:")) for part, kind in pieces if kind]
    assert found == marks


def test_the_page_shows_each_value_at_its_own_step() -> None:
    pieces = with_wrong_steps([("- 1 + 1 = 3\n- **2 + 2 = 5**\n- 3 + 3 = 6", "")])
    for shown in (document(pieces).head, plain(pieces).head):
        first, second = (shown.index(f'title="computed: {value}" tabindex="0"') for value in (2, 4))
        assert first < shown.index("1 + 1") < second < shown.index("2 + 2")
        assert shown.count("<mark") == shown.count("</mark>") == 2


def test_more_wrong_steps_than_can_be_explained_are_shown_unmarked() -> None:
    text = "\n".join(f"{i} + 1 = {i + 3}" for i in range(10, 60))
    shown = document(with_wrong_steps([(text, "")]))
    whole = f"{shown.head}{shown.middle}{shown.tail}"
    assert 1 <= whole.count("<mark") <= 28
    assert all(f"{i} + 1" in whole for i in range(10, 60))


def test_a_text_cannot_forge_an_explanation() -> None:
    shown = document([("\ufdd4x\ufdd3 <b title='y'>", "")]).head
    assert "<mark" not in shown
    assert "<b" not in shown
