"""Tables in the terminal lose no word."""

import pytest

from pennyweight.render.terminal import table_text

WHY = "answer 7, target 24 and other things that are long"


@pytest.mark.parametrize("name", ["a", "suite/" + "b" * 33, "suite/" + "c" * 90])
def test_a_long_first_cell_goes_on_and_the_others_are_whole(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    rows = [[name, "0/1", WHY], ["d", "1/1", "—"]]
    text = table_text(["task", "passed", "why"], rows, right=(1,))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    half = 40 if len(name) > 40 else len(name)
    assert "".join(line[:half].strip() for line in lines[1:-1]) == name
    assert [word for word in WHY.split() if word not in text] == []
