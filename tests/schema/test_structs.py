"""Mappings with known keys: every problem at once, each with its line."""

import jsonschema
import pytest

from pennyweight.schema.kinds import Number, Text
from pennyweight.schema.problems import Problems
from pennyweight.schema.structs import Field, Struct
from pennyweight.schema.tree import parse

STRUCT = Struct(
    "a price",
    (
        Field("input", Number(0), "US dollars.", required=True),
        Field("output", Number(0), "US dollars."),
        Field("date", Text(), "The day.", default="today"),
        Field("zone", Text(), "The time zone."),
    ),
    {"prompt": "input"},
    either=("output", "date"),
    only_with=(("zone", "date"),),
)


def read(text: str) -> tuple[object, list[str]]:
    problems = Problems("p.yaml")
    value = STRUCT.read(parse(text, is_json=False)[0], "", problems)
    return value, problems.messages()


def test_what_is_right_is_read() -> None:
    assert read("input: 1\noutput: 2\n") == ({"input": 1, "output": 2}, [])


def test_every_problem_is_reported_with_its_line() -> None:
    _, messages = read("outptu: 2\nprompt: 1\nzone: UTC\n")
    assert messages == [
        "p.yaml, line 1: Key 'outptu' is not known. Did you mean 'output'? "
        "Keys of a price: input, output, date, zone.",
        "p.yaml, line 1: a price needs 'input': US dollars.",
        "p.yaml, line 1: a price needs 'output' or 'date'.",
        "p.yaml, line 2: Key 'prompt' is not known in a price. Did you mean 'input'?",
        "p.yaml, line 3: a price has 'zone', which requires 'date'.",
    ]


def test_what_is_no_mapping_is_refused() -> None:
    assert read("[1]")[1] == [
        "p.yaml, line 1: a price must be a mapping (input, output, date, zone, …), not a list."
    ]


def test_exactly_one_means_one() -> None:
    fields = (Field("a", Text()), Field("b", Text()))
    struct = Struct("it", fields, exactly_one=("a", "b"))
    assert struct.of({"a": "x"}, "it") == {"a": "x"}
    for wrong in ({}, {"a": "x", "b": "y"}):
        with pytest.raises(Exception, match="it needs exactly one of 'a' and 'b'"):
            struct.of(wrong, "it")
        assert not jsonschema.Draft202012Validator(struct.schema()).is_valid(wrong)


@pytest.mark.parametrize(
    "value", [{"input": 1, "output": 2}, {"input": 1}, {"output": 1}, {"input": 1, "zone": "x"}]
)
def test_the_schema_agrees(value: dict[str, object]) -> None:
    problems = Problems()
    STRUCT.read(parse(repr(value), is_json=False)[0], "", problems)
    assert jsonschema.Draft202012Validator(STRUCT.schema()).is_valid(value) is (not problems.found)
