import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.command import pennyweight, refused, scores, strict_json
from pennyweight.catalogue import METRICS
from sources.samples import RECORDS, jsonl

HOSTILE = "=2+3\x1b[31mred\x1b[0m\x9b2J\x07\u202e\u2066evil\n|`*<b>"
UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
STATISTICS = {
    "passed",
    "impl_rate",
    "cost_usd",
    "duration_seconds",
    "cost_of_pass",
    "composite_score",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "records.jsonl"
    file.write_bytes(jsonl(RECORDS))
    return file


def run(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pennyweight", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


UNUSED = "Not used: shade. Read one with --map COLUMN=THEIRS.\n"


def test_the_real_command_scores_a_file(path: Path) -> None:
    done = run("score", path, "--format", "json", env={**os.environ, "PYTHONIOENCODING": "utf-8"})
    assert (done.returncode, done.stderr) == (0, UNUSED)
    assert strict_json(done.stdout)["groups"] == scores(path)


def test_the_real_command_reads_standard_input_and_refuses_bad_input() -> None:
    bad = '{"id": 1}\n{"id": '
    done = run("score", "-", input=bad)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: -, line 2: not JSON")


def test_the_real_command_writes_what_its_terminal_cannot(path: Path) -> None:
    done = run("score", path, env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert (done.returncode, done.stderr) == (0, UNUSED)
    assert "accuracy" in done.stdout


def test_json_has_the_structure_that_is_promised(path: Path) -> None:
    (group,) = scores(path)
    names = set(METRICS)
    assert list(group) == [
        *("group", "records", "errors", "tasks", "metrics", "intervals", "skipped", "skewed"),
        *("statistics", "repeats", "pooled"),
    ]
    assert (group["group"], group["records"], group["errors"]) == ({}, 40, 1)
    assert set(group["metrics"]) == set(group["intervals"]) == set(group["skipped"]) == names
    for name, value in group["metrics"].items():
        ends = group["intervals"][name]
        assert value is None or isinstance(value, int | float | str)
        assert ends is None or len(ends) == 2
        assert isinstance(group["skipped"][name], int)
        if isinstance(value, float) and ends and "Infinity" not in ends:
            assert ends[0] <= value <= ends[1]
    assert set(group["statistics"]) == STATISTICS
    fields = ["median", "mean", "mode", "min", "max", "std_dev", "count"]
    assert sorted(group["statistics"]["cost_usd"]) == sorted(fields)
    assert group["statistics"]["duration_seconds"] is None


def test_k_is_an_option_of_metrics_of_repeated_attempts(tmp_path: Path) -> None:
    rows = [
        {"task_id": task, "attempt": i, "passed": i <= passes}
        for task, passes in {"a": 3, "b": 1}.items()
        for i in (1, 2, 3)
    ]
    file = tmp_path / "repeated.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    asked = ("score", file, "--metric", "pass_at_k", "--format", "json")
    for option in (("--k", "2"), ("--set", "k=2")):
        (group,) = pennyweight(*asked, *option).json["groups"]
        assert group["metrics"]["pass_at_k"] == pytest.approx(5 / 6)
        assert group["repeats"]["k"] == 2
    (group,) = pennyweight(*asked).json["groups"]
    assert (group["metrics"]["pass_at_k"], group["repeats"]["k"]) == (1.0, 3)
    assert pennyweight(*asked, "--k", "0").code == 2


def test_json_of_groups_has_one_object_for_each(path: Path) -> None:
    result = pennyweight("score", path, "--by", "shade,model", "--format", "json")
    assert set(result.json) == {"groups", "errors", "weight", "estimand"}
    groups = [g["group"] for g in result.json["groups"]]
    assert all(list(g) == ["shade", "model"] for g in groups)
    assert {g["shade"] for g in groups} == {"dark", "light", None}
    assert sum(g["records"] for g in result.json["groups"]) == 40
    assert result.err == ""


def test_infinity_in_json_is_a_string(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(jsonl([{"id": i, "cost": 1, "passed": False} for i in range(4)]))
    (group,) = scores(path)
    assert group["metrics"]["cost_of_pass"] == "Infinity"
    assert group["statistics"]["cost_of_pass"]["mean"] == "Infinity"
    assert "∞" in pennyweight("score", path).out


def test_only_the_metrics_that_are_asked_for(path: Path) -> None:
    (group,) = scores(path, "--metric", "ece, accuracy", "--metric", "ece")
    assert list(group["metrics"]) == ["accuracy", "ece"]


@pytest.mark.parametrize("format_", ["table", "markdown"])
def test_a_default_table_has_eight_metrics_and_says_how_to_see_the_others(
    format_: str, path: Path
) -> None:
    def named(*options: str) -> set[str]:
        text = pennyweight("score", path, "--format", format_, *options).out.replace("\\_", "_")
        return {name for name in METRICS if re.search(rf"^\W*{name} ", text, re.MULTILINE)}

    brief, whole = named(), named("--all")
    assert len(brief) == 8
    assert {"accuracy", "cost_of_pass", "attempt_error_rate"} <= brief < whole
    out = pennyweight("score", path, "--format", format_).out
    assert re.search(r"^--all shows every metric\.$", out, re.M)
    assert "--all" not in pennyweight("score", path, "--format", format_, "--all").out
    assert set(scores(path)[0]["metrics"]) == set(METRICS)


def test_confidence_widens_intervals_and_may_be_in_percent(path: Path) -> None:
    def ends(*options: str) -> Any:
        return scores(path, "--metric", "accuracy", *options)[0]["intervals"]["accuracy"]

    narrow, wide = ends("--confidence", "0.5"), ends("--confidence", "0.99")
    assert wide[0] < ends()[0] < narrow[0] < narrow[1] < ends()[1] < wide[1]
    assert ends("--confidence", "99") == wide


def test_the_seed_decides_what_is_resampled(path: Path) -> None:
    first, again, other = (scores(path, "--seed", seed)[0]["intervals"] for seed in "112")
    assert first == again
    assert first != other
    assert first["accuracy"] == other["accuracy"]


def test_positive_weight_and_set_reach_their_metrics(path: Path) -> None:
    (group,) = scores(path, "--positive", "1000", "--metric", "precision,recall")
    assert group["metrics"] == {"precision": 24 / 31, "recall": 24 / 30}
    (group,) = scores(
        path, "--weight", "accuracy=1,error_rate=3", "--metric", "weighted_score,accuracy"
    )
    right = group["metrics"]["accuracy"]
    assert group["metrics"]["weighted_score"] == pytest.approx((right + 3 * (1 - right)) / 4)
    assert scores(path, "--set", "bins=1")[0]["metrics"]["ece"] != scores(path)[0]["metrics"]["ece"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ["--metric", "acuracy"],
            "Metric 'acuracy' is not known. Did you mean 'accuracy'? 'pennyweight metrics'",
        ),
        (
            ["--metric", "zzzzzz"],
            "Metric 'zzzzzz' is not known. 'pennyweight metrics' lists them all; --scorers",
        ),
        (["--by", "modle"], "--by column 'modle' is not known. Did you mean 'model'?"),
        (["--set", "binz=3"], "Option 'binz' is not known. Did you mean 'bins'?"),
        (["--set", "by=tier"], "Option 'by' is not known."),
        (["--set", "seed=5"], "Option 'seed' is not known."),
        (["--set", "skip_bad=no"], "Option 'skip_bad' is not known."),
        (["--set", "bins"], "it must have the form NAME=VALUE"),
        (["--set", "bins=many"], "'many' is not a number"),
        (["--set", "bins=0"], "bins is 0"),
        (["--set", "bins=2.5"], "it must be a whole number"),
        (["--set", "bins=1e999"], "it must be a finite number"),
        (["--set", "pass_weight=0", "--set", "impl_weight=0"], "add up to 0"),
        (["--weight", "accuracy"], "it must have the form NAME=VALUE"),
        (["--weight", "accuracy=x"], "'x' is not a number"),
        (["--weight", "accuracy=nan"], "it must be a finite number"),
        (["--weight", "acuracy=1"], "Did you mean 'accuracy'?"),
        (["--weight", "accuracy=0"], "add up to 0"),
        (["--weight", "weighted_score=1"], "cannot be one of its own weights"),
        (["--confidence", "0"], "must be between 0 and 1"),
        (["--confidence", "1"], "must be between 0 and 1"),
        (["--confidence", "100"], "must be between 0 and 1"),
        (["--confidence", "-0.5"], "must be between 0 and 1"),
        (["--confidence", "nan"], "must be between 0 and 1"),
        (["--confidence", "high"], "not a valid float"),
        (["--seed", "x"], "not a valid integer"),
        (["--format", "xml"], "'xml' is not one of"),
        (["--nope"], "No such option"),
    ],
)
def test_a_wrong_option_is_told(options: list[str], told: str, path: Path) -> None:
    assert told in refused("score", path, *options)


def test_help_lists_the_names_that_are_understood() -> None:
    result = pennyweight("score", "--help")
    text = " ".join(result.out.split())
    assert result.code == 0
    for alias in ("task_id ← id", "subject ← model", "answer ← prediction", "weighted_score"):
        assert alias in text
    assert all(len(line) <= 80 for line in result.out.splitlines())


def test_unknown_commands_and_missing_arguments_are_usage_errors() -> None:
    assert "Command 'scor' is not known. Did you mean 'score'?" in refused("scor", "x")
    assert refused("score")
    assert refused()
    assert pennyweight("--version").out.startswith("pennyweight")


@pytest.mark.parametrize("by", ["", "shade", "model,shade", "task_id"])
def test_the_table_fits_eighty_columns(
    by: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = pennyweight("score", path, "--by", by)
    assert result.code == 0
    assert max(map(len, result.out.splitlines())) <= 80


def test_the_table_is_by_family_and_says_why_there_is_no_value(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(jsonl([{"id": i, "target": "1", "answer": "1"} for i in range(10)]))
    out = pennyweight("score", path, "--all").out
    lines = out.splitlines()
    for family in ("Answers", "Calibration", "Reasoning", "Runs and cost", "Scenarios", "Attempts"):
        assert family in lines
    accuracy, brier = (
        next(x for x in lines if x.startswith(f"  {n} ")) for n in ("accuracy", "brier")
    )
    assert accuracy.split() == "accuracy 100.0 % 72.0 to 100.0 % 10".split()
    assert "—" in brier
    assert "needs" in brier
    assert "prob_correct" in brier
    assert "10 records." in out


def test_long_and_wide_group_names_do_not_break_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path = tmp_path / "r.jsonl"
    path.write_bytes(jsonl([{"id": i, "x": w * 99} for i, w in enumerate(["long", "[/]", "a b "])]))
    result = pennyweight("score", path, "--by", "x")
    assert result.code == 0
    assert max(map(len, result.out.splitlines())) <= 80


@pytest.mark.parametrize("format_", ["table", "markdown"])
def test_what_records_say_cannot_steer_a_terminal(format_: str, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(jsonl([{"id": HOSTILE, "x": HOSTILE}, {"id": "b", "x": "plain"}]))
    result = pennyweight("score", path, "--by", "x", "--format", format_)
    assert result.code == 0
    assert not UNSAFE.search(result.out)
    assert "evil" in result.out or "red" in result.out


def test_what_records_say_cannot_steer_a_terminal_through_an_error(tmp_path: Path) -> None:
    name = HOSTILE.replace("/", "")
    path = tmp_path / f"{name}.jsonl"
    rows = [{"id": HOSTILE, "status": HOSTILE}, {"id": HOSTILE}, {"id": HOSTILE}, {HOSTILE: 1}]
    path.write_bytes(jsonl(rows))
    for options in ([], ["--skip-bad"], ["--by", HOSTILE + "x"], ["--metric", HOSTILE]):
        result = pennyweight("score", path, *options, "--format", "json")
        assert result.err
        assert not UNSAFE.search(result.err), (options, result.err)


def test_markdown_cells_cannot_break_out(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(jsonl([{"id": 1, "x": "a"}, {"id": 2, "x": "b"}]))
    out = pennyweight(
        "score", path, "--by", "x", "--format", "markdown", "--metric", "accuracy,usr"
    ).out
    assert out.count("### x=") == 2
    rows = [line for line in out.splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {5}


def test_csv_guards_cells_that_a_spreadsheet_would_run(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    values = ["=1+1", "+A1", "-A1", "@SUM(A1)", "\tx", "\rx", "a\r=1+1", 'plain, "quoted"\nline']
    path.write_bytes(jsonl([{"id": i, "x": v} for i, v in enumerate(values)]))
    out = pennyweight("score", path, "--by", "x", "--format", "csv", "--metric", "accuracy").out
    rows = list(csv.DictReader(io.StringIO(out, newline="")))
    assert {row["x"] for row in rows} == {f"'{v}" for v in values[:-2]} | {*values[-2:]}


def test_csv_has_one_row_for_each_group_and_metric(path: Path) -> None:
    out = pennyweight("score", path, "--by", "model", "--format", "csv").out
    rows = list(csv.DictReader(io.StringIO(out)))
    columns = ("metric", "value", "low", "high", "records", "skipped", "pooled", "errors")
    assert tuple(rows[0]) == ("model", *columns)
    assert len(rows) == 2 * len(METRICS)
    expected = scores(path, "--by", "model")[0]["metrics"]["accuracy"]
    assert float(rows[0]["value"]) == expected


def test_progress_and_warnings_do_not_touch_standard_output(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(jsonl([{"id": 1}, {"id": 2, "latency_ms": -1}]))
    result = pennyweight(
        *("score", path, "--skip-bad", "--format", "json", "--per-task", tmp_path / "o.jsonl")
    )
    assert json.loads(result.out)
    assert "left out" in result.err
    assert "o.jsonl" in result.err


def test_several_scorers_are_named_like_several_metrics(path: Path) -> None:
    metric = ("--metric", "exact_match,token_f1", "--format", "csv")
    one = pennyweight("score", str(path), "--scorers", "exact_match,token_f1", *metric)
    two = pennyweight(
        *("score", str(path), "--scorers", "exact_match", "--scorers", "token_f1"), *metric
    )
    assert one.code == 0
    assert (one.out, one.out.count("\n")) == (two.out, 3)


def test_scores_of_errors_alone_say_that_nothing_was_made(tmp_path: Path) -> None:
    rows = [{"task_id": "a", "target": "4", "status": "error"}]
    made = tmp_path / "x.jsonl"
    made.write_bytes(jsonl(rows))
    shown = pennyweight("score", str(made), "--metric", "accuracy,attempt_error_rate").out
    assert "no attempt could be made" in shown
    assert "needs answer" not in shown


def test_an_empty_file_has_no_valid_records_to_score(tmp_path):
    (tmp_path / "empty.jsonl").write_text("")
    assert "--skip-bad" not in refused("score", tmp_path / "empty.jsonl")


def test_only_the_missing_columns_are_named(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"id": 1, "passed": true}\n')
    out = pennyweight("score", tmp_path / "a.jsonl", "--all").out
    assert re.search(r"cost_of_pass +— +needs cost_usd\n", out)
    assert re.search(r"passed +100\.0 % +100\.0 %", out)
