"""Values of unknown origin against declared types."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, Required, TypedDict

import pytest

from pennyweight.schema.typed_values import fits


class Row(TypedDict):
    name: str
    ends: tuple[float, float | None]
    more: NotRequired[list[Row]]


class Loose(TypedDict, total=False):
    why: Required[Literal["a", "b"]]
    rest: dict[str, Any]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"name": "a", "ends": [1, None], "other": 1}, Row),
        ({"name": "a", "ends": [1, 2.5], "more": [{"name": "b", "ends": [0, 0]}]}, Row),
        ({"why": "a"}, Loose),
        ({"why": "b", "rest": {"x": [{}]}}, Loose),
        (None, Row | None),
    ],
)
def test_what_fits(value, kind):
    assert fits(value, kind)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"name": "a"}, Row),
        ({"name": 1, "ends": [1, None]}, Row),
        ({"name": "a", "ends": [1]}, Row),
        ({"name": "a", "ends": [1, "2"]}, Row),
        ({"name": "a", "ends": [1, float("inf")]}, Row),
        ({"name": "a", "ends": [1, 10**400]}, Row),
        ({"name": "a", "ends": [1, 2], "more": [{}]}, Row),
        ({"rest": {}}, Loose),
        ({"why": "c"}, Loose),
        ([], Row),
        (True, int | float),
    ],
)
def test_what_does_not(value, kind):
    assert not fits(value, kind)
