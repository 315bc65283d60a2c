"""The grid as it is written: every cell readable without colour, names only as text."""

from urllib.parse import quote

from pennyweight.render.page.grid import (
    GridCell,
    GridRow,
    GridSide,
    cell_words,
    grid_lines,
    rows_for,
)


def test_cells_have_a_text_for_each_case():
    assert cell_words(GridCell(0.0, 1, 0)) == ("g0", "✗")
    assert cell_words(GridCell(0.0, 3, 0)) == ("g0", "0")
    assert cell_words(GridCell(0.449, 1, 0)) == ("g4", "45")
    assert cell_words(GridCell(None, 0, 0)) == ("gn", "–")
    assert cell_words(GridCell(0.5, 2, 1))[1] == "50"


def test_names_are_escaped_and_columns_follow_the_board():
    task = '"><script>x</script>'
    row = GridRow(task, "<b>", (GridCell(1.0, 1, 0), None, GridCell(0.0, 1, 0)))
    sides = (GridSide("last", "&s=%3C"), GridSide("first", "&s=1"), GridSide("none", "&s=2"))
    (line,) = grid_lines([row], sides, (2, 0, 1), "/runs/r/task?task=", quote)
    assert "<script" not in line
    assert "<b>" not in line
    cells = line.partition("</th>")[2].strip()
    texts = [part.split("<")[0] for part in cells.split(">") if part.split("<")[0]]
    assert texts == ["✗", "✓", "·"]


def test_pages_stay_small_with_many_sides():
    assert all(rows_for(n) * n <= 1_000 for n in range(1, 120))
