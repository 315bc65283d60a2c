import json

import jsonschema
import polars as pl
import pytest

from pennyweight.define import dtype
from pennyweight.record import (
    BY_NAME,
    COLUMNS,
    EXPORTED,
    KEY,
    STORED,
    VERSION,
    AttemptKey,
    json_schema,
)
from sources.samples import RECORDS

REQUIRED = {"fingerprint", "status"}


def test_only_two_names_mean_two_columns() -> None:
    """`expected` is a target, or a count beside observed behaviours; `violations` may be a list."""
    names = [name for column in COLUMNS for name in (column.name, *column.aliases)]
    assert sorted([*set(names), "expected", "violations"]) == sorted(names)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_every_column_says_what_it_means_and_has_a_type(column: object) -> None:
    assert column.meaning.strip().endswith(".") or "…" in column.meaning  # type: ignore[attr-defined]
    assert isinstance(dtype(column.name), pl.DataType | type)  # type: ignore[attr-defined]


def test_the_key_is_made_of_columns() -> None:
    assert set(KEY) <= set(BY_NAME)


def test_the_key_of_a_record_is_read_from_its_columns() -> None:
    key = AttemptKey("r", "s", "T0", "t", 1)
    assert AttemptKey.of({**key._asdict(), "status": "ok"}) == key
    assert tuple(key._asdict()) == KEY


def test_what_an_export_alone_has_is_no_column_of_a_source() -> None:
    stored = {column.name for column in STORED}
    assert stored - set(BY_NAME) == EXPORTED - {"person_verdict", "person_notes"}
    assert {"fingerprint", "messages"} <= EXPORTED
    assert not {column.name for column in STORED if not column.nullable} - {*KEY, *REQUIRED}


def test_the_names_that_the_three_specifications_use_are_understood() -> None:
    aliases = {alias: column.name for column in COLUMNS for alias in column.aliases}
    assert aliases["id"] == "task_id"
    assert aliases["model"] == "subject"
    assert aliases["prediction"] == "answer"
    assert aliases["weighted_score"] == "impl_rate"


COLUMNS_OF_VERSION_1 = """
string: run subject tier task_id status error input target category capability response reasoning
string: logprobs answer cot checks
integer: attempt prompt_tokens completion_tokens expected observed violations
number: prob_correct latency_ms impl_rate judge_cost_usd cost_usd input_price output_price
number: duration_seconds pass_score weight
boolean: truncated correct judge_passed passed required
strings: expected_behaviors observed_behaviors violated undecided
numbers: judge_scores
time: start_time end_time
"""


def test_the_schema_has_a_version_that_a_changed_column_would_raise() -> None:
    assert json_schema()["version"] == VERSION == 1
    for line in COLUMNS_OF_VERSION_1.split("\n")[1:-1]:
        kind, _, names = line.partition(": ")
        assert {BY_NAME[name].type for name in names.split()} == {kind}


def test_the_schema_accepts_records_and_refuses_bad_ones() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert json.loads(json.dumps(schema)) == schema
    valid = jsonschema.Draft202012Validator(schema)
    for record in RECORDS:
        assert valid.is_valid(record)
    assert valid.is_valid({"target": 4, "answer": "4", "unknown": {"kept": True}})
    for bad in (
        {"prob_correct": 1.5},
        {"prompt_tokens": -1},
        {"attempt": -1},
        {"status": "weird"},
        {"expected_behaviors": "x"},
        {"passed": "maybe"},
        [],
    ):
        assert not valid.is_valid(bad), bad
