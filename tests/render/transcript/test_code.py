"""Code in colours: hostile code costs little."""

from __future__ import annotations

import re
from contextvars import copy_context

import pytest

from pennyweight.render.transcript import code


def _is_coloured(text: str, language: str = "python") -> bool:
    return any("<span" in block.html for block in code.code_blocks(text, language))


@pytest.mark.parametrize("hostile", ["\n", " \n", "x = 1 ", "x = 1\n" + "\n" * 90])
def test_code_of_an_extreme_shape_is_plain(hostile: str) -> None:
    assert not _is_coloured((hostile * 2_000)[:1_999])
    assert not _is_coloured("\n" * 12_000, "c")


def test_a_page_colours_so_much_code_and_no_more() -> None:
    text = "x = 1\n" * 300  # 1,800 characters

    def page() -> list[bool]:
        code.new_page()
        return [_is_coloured(text) for _ in range(14)]

    first = copy_context().run(page)
    assert first == [True] * 11 + [False] * 3
    assert copy_context().run(page) == first


def test_long_code_is_coloured_in_parts() -> None:
    text = "\n".join(f"def f{n}():\n    return {n}\n" for n in range(400))

    def lines(most: int) -> list[str]:
        code.new_page()
        return [str(block.html) for block in code.code_blocks(text, "python", most)]

    whole, part = copy_context().run(lines, 100_000), copy_context().run(lines, 10_000)
    for found in (whole, part):
        assert re.sub("<[^>]*>", "", "".join(found)) == f"{text}\n"
    assert all("<span" in line for line in whole if "return" in line)
    assert 50 < sum("<span" in line for line in part) < 400
