"""`pennyweight judge`, and what the other commands say of judgments."""

import json

import polars as pl
import pytest

from engine.judges import asked, judge, judged_suite, judgments, metrics, pennyweight


def unjudged(folder, tasks=2):
    """Make a run without a judge."""
    path = judged_suite(folder, judge("good"), tasks)
    text = [line for line in path.read_text().splitlines() if not line.startswith("judge:")]
    text = [line for line in text if not line.startswith("  good:")]
    path.write_text("\n".join(text) + "\n")
    done = pennyweight(folder, "run", path)
    assert done.returncode == 0, done.stderr
    return path


def test_an_old_run_is_judged_without_running_it_again(tmp_path):
    unjudged(tmp_path).unlink()
    done = pennyweight(
        tmp_path, "judge", "latest", "--rubric", "rubric.yaml", "--model", "python:m:good",
        "--model", "python:m:fair", "--format", "json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert metrics(done)["impl_rate_mean"] == pytest.approx(0.6)
    again = pennyweight(tmp_path, "score", "latest", "--format", "json")
    assert metrics(again) == metrics(done)


def test_without_a_judge_it_says_how_to_name_one(tmp_path):
    unjudged(tmp_path)
    done = pennyweight(tmp_path, "judge")
    assert done.returncode == 2
    assert "names no judge. Name one with --model" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "nobody"], "'nobody' is not the name of a model"),
        (["--model", "python:m:good", "--rubric", "none.yaml"], "none.yaml: no such file"),
        (["--model", "python:m:nothing"], "function 'nothing' is not known"),
    ],
)
def test_mistakes_are_told_before_anyone_is_asked(tmp_path, arguments, said):
    unjudged(tmp_path)
    done = pennyweight(tmp_path, "judge", "latest", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert asked(tmp_path, "good") == 0


def test_show_counts_judgments_invalid_ones_and_claims(tmp_path):
    path = judged_suite(tmp_path, judge("good", "fair", "broken"))
    assert pennyweight(tmp_path, "run", path).returncode == 0
    shown = json.loads(pennyweight(tmp_path, "show", "--format", "json").stdout)["judgments"]
    assert (shown["valid"], shown["invalid"], shown["errors"]) == (4, 2, 0)
    assert shown["differing_claims"] == 2
    assert shown["by_judge"] == {"broken": 2, "fair": 2, "good": 2}
    assert shown["cost_usd"] == pytest.approx(12 * 200 / 1e6)
    assert "differing claims" in pennyweight(tmp_path, "show").stdout


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_the_score_of_an_export_is_the_score_of_the_run(tmp_path, kind):
    path = judged_suite(tmp_path, judge("good", "fair"), tasks=3)
    done = pennyweight(tmp_path, "run", path, "--format", "json")
    assert pennyweight(tmp_path, "export", "-o", f"records.{kind}").returncode == 0
    scored = pennyweight(tmp_path, "score", f"records.{kind}", "--format", "json")
    names = (
        "impl_rate_mean",
        "pass_rate",
        "judge_mean_absolute_difference",
        "judge_cost_usd_total",
    )
    assert {n: metrics(scored)[n] for n in names} == {n: metrics(done)[n] for n in names}


def test_the_judgments_themselves_are_exported(tmp_path):
    path = judged_suite(tmp_path, judge("good"))
    pennyweight(tmp_path, "run", path)
    rows = [
        json.loads(x) for x in pennyweight(tmp_path, "export", "--judgments").stdout.splitlines()
    ]
    assert [row["judge"] for row in rows] == ["good", "good"]
    assert json.loads(rows[0]["items"])["a"] == {"score": 1.0, "evidence": "seen"}
    assert pennyweight(tmp_path, "export", "--judgments", "-o", "j.parquet").returncode == 0
    assert pl.read_parquet(tmp_path / "j.parquet").height == 2


def test_what_was_verified_goes_before_the_judges(tmp_path):
    path = judged_suite(tmp_path, judge("good"))
    module = tmp_path / "m.py"
    module.write_text(module.read_text().replace('"Response to " + text,', '"x", "passed": False,'))
    values = metrics(pennyweight(tmp_path, "run", path, "--format", "json"))
    assert (values["pass_rate"], values["impl_rate_mean"]) == (0.0, pytest.approx(0.7))


def test_the_plan_names_the_judges(tmp_path):
    path = judged_suite(tmp_path, judge("good", "fair"))
    done = pennyweight(tmp_path, "run", path, "--dry-run")
    assert "4 judgments by good, fair" in done.stdout
    assert asked(tmp_path, "good") == 0


def test_recorded_judgments_are_replayed_with_the_same_numbers(tmp_path):
    three = judge("first", "second", "third", consensus="confidence")
    path = judged_suite(tmp_path, three, tasks=3)
    first = pennyweight(tmp_path, "run", path, "--record", "tape.jsonl", "--format", "json")
    assert first.returncode == 0, first.stderr
    text = path.read_text()
    for name in ("answer", "first", "second", "third"):
        text = text.replace(
            f'model: "python:m:{name}"', f'model: "replay:tape.jsonl#python:m:{name}"'
        )
    path.write_text(text)
    calls = asked(tmp_path, "first")
    second = pennyweight(tmp_path, "run", path, "--format", "json")
    assert second.returncode == 0, second.stderr
    assert asked(tmp_path, "first") == calls
    assert metrics(second) == metrics(first)
    assert metrics(second)["impl_rate_mean"] == pytest.approx(0.797917, abs=5e-7)


@pytest.mark.usefixtures("local_model")
def test_the_local_model_judges_through_constrained_output(tmp_path):
    model = "{models: [{name: small, model: local/smollm2-135m, temperature: 0, max_tokens: 260}]"
    path = judged_suite(tmp_path, f"{model}, rubric: rubric.yaml}}", tasks=1)
    done = pennyweight(tmp_path, "run", path, "--format", "json")
    assert done.returncode == 0, done.stderr
    (row,) = judgments(tmp_path)
    assert (row["status"], row["tries"]) == ("ok", 1)
    assert 0 <= row["score"] <= 1
    assert set(json.loads(row["items"])) == {"a", "b", "c"}
    assert row["completion_tokens"] > 0
    assert metrics(done)["impl_rate_mean"] == row["score"]
