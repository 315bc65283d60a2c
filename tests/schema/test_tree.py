"""Trees of YAML and JSON: values as they were written, each with its line."""

from typing import Any

import pytest

from pennyweight.schema.tree import Node, TreeError, parse, plain


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("010", "010"),
        ("1:30", "1:30"),
        ("7", 7),
        ("true", True),
        ("~", None),
        ("'7'", "7"),
    ],
)
def test_only_what_json_knows_is_more_than_text(text: str, value: Any) -> None:
    assert plain(parse(text, is_json=False)[0]) == value


@pytest.mark.parametrize(
    ("text", "is_json"),
    [("a:\n  - b\n  - {c: 1.50}\n", False), ('{"a":\n["b",\n{"c": 1.50}]}', True)],
)
def test_values_know_their_line_and_their_text(text: str, is_json: bool) -> None:
    root, problems = parse(text, is_json=is_json)
    node = root.get("a", 1, "c")
    assert not problems
    assert node is not None
    assert (node.line, node.text, str(node.value), node.value) == (3, "1.50", "1.50", 1.5)
    assert (root.line_at("a", 1, "c"), root.line_at("a", 7), root.get("x")) == (3, 1, None)


def test_merged_keys_keep_the_line_where_they_are_written() -> None:
    root, _ = parse("base: &b\n  x: 1\n  y: 2\nown: {<<: *b, y: 3}\n", is_json=False)
    own = root.get("own")
    assert own is not None
    assert (plain(own), own.key_line("x"), own.key_line("y")) == ({"x": 1, "y": 3}, 2, 4)


@pytest.mark.parametrize(
    ("text", "is_json", "line"),
    [("a: ]", False, 1), ("a: *b", False, 1), ('{"a": 1,\n}', True, 2), ('{"a": NaN}', True, 1)],
)
def test_what_cannot_be_parsed_has_a_line(text: str, is_json: bool, line: int) -> None:
    with pytest.raises(TreeError) as caught:
        parse(text, is_json=is_json)
    assert caught.value.line == line


def test_plain_values_are_read_without_being_copied_first() -> None:
    node = Node.of({"a": [1, {"b": None}]})
    assert plain(node) == node.value
    assert [(key, below.value) for key, below in node.items()] == [("a", [1, {"b": None}])]
