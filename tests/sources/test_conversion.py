import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from cli.command import pennyweight, refused, scores
from pennyweight.api.score import score
from pennyweight.errors import InputError, UsageError
from pennyweight.record import COLUMNS
from sources.samples import jsonl

VALUES: dict[str, Any] = {
    "string": "x",
    "integer": 1,
    "number": 0.5,
    "boolean": True,
    "strings": ["greets"],
    "numbers": [0.5, 1.0],
    "time": 12.5,
}
SPELLED = [(column, name) for column in COLUMNS for name in (column.name, *column.aliases)]


@pytest.mark.parametrize(("column", "name"), SPELLED, ids=lambda value: str(value)[:30])
def test_every_column_is_known_by_its_names(column: Any, name: str, tmp_path: Path) -> None:
    value = "ok" if column.choices else VALUES[column.type]
    out = tmp_path / "out.parquet"
    beside = {"observed": 0} if column.name == "expected" else {}
    score([{name: value, **beside}], metrics=["attempt_error_rate"], per_task=out)
    assert pl.read_parquet(out)[column.name].to_list() == [value]


def test_a_column_goes_before_its_aliases_and_they_fill_its_gaps() -> None:
    rows = [
        {"target": "a", "answer": "a", "prediction": "b"},
        {"target": "a", "answer": None, "prediction": "a"},
        {"target": "a", "prediction": "b", "final_answer": "a"},
    ]
    assert score(rows)["accuracy"].value == pytest.approx(2 / 3)


def test_map_names_what_is_not_known(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("case,output,gold\n1,4,4\n2,5,4\n")
    mapped = ["--map", "answer=output", "--map", "task_id = case"]
    (group,) = scores(path, *mapped, "--metric", "accuracy")
    assert group["metrics"]["accuracy"] == 0.5


def test_map_goes_before_the_column_and_takes_an_alias_away(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"target": "1", "answer": "0", "prediction": "1", "label": "7"}')
    assert scores(path, "--metric", "accuracy")[0]["metrics"]["accuracy"] == 0
    mapped = scores(path, "--metric", "accuracy", "--map", "answer=prediction")
    assert mapped[0]["metrics"]["accuracy"] == 1
    taken = scores(path, "--map", "category=label", "--map", "target=", "--by", "category")
    assert (taken[0]["group"], taken[0]["metrics"]["accuracy"]) == ({"category": "7"}, None)


def test_map_joins_columns_into_a_key(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(jsonl([{"set": s, "n": n} for s in "ab" for n in (1, 2)]))
    groups = scores(path, "--map", "task_id=set,n", "--by", "task_id")
    assert [g["group"]["task_id"] for g in groups] == ["a/1", "a/2", "b/1", "b/2"]


def test_map_to_nothing_ignores_a_column(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"id": 1, "status": "PASS", "target": "1", "answer": "1"}')
    message = refused("score", path)
    assert 'status is "PASS"; it must be one of ok, error, timeout, budget' in message
    assert scores(path, "--map", "status=")[0]["metrics"]["accuracy"] == 1


def test_a_wrong_map_is_told(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"id": 1, "output": "1", "target": "1"}')
    assert "Column 'anser' is not known. Did you mean 'answer'?" in refused(
        "score", path, "--map", "anser=output"
    )
    assert "--map answer=outptu: Column 'outptu' is not known. Did you mean 'output'?" in refused(
        "score", path, "--map", "answer=outptu"
    )
    assert "'answer': it must have the form NAME=VALUE" in refused("score", path, "--map", "answer")


def test_a_table_of_which_nothing_is_known_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a|b\n1|2\n")
    (tmp_path / "b.json").write_text('{"results": [{"id": 1}]}')
    assert 'None of the columns is known ("a|b")' in refused("score", tmp_path / "a.csv")
    assert 'None of the columns is known ("results")' in refused("score", tmp_path / "b.json")
    (tmp_path / "c.csv").write_text("preis_€|größe\n1|2\n", encoding="utf-8")
    assert '("preis_€|größe")' in refused("score", tmp_path / "c.csv")


def test_status_words_of_other_tools_and_errors_are_understood() -> None:
    rows = [{"status": s} for s in ("OK", " success ", "completed", "", None)]
    rows += [{"error": "boom"}, {"status": "error"}, {"status": "ok", "error": "kept"}]
    (group,) = score([{"target": "1", "answer": "1", **row} for row in rows]).groups
    assert (group.records, group.errors) == (8, 2)


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("values", [("Rome", "Bern"), ("4", "5"), (4, 5)])
def test_expected_is_the_target_where_no_behaviours_are_counted(
    values: tuple[Any, Any], ending: str, tmp_path: Path
) -> None:
    rows = [{"id": i, "expected": v, "answer": values[0]} for i, v in enumerate(values)]
    path, out = tmp_path / f"r.{ending}", tmp_path / "out.parquet"
    if ending == "jsonl":
        path.write_bytes(jsonl(rows))
    else:
        getattr(pl.DataFrame(rows), f"write_{ending}")(path)
    assert score(path, per_task=out)["accuracy"].value == 0.5
    assert pl.read_parquet(out)["target"].to_list() == [str(v) for v in values]
    assert score(path, metrics=["accuracy"])["accuracy"].value == 0.5


def test_expected_is_a_count_beside_what_was_observed() -> None:
    rows = [{"id": "a", "expected": 2, "observed": 1}, {"id": "b", "expected": 2, "observed": 2}]
    scores = score(rows)
    assert scores["behavior_coverage"].value == 0.75
    assert scores["accuracy"].value is None


def test_expected_with_two_meanings_is_refused(tmp_path: Path) -> None:
    answers = [{"id": f"a{i}", "expected": "4", "answer": "4"} for i in range(3)]
    counts = [{"id": f"b{i}", "expected": 3, "observed": 2} for i in range(3)]
    for name, rows in (("a.jsonl", answers), ("b.jsonl", counts)):
        (tmp_path / name).write_bytes(jsonl(rows))
    assert "'expected' is the target in some records" in refused("score", tmp_path)
    for mapped, metric in (("target", "accuracy"), ("expected", "behavior_coverage")):
        scores = score(tmp_path, map={mapped: "expected"})
        assert scores[metric].value is not None


def test_attempts_may_be_counted_from_0() -> None:
    def scored(first: int) -> Any:
        rows = [
            {"task_id": f"t{i % 4}", "repeat": first + i // 4, "target": "1", "answer": f"{i % 3}"}
            for i in range(12)
        ]
        return score(rows).to_dict()["groups"]

    assert scored(0) == scored(1)


WRONG = [
    ("prob_correct", 1.5, "it must be between 0 and 1"),
    ("prob_correct", -0.1, "it must be between 0 and 1"),
    ("prob_correct", "x", "it must be a number"),
    ("prob_correct", "NaN", "it must be a finite number"),
    ("prob_correct", True, "it must be a number"),
    ("prob_correct", [1], "it must be a number"),
    ("prompt_tokens", -1, "it must not be below 0"),
    ("prompt_tokens", 1.5, "it must be a whole number"),
    ("prompt_tokens", {"in": 1}, "it must be a number"),
    ("completion_tokens", 1e30, "it must not be above 9007199254740992"),
    ("completion_tokens", 2**63, "it must not be above 9007199254740992"),
    ("latency_ms", -0.001, "it must not be below 0"),
    ("latency_ms", "inf", "it must be a finite number"),
    ("cost_usd", "1e110", "it must not be above 1e+30"),
    ("cost_usd", "-1e110", "it must not be above 1e+30"),
    ("attempt", -1, "it must not be below 0"),
    ("attempt", "first", "it must be a number"),
    ("passed", "maybe", "it must be true or false"),
    ("passed", 2, "it must be true or false"),
    ("impl_rate", 1.01, "it must be between 0 and 1"),
    ("cost_usd", -1, "it must not be below 0"),
    ("status", "weird", "it must be one of ok, error, timeout, budget"),
    ("start_time", "soon", "it must be Unix seconds or an ISO 8601 time"),
    ("start_time", "nan", "it must be a finite number"),
    ("expected_behaviors", "greets", "it must be a list"),
    ("violated", {"a": 1}, "it must be a list"),
    ("judge_scores", "[0.5, NaN]", "its numbers must be finite"),
    ("judge_scores", "[0.5, -Infinity]", "its numbers must be finite"),
    ("judge_scores", ["Infinity"], "its numbers must be finite"),
]


@pytest.mark.parametrize(("column", "value", "rule"), WRONG)
def test_a_cell_that_cannot_be_is_told_with_its_record(
    column: str, value: Any, rule: str, tmp_path: Path
) -> None:
    fine = {"id": "fine", "target": "1", "answer": "1"}
    path = tmp_path / "r.jsonl"
    path.write_bytes(jsonl([fine, {"id": "bad one", column: value}]))
    message = refused("score", path)
    assert f'{path}, line 2: task "bad one": {column} is ' in message
    assert rule in message
    assert "--skip-bad" in message
    result = pennyweight("score", path, "--skip-bad", "--format", "json")
    assert (result.code, result.json["groups"][0]["records"]) == (0, 1)
    assert "1 bad record was left out" in result.err


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        ({"prob_correct": [0.5, float("nan")]}, "row 2: prob_correct is nan; it must be a finite"),
        ({"latency": [1.0, float("inf")]}, "row 2: latency_ms (column 'latency') is inf"),
        ({"start_time": [1.0, float("nan")]}, "row 2: start_time is nan"),
        ({"judge_scores": [[0.5], [float("nan"), 1.0]]}, "row 2: judge_scores is [nan, 1.0]; its"),
        ({"prompt_tokens": [True, False]}, "row 1: prompt_tokens is True; it must be a number"),
        ({"confidence": [[0.5], [0.1]]}, "row 1: prob_correct (column 'confidence') is"),
    ],
)
def test_a_frame_is_checked_as_a_file_is(frame: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        score(pl.DataFrame(frame))
    assert f"the frame, {told}" in str(caught.value)


@pytest.mark.parametrize("cells", [[[], []], [[None], []], [["0.5"], ["1"]]], ids=str)
def test_lists_without_numbers_of_their_own_type_are_read(tmp_path: Path, cells: Any) -> None:
    """A part of a table may have nothing but empty lists in a column."""
    path = tmp_path / "r.parquet"
    frame = pl.DataFrame({"id": ["a", "b"], "judge_scores": cells, "observed_behaviors": cells})
    frame.write_parquet(path)
    expected = [[float(one) for one in cell if one] for cell in cells]
    for source in (frame, path):
        out = tmp_path / "out.parquet"
        score(source, metrics=["attempt_error_rate"], per_task=out)
        assert pl.read_parquet(out)["judge_scores"].to_list() == expected


@pytest.mark.parametrize("cells", [[[[0.5]]], [["many"]]], ids=str)
def test_lists_of_no_numbers_are_told(cells: Any) -> None:
    with pytest.raises(InputError, match=r"row 1: judge_scores is .* it must be a list"):
        score(pl.DataFrame({"judge_scores": cells}))


def test_types_that_only_tables_have_are_understood(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "id": [b"a", b"\xff"],
            "answer": [[1, 2], [3]],
            "target": ["[1, 2]", "x"],
            "status": pl.Series(["ok", "timeout"], dtype=pl.Categorical),
            "cost": pl.Series(["1.5", "2.5"]).cast(pl.Decimal(10, 2)),
            "duration": pl.Series([1_500, 2_500]).cast(pl.Duration("ms")),
            "start_time": pl.Series([0, 1]).cast(pl.Datetime("us", "UTC")),
            "expected_behaviors": pl.Series([["a"], ["b"]], dtype=pl.Array(pl.String, 1)),
            "observed_behaviors": [["a"], None],
            "passed": pl.Series([None, None], dtype=pl.Null),
            "prompt_tokens": pl.Series([1, 2], dtype=pl.UInt8),
            "extra": [{"a": 1}, {"a": 2}],
        }
    )
    path = tmp_path / "r.parquet"
    frame.write_parquet(path)
    for source in (frame, path):
        found = score(source, by="extra", per_task=tmp_path / "out.jsonl")
        assert [g.group for g in found.groups] == [{"extra": '{"a": 1}'}, {"extra": '{"a": 2}'}]
        first, second = found.groups
        assert (first["accuracy"].value, second["accuracy"].value) == (1, 0)
        assert second["cost_usd_total"].value == 2.5
        assert first.statistics["duration_seconds"].mean == 1.5  # type: ignore[union-attr]


def test_two_columns_that_contradict_each_other_are_told(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(
        jsonl(
            [
                {"id": "a", "expected": 1, "observed": 2},
                {"id": "b", "start_time": "2024-01-02", "end_time": "2024-01-01"},
                {"id": "c", "expected": 1, "observed": 1, "start_time": 5, "end_time": 5},
            ]
        )
    )
    message = refused("score", path)
    assert 'line 1: task "a": observed is 2, but expected is 1.' in message
    assert 'line 2: task "b": start_time is 1704153600, but end_time is 1704067200.' in message
    assert scores(path, "--skip-bad")[0]["records"] == 1


def test_problems_of_an_array_on_one_line_are_counted_apart(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps([{"id": i, "latency_ms": -i} for i in range(5)]))
    assert "4 bad records were left out" in pennyweight("score", path, "--skip-bad").err


@pytest.mark.parametrize("bad", range(1, 5))
@pytest.mark.parametrize("good", range(3))
def test_lists_survive_bad_neighbours(bad: int, good: int, tmp_path: Path) -> None:
    lists = {"expected_behaviors": ["a", "b"], "observed_behaviors": ["a"]}
    rows = [{"id": f"b{i}", "passed": "?", **lists} for i in range(bad)]
    rows += [{"id": f"g{i}", **lists} for i in range(good)]
    found = score(rows, skip_bad=True)
    assert (found.groups[0].records, found.left_out) == (good, bad)
    assert found["behavior_coverage"].value == (0.5 if good else None)


def test_by_takes_unknown_columns_aliases_measures_and_columns(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(
        jsonl(
            [
                {"id": 1, "model": "a", "target": "1", "answer": "1", "seen": True, "n": 1},
                {"id": 2, "model": "b", "target": "1", "answer": "2", "seen": None, "n": "x"},
                {"id": 3, "model": "b", "target": "1", "answer": "1", "n": [1]},
            ]
        )
    )

    def groups(*by: str) -> list[dict[str, Any]]:
        options = [part for one in by for part in ("--by", one)]
        return [g["group"] for g in scores(path, *options, "--metric", "accuracy")]

    assert groups("model") == [{"model": "a"}, {"model": "b"}]
    assert groups("subject") == [{"subject": "a"}, {"subject": "b"}]
    assert groups("correct") == [{"correct": False}, {"correct": True}]
    assert groups("seen") == [{"seen": "true"}, {"seen": None}]
    assert groups("n") == [{"n": "1"}, {"n": "[1]"}, {"n": "x"}]
    both = [{"model": m, "correct": c} for m, c in [("a", True), ("b", False), ("b", True)]]
    assert groups("model,correct") == groups("model", "correct", "model") == both
    assert "in none of the records" in refused("score", path, "--by", "attempt")


def test_by_is_the_same_in_chunks_of_different_types(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1, "confidence": 0.5, "level": 1.0}')
    (tmp_path / "b.jsonl").write_text(
        '{"id": 2, "confidence": "0.5", "level": 1}\n{"id": 3, "x": 1e999}'
    )
    pl.DataFrame({"id": [4], "confidence": [0.5], "level": [1]}).write_parquet(
        tmp_path / "c.parquet"
    )
    counts = {
        by: {g["group"][by]: g["records"] for g in scores(tmp_path, "--by", by)}
        for by in ("confidence", "level")
    }
    assert counts == {"confidence": {"0.5": 3, None: 1}, "level": {"1": 3, None: 1}}


def test_an_unknown_by_column_is_told_with_the_nearest_name(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"id": 1, "colour": "red"}')
    assert "--by column 'color' is not known. Did you mean 'colour'?" in refused(
        "score", path, "--by", "color"
    )
    assert "Did you mean 'tier'?" in refused("score", path, "--by", "teir")


def test_hostile_column_names_do_no_harm(tmp_path: Path) -> None:
    names = [
        "_line",
        "_file",
        "_rows",
        "_row",
        "?0",
        "_group",
        "",
        " ",
        "metrics",
        "\x1b[31m",
        "a.b",
    ]
    row = {"id": "1", "answer": "1", "target": "1", "latency_ms": 5} | dict.fromkeys(names, "7")
    for form in (pl.DataFrame([row]), [row]):
        out = tmp_path / "out.jsonl"
        found = score(form, by="metrics", per_task=out)
        assert found["accuracy"].value == 1
        written = json.loads(out.read_text())
        assert {n for n in names if n not in written} <= {"_line", "_file"}


def test_map_with_an_unknown_column_fails_before_reading(tmp_path: Path) -> None:
    (tmp_path / "broken.jsonl").write_text("{")
    with pytest.raises(UsageError, match="Did you mean 'task_id'"):
        score(tmp_path / "broken.jsonl", map={"task_it": "x"})


def test_targets_without_any_answer_are_a_column_that_was_missed(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    rows = [{"id": i, "target": "a", "said": "a"} for i in range(3)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "no answers" in refused("score", path, "--metric", "accuracy")
    (group,) = scores(path, "--map", "answer=said")
    assert group["metrics"]["accuracy"] == 1
    (group,) = scores(path, "--map", "target=")
    assert group["metrics"]["accuracy"] is None
    (group,) = scores_of(tmp_path, [{"id": 1, "target": "a", "answer": None}])
    assert group["metrics"]["accuracy"] == 0  # asked and not answered


def scores_of(folder: Path, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    path = folder / "more.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return scores(path)


def test_a_table_without_a_known_column_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("Foo,Bar\n1,2\n3,4\n5,6\n")
    assert "None of the columns is known" in refused("score", path)
