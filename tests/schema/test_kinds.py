"""Kinds of values: what they accept, and what they say about the rest."""

from typing import Any

import pytest

from pennyweight.errors import UsageError
from pennyweight.schema.kinds import (
    AnyOf,
    Anything,
    Deferred,
    Flag,
    Kind,
    ListOf,
    MapOf,
    Null,
    Number,
    OneOf,
    ParsedBy,
    Text,
    Verbatim,
)
from pennyweight.schema.tree import Node

ACCEPTED: list[tuple[Kind, Any, Any]] = [
    (Text(), 7, "7"),
    (Text(), True, "true"),
    (Text("a name", one_line=True), " a ", "a"),
    (Number(0, whole=True), 2.0, 2),
    (Number(0, loose=True), "1,000.5", 1000.5),
    (Flag(loose=True), "Yes", True),
    (OneOf(("high",), any_case=True), "High", "high"),
    (Null(), None, None),
    (Anything(), {"a": [1, None]}, {"a": [1, None]}),
    (Verbatim(Number(0)), None, None),
    (ListOf(Text(), lone=True), "a", ["a"]),
    (ListOf(Number(0)), (1, 2), [1, 2]),
    (MapOf(Number(0)), {"a": 1}, {"a": 1}),
    (AnyOf((Null(), Number(0))), 3, 3),
    (ParsedBy(int, {}, "a whole number", Text()), "7", 7),
]

REFUSED: list[tuple[Kind, Any, str]] = [
    (Text(strict=True), 7, "x must be text, not 7."),
    (Text("a name", one_line=True), " ", "x must be a name, not ' '."),
    (Text("a name", one_line=True), "a\0", "no database accepts"),
    (Text("text that is not empty", filled=True), "", "text that is not empty, not ''."),
    (Number(0, 1), True, "x must be a number from 0 to 1, not true."),
    (Number(0, above=True), 0, "x must be a number above 0, not 0."),
    (Number(1, whole=True), 1.5, "x must be a whole number of at least 1, not 1.5."),
    (Number(), float("nan"), "x must be a number, not nan."),
    (Number(), "7", "x must be a number, not '7'."),
    (Number(whole=True), 10**400, "x must be a whole number"),
    (Flag(), None, "x must be true or false, not an empty value."),
    (OneOf(("a", "b", "c")), "d", "x must be 'a', 'b' or 'c', not 'd'."),
    (OneOf(("a",)), ["a"], "x must be 'a', not a list."),
    (ListOf(Text(), some=True), [], "x must be a list, not an empty list."),
    (ListOf(Number(0)), [1, "a", -1], "x[2] must be a number of at least 0, not 'a'. x[3] must"),
    (MapOf(Number(0)), {"a": "b"}, "x.a must be a number of at least 0, not 'b'."),
    (AnyOf((Null(), Number(0))), {}, "x must be null or a number of at least 0, not a mapping."),
    (Verbatim(Number(0)), -1, "x must be a number of at least 0, not -1."),
    (ParsedBy(int, {}, "a whole number"), "7a", "x must be a whole number, not '7a'."),
]


@pytest.mark.parametrize(("kind", "value", "read"), ACCEPTED, ids=str)
def test_accepted(kind: Kind, value: Any, read: Any) -> None:
    assert kind.of(value, "x") == read
    assert kind.expected
    assert isinstance(kind.schema(), dict)


@pytest.mark.parametrize(("kind", "value", "message"), REFUSED, ids=str)
def test_refused(kind: Kind, value: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        kind.of(value, "x")
    assert message in str(caught.value)


def test_a_deferred_value_keeps_its_lines() -> None:
    node = Node.of({"a": 1})
    assert Deferred(MapOf(Anything())).of(node.value, "x").value is node.value
