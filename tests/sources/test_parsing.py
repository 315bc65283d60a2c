import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cli.command import pennyweight, refused, scores
from pennyweight.api.score import score
from pennyweight.errors import PennyweightError
from sources.samples import FORMS, PACKED, RECORDS

BIG = "1234567890123456789012345678901234567890"


@pytest.fixture
def accuracy(tmp_path: Path) -> Callable[..., float | None]:
    def compute(*lines: str, name: str = "r.jsonl") -> float | None:
        path = tmp_path / name
        path.write_text("\n".join(lines))
        return score(path, metrics=["accuracy"])["accuracy"].value  # type: ignore[return-value]

    return compute


@pytest.mark.parametrize(
    ("target", "answer", "equal"),
    [
        (BIG, f'"{BIG}"', True),
        (BIG, BIG, True),
        (BIG, f'"{BIG[:-1]}1"', False),
        ("9007199254740993", "9007199254740992", False),
        ("9007199254740993", '"9007199254740993.0"', True),
        ("1e400", '"1e400"', True),
        ("1e400", "1e401", False),
        ("-1e400", '"1e400"', False),
        ("1e2", '"100"', True),
        ("1.50", '"1.5"', True),
        ("-0", '"0"', True),
        ("true", '"True"', True),
        ("[1, 2]", "[1,2]", True),
        ('{"a": 1}', '{"a":2}', False),
        (r'"\u0000"', r'"\u0000"', True),
        (r'"\ud83d\ude00"', '"😀"', True),
        (r'"é"', r'"\u00e9"', True),
    ],
)
@pytest.mark.parametrize("other", ["", '{"id": 2, "prob_correct": "0.5"}', '{"id": 2, "x": 1e999}'])
def test_answers_in_json_are_compared_exactly(
    target: str, answer: str, equal: bool, other: str, accuracy: Callable[..., float | None]
) -> None:
    line = f'{{"id": 1, "target": {target}, "answer": {answer}}}'
    assert accuracy(line, other) == float(equal)
    array = f"[{line}{', ' if other else ''}{other}]"
    assert accuracy(array, name="r.json") == float(equal)


def test_numbers_may_be_written_as_text(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(
        '{"id": 1, "prob_correct": "0.5", "prompt_tokens": " 12 ", "latency_ms": "1e2", '
        '"passed": "Yes", "start_time": "10", "end_time": "2000-01-01T00:00:00Z", "target": "1", '
        '"answer": null}\n'
        '{"id": 2, "prob_correct": 0.5, "prompt_tokens": 12.0, "latency_ms": 100, "passed": 1}\n'
        '{"id": 3, "prob_correct": "", "prompt_tokens": null, "latency_ms": " ", "passed": ""}\n'
    )
    (group,) = scores(path)
    metrics = group["metrics"]
    assert (metrics["prompt_tokens_mean"], metrics["latency_mean_ms"]) == (12, 100)
    assert (metrics["pass_rate"], metrics["brier"]) == (1, 0.25)
    assert group["statistics"]["duration_seconds"]["max"] == 946684790


def test_the_first_of_equal_keys_counts_whatever_else_is_in_the_file(
    accuracy: Callable[..., float | None],
) -> None:
    line = '{"id": 1, "target": "1", "answer": "1", "answer": "2"}'
    assert accuracy(line) == 1
    assert accuracy(line, '{"id": 2, "passed": "yes", "latency_ms": "1"}') == 1
    assert accuracy(line, '{"id": 2, "x": 1e999}') == 1


@pytest.mark.parametrize(
    "later",
    [
        '{"id": 2, "target": "5", "prediction": "5"}',
        '{"id": 2, "target": "5", "answer": null, "prediction": "5"}',
        '{"id": 2, "target": "5", "prediction" : "5"}',
        '{"id": 2, "target": "5", "prediction"\t:"5"}',
        '{"id": 2, "target": "5", "predictio\\u006e": "5"}',
        '{"task_id": "2", "note": "\\"answer\\": 1", "target": "5", "prediction": "5"}',
        '{"id": 2, "target": "5", "more": {"answer": "4"}, "prediction": "5"}',
    ],
)
def test_a_name_that_only_later_records_have_is_found(
    later: str, accuracy: Callable[..., float | None]
) -> None:
    first = '{"id": 1, "target": "5", "answer": "5", "note": "as: \\"answer\\": 5"}'
    assert accuracy(first, later) == 1
    assert accuracy('{"id": 1, "target": "5", "answer": "5"}', later) == 1


def test_half_characters_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(
        '{"id": 1, "target": "x", "answer": "\\ud800"}\n{"id": 2, "a\\udfff": "\\udc00"}'
    )
    assert scores(path)[0]["metrics"]["accuracy"] == 0
    path.write_text('{"id": "\\ud800", "latency_ms": "-1"}\n{"id": 2, "\\udfff": 1e999}')
    out = tmp_path / "out.jsonl"
    assert "must not be below 0" in refused("score", path)
    assert pennyweight("score", path, "--skip-bad", "--per-task", out).code == 0
    assert len(out.read_text().splitlines()) == 1


def test_a_record_may_be_empty_or_huge(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("{}\n{}\n")
    assert scores(path, "--metric", "accuracy")[0]["records"] == 2
    huge = {"id": 1, "cot": "word " * 400_000, "target": "1", "answer": "1"}
    path.write_text(json.dumps(huge) + "\n{}\n")
    (group,) = scores(path, "--metric", "cot_tokens_mean,accuracy")
    assert group["metrics"] == {"accuracy": 1, "cot_tokens_mean": 400_000}
    path = tmp_path / "r.csv"
    path.write_text(f'id,cot,latency_ms\n1,"{"word " * 400_000}\n",1\n2,,-1,5\n')
    assert "line 4: 4 cells where the header has 3." in refused("score", path)


def test_what_is_wrong_with_each_line_is_told(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    wrong = {
        '{"id": 1,': "not JSON",
        "[1]": "a JSON object is needed here, not an array",
        "5": "a JSON object is needed here, not a number",
        '"x"': "a JSON object is needed here, not a string",
        "null": "a JSON object is needed here, not a value",
        '{"id": 1} {"id": 2}': "not JSON: Extra data",
        '{"prob_correct": NaN}': "NaN is not a number in JSON; write null",
        '{"x": Infinity}': "Infinity is not a number in JSON",
        '{"x": [-Infinity]}': "-Infinity is not a number in JSON",
        '{"id": "a\tb"}': "not JSON: Invalid control character",
        '{"id": "a\0b"}': "not JSON: Invalid control character",
        "\0\0": "not JSON",
        '{"id": 01}': "not JSON",
        "{'id': 1}": "not JSON",
        '{"id": ' + "[" * 99_999 + "]" * 99_999 + "}": "not JSON that can be read: nested",
        '{"id": "\\x"}': "not JSON",
    }
    path.write_text("\n".join(['{"id": "fine", "target": "1", "answer": "1"}', *wrong]))
    message = refused("score", path)
    for number, told in enumerate(wrong.values(), start=2):
        assert f"{path}, line {number}: {told}" in message
    result = pennyweight("score", path, "--skip-bad", "--format", "json")
    assert (result.code, result.json["groups"][0]["records"]) == (0, 1)
    assert f"{len(wrong)} bad records were left out" in result.err


def test_what_is_wrong_with_each_row_of_csv_is_told(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text('id,answer,target\n1,1,1\n2,1,1,1,1\n3,"1"x,1\n4,1,1\n5,"1,1\n6,1,1\n')
    message = refused("score", path)
    assert f"{path}, line 3: 5 cells where the header has 3." in message
    assert f"{path}, line 4: not CSV" in message
    assert f"{path}, line 6: not CSV: a quote is opened here, but never closed." in message
    result = pennyweight("score", path, "--skip-bad", "--format", "json", "--metric", "accuracy")
    assert result.json["groups"][0]["records"] == 2
    path.write_text("id,answer,answer\n1,1,1\n")
    assert "line 1: the column 'answer' appears twice" in refused("score", path)


def test_a_csv_header_may_have_blanks_quotes_and_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text('"id", answer ,"target","two\nlines"\n1,4,4,x\n')
    (group,) = scores(path, "--by", "two\nlines", "--metric", "accuracy")
    assert (group["group"], group["metrics"]) == ({"two\nlines": "x"}, {"accuracy": 1})


def test_an_empty_cell_is_missing_quoted_or_not(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    for more in ("", '4,"a\nb"\n', "4,x,y\n"):
        path.write_text('id,target\n1,""\n2,\n3,3\n' + more)
        arguments = ["--skip-bad", "--metric", "pass_rate", "--by", "target"]
        groups = {g["group"]["target"]: g["records"] for g in scores(path, *arguments)}
        assert (groups[None], groups["3"]) == (2, 1)


def test_a_broken_parquet_file_is_named(tmp_path: Path) -> None:
    whole = FORMS["parquet"][1](RECORDS)
    for number, data in enumerate([b"PAR1", b"no", whole[:-9], whole[9:], whole[:-4] + b"PAR2"]):
        path = tmp_path / f"{number}.parquet"
        path.write_bytes(data)
        assert f"{path}: not a readable Parquet file" in refused("score", path)


mutations = st.lists(
    st.tuples(
        st.sampled_from(["set", "cut", "insert", "drop", "swap"]),
        st.floats(0, 1, exclude_max=True),
        st.sampled_from(list(b'\x00\xff\xc3"\\,;\n\r\t{}[]:-+eE0NI\x1b') + list(range(0, 256, 5))),
    ),
    min_size=1,
    max_size=6,
)


def mutated(data: bytes, changes: list[tuple[str, float, int]]) -> bytes:
    for kind, share, byte in changes:
        at = int(share * len(data))
        middle = {
            "set": bytes([byte]),
            "insert": bytes([byte]) + data[at : at + 1],
            "swap": data[:byte],
        }
        data = data[:at] if kind == "cut" else data[:at] + middle.get(kind, b"") + data[at + 1 :]
    return data


@pytest.mark.parametrize("form", [f for f in FORMS if f not in {"ndjson", "lf", "all quoted"}])
@settings(max_examples=30)
@given(changes=mutations, packed=st.sampled_from(["", "", "", *PACKED]), skip=st.booleans())
@example(changes=[("cut", 0.9, 0)], packed="", skip=True)
def test_no_damage_to_a_file_is_more_than_an_error(
    form: str,
    changes: list[tuple[str, float, int]],
    packed: str,
    skip: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    suffix, write = FORMS[form]
    path = tmp_path_factory.mktemp("damaged") / f"r{suffix}{packed}"
    path.write_bytes(mutated(PACKED[packed](write(RECORDS[:6])), changes))
    with suppress(PennyweightError):
        score(path, skip_bad=skip, by="shade", metrics=["accuracy", "brier", "behavior_coverage"])
