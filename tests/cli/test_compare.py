"""`pennyweight compare` as a user meets it."""

import csv
import json
import re
import shutil
from collections import defaultdict
from pathlib import Path

import jsonschema
import pytest

from cli.command import pennyweight, refused

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SCHEMA = json.loads((ROOT / "docs/reference/comparison.schema.json").read_text("utf-8"))
STUDY = EXAMPLES / "study.csv"
PUBLISHED = (
    *("--map", "subject=agent_model", "--map", "task_id=experiment,subtest"),
    *("--map", "attempt=run_number", "--by", "tier", "--baseline", "T0"),
)


def compared(*arguments):
    result = pennyweight("compare", *arguments, "--format", "json")
    assert result.code == 0, result.err
    jsonschema.validate(result.json, SCHEMA)
    return result.json


@pytest.fixture(scope="module")
def study():
    return compared(STUDY, *PUBLISHED)


def by_tier():
    """Read the table as a spreadsheet would."""
    tiers = defaultdict(list)
    with STUDY.open(newline="") as file:
        for row in csv.DictReader(file):
            tiers[row["tier"]].append(row)
    return tiers


def test_a_published_study_gives_what_a_spreadsheet_gives(study):
    assert [side["name"] for side in study["sides"]] == list(by_tier()) == ["T0", "T1", "T2"]
    for side, rows in zip(study["sides"], by_tier().values(), strict=True):
        passes = [row["passed"] == "true" for row in rows]
        costs = [float(row["cost_usd"]) for row in rows]
        assert side["records"] == len(rows)
        assert side["metrics"]["pass_rate"] == pytest.approx(sum(passes) / len(rows))
        assert side["metrics"]["cost_usd_mean"] == pytest.approx(sum(costs) / len(rows))
        assert side["metrics"]["cost_of_pass"] == pytest.approx(sum(costs) / sum(passes))
        rates = [float(row["impl_rate"]) for row in rows]
        assert side["metrics"]["impl_rate_mean"] == pytest.approx(sum(rates) / len(rows))
    best = min(study["sides"], key=lambda s: s["metrics"]["cost_of_pass"])
    assert study["across"]["frontier"]["name"] == best["name"]


def test_the_paired_difference_is_that_of_a_plain_loop(study):
    means = defaultdict(lambda: defaultdict(list))
    for tier, rows in by_tier().items():
        for row in rows:
            unit = (row["experiment"], row["subtest"], row["agent_model"])
            means[unit][tier].append(row["passed"] == "true")
    tasks = defaultdict(list)
    for (experiment, subtest, _), sides in means.items():
        if "T2" in sides:
            a, b = (sum(sides[t]) / len(sides[t]) for t in ("T0", "T2"))
            tasks[experiment, subtest].append(b - a)
    differences = [sum(d) / len(d) for d in tasks.values()]
    pair = next(p for p in study["pairs"] if (p["b"], p["metric"]) == ("T2", "pass_rate"))
    assert pair["difference"] == pytest.approx(sum(differences) / len(differences))
    assert (pair["tasks"], pair["only_a"], pair["only_b"]) == (34, 2, 0)
    low, high = pair["interval"]
    assert low < pair["difference"] < high
    assert pair["p"] <= pair["p_adjusted"] <= 0.05


def test_json_has_what_is_promised(study):
    for name in ("baseline", "sides", "across", "pairs"):
        assert name in study
    side = {"name", "records", "metrics", "intervals", "statistics", "tier_uplift"}
    assert side | {"composite_difference", "grade"} <= set(study["sides"][0])
    across = {"pass_rate_variance", "cost_variance", "cost_delta", "frontier", "marginal"}
    assert across | {"dominated"} == set(study["across"])
    assert study["across"]["dominated"] == [{"name": "T2", "by": "T1"}]
    pair = {"a", "b", "metric", "difference", "interval", "p", "p_adjusted", "method", "tasks"}
    assert pair | {"detectable", "cliffs_delta", "only_a", "only_b"} <= set(study["pairs"][0])
    metrics = [p["metric"] for p in study["pairs"] if p["b"] == "T1"]
    assert metrics == [
        *("pass_rate", "impl_rate_mean", "composite_score", "cost_usd_mean"),
        *("duration_seconds", "total_tokens_mean"),
    ]
    assert study["comparisons"] == 12
    assert study["across"]["marginal"][0]["from"] == "T0"


def test_words_say_what_to_do(study):
    first, second, last, ranks = study["words"]
    assert re.fullmatch(
        r"T1 passes 21\.3 points more often than T0 \(95 %: 9\.3 to 32\.8 points\) and costs "
        r"1\.8 times as much per attempt \(95 %: 1\.73 to 1\.82 times\); "
        r"a pass costs \$0\.0944 against \$0\.0804 \(intervals overlap\)\.",
        first,
    )
    assert "34 tasks tried by both. Left out: 2 tried only by T0." in second
    assert ranks == "No difference in pass rate is shown between T1 and T2."
    assert last.startswith("A pass costs $0.0804 to $0.172; no side is shown to cost least (each ")
    few = compared(EXAMPLES / "records.jsonl")["words"][0]
    assert few.startswith("No difference in accuracy was shown between T1 and T0 (+12.5 points;")
    needed = re.search(r"finding one of 5 points takes about (\d,\d00|\d\d0) tasks\.", few)
    assert needed, few


@pytest.fixture
def files(tmp_path):
    lines = (EXAMPLES / "records.jsonl").read_text("utf-8").splitlines(keepends=True)
    for name, tier in (("before", "T0"), ("after", "T1")):
        (tmp_path / f"{name}.jsonl").write_text("".join(x for x in lines if f'"{tier}"' in x))
    return tmp_path / "before.jsonl", tmp_path / "after.jsonl"


@pytest.mark.parametrize("by", [(), ("--by", "run")])
def test_several_files_are_sides_by_themselves(files, by):
    found = compared(*files, *by)
    assert [side["name"] for side in found["sides"]] == ["before.jsonl", "after.jsonl"]
    assert found["baseline"] == "before.jsonl"
    tiers = compared(EXAMPLES / "records.jsonl")
    assert found["pairs"][0]["difference"] == tiers["pairs"][0]["difference"]
    other = compared(*files, *by, "--baseline", "after")
    assert other["baseline"] == "after.jsonl"
    assert other["pairs"][0]["difference"] == -found["pairs"][0]["difference"]


def test_folders_and_standard_input_are_sides_too(files, tmp_path):
    before, after = files
    for number, line in enumerate(before.read_text("utf-8").splitlines()):
        (tmp_path / "many").mkdir(exist_ok=True)
        (tmp_path / "many" / f"{number}.jsonl").write_text(line, "utf-8")
    result = pennyweight(
        *("compare", tmp_path / "many", "-", "--format", "json"), stdin=after.read_bytes()
    )
    assert [(s["name"], s["records"]) for s in result.json["sides"]] == [("many", 36), ("-", 36)]
    assert (
        result.json["pairs"][0]["difference"] == compared(before, after)["pairs"][0]["difference"]
    )


def test_a_metric_can_be_chosen(files):
    names = "total_tokens_mean,cot_tokens_mean"
    for form in ("table", "markdown"):
        out = pennyweight("compare", *files, "--metric", names, "--format", form).out
        flat = " ".join(out.replace("\\", "").split())
        assert "total_tokens_mean is 24.9 higher in after.jsonl than in before.jsonl" in flat
    found = compared(*files, "--metric", names)
    assert [pair["metric"] for pair in found["pairs"]] == names.split(",")


def test_several_files_can_be_compared_by_a_column(files):
    assert [s["name"] for s in compared(*files, "--by", "tier")["sides"]] == ["T0", "T1"]


def test_runs_are_sides_by_themselves(tmp_path, monkeypatch):
    shutil.copytree(EXAMPLES / "sums", tmp_path / "sums")
    suite = tmp_path / "sums" / "suite.yaml"
    text = suite.read_text("utf-8")
    tape = tmp_path / "sums" / "tape.jsonl"
    suite.write_text(text.replace("local/smollm2-135m", f'"replay:{tape}#local/smollm2-135m"'))
    monkeypatch.chdir(tmp_path)
    store = tmp_path / "store.db"
    for _ in range(2):
        made = pennyweight("run", suite, "--store", store)
        assert made.code == 0, made.err
    listed = pennyweight("runs", "--store", store, "--format", "json").json["runs"]
    ids = [run["id"] for run in listed]
    found = compared(*ids, "--store", store)
    assert [side["name"] for side in found["sides"]] == ids
    rate = found["pairs"][0]
    assert (rate["metric"], rate["difference"], rate["p"], rate["tasks"]) == ("pass_rate", 0, 1, 32)
    tiers = compared("latest", "--store", store, "--by", "tier")
    assert [side["name"] for side in tiers["sides"]] == ["T0", "T1", "T2"]
    twice = pennyweight("compare", "latest", ids[0], "--store", store)
    assert (twice.code, f"{ids[0]} is named twice" in twice.err) == (2, True)


@pytest.fixture(scope="module")
def run_and_file(tmp_path_factory):
    """A stored run whose tasks have a column of their own, and a file of the same attempts."""
    folder = tmp_path_factory.mktemp("mixed")
    shutil.copytree(EXAMPLES / "sums", folder / "sums")
    suite, tasks = (folder / "sums" / name for name in ("suite.yaml", "tasks.jsonl"))
    tape = folder / "sums" / "tape.jsonl"
    text = suite.read_text("utf-8")
    suite.write_text(text.replace("local/smollm2-135m", f'"replay:{tape}#local/smollm2-135m"'))
    rows = [json.loads(line) for line in tasks.read_text("utf-8").splitlines()]
    for number, row in enumerate(rows):
        row["half"] = "first" if number % 2 else "second"
    tasks.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    store, path = folder / "store.db", folder / "before.jsonl"
    made = pennyweight("run", suite, "--store", store)
    assert made.code == 0, made.err
    assert pennyweight("export", "latest", "--store", store, "-o", path).code == 0
    (run,) = pennyweight("runs", "--store", store, "--format", "json").json["runs"]
    return run["id"], path, store


@pytest.mark.parametrize("by", [(), ("--by", "source")])
def test_a_run_is_compared_with_a_file(run_and_file, by):
    run, path, store = run_and_file
    found = compared("latest", path, *by, "--store", store)
    assert [(side["name"], side["records"]) for side in found["sides"]] == [
        (run, 192),
        ("before.jsonl", 192),
    ]
    assert found["by"] == [by[1] if by else "run"]
    rate = found["pairs"][0]
    assert (rate["metric"], rate["difference"], rate["p"], rate["tasks"]) == ("pass_rate", 0, 1, 32)
    turned = compared(path, run, *by, "--store", store, "--baseline", "before")
    assert turned["baseline"] == "before.jsonl"
    assert [side["name"] for side in turned["sides"]] == ["before.jsonl", run]


def test_several_files_are_compared_by_source(files):
    assert compared(*files, "--by", "source")["by"] == ["source"]
    assert len(compared(*files, EXAMPLES / "records.jsonl", "--by", "source")["sides"]) == 3


def test_a_run_is_compared_by_a_column_of_its_tasks(run_and_file):
    _, _, store = run_and_file
    found = compared("latest", "--store", store, "--by", "half")
    assert [(s["name"], s["records"]) for s in found["sides"]] == [("first", 96), ("second", 96)]
    both = compared("latest", "--store", store, "--by", "half,tier")
    assert [side["name"] for side in both["sides"]][:2] == ["first / T0", "first / T1"]


def test_a_deterministic_agent_run_twice_shows_no_more_than_run_once(tmp_path):
    rows = [
        {"id": k, "tier": tier, "attempt": attempt, "passed": k < 2 or (tier == "T1" and k < 7)}
        for tier in ("T0", "T1")
        for k in range(8)
        for attempt in (1, 2, 3)
    ]
    path = tmp_path / "same.jsonl"
    for tries in (1, 2, 3):
        kept = [row for row in rows if row["attempt"] <= tries]
        path.write_text("".join(json.dumps(row) + "\n" for row in kept))
        (pair,) = compared(path)["pairs"]
        assert pair["p"] == 0.0625
        assert pair["interval"][0] <= 0


def test_mistakes_are_told(files, tmp_path):
    before, _ = files
    assert "neither several tiers nor several subjects" in refused("compare", before)
    assert "only one side" in refused("compare", before, "--by", "tier")
    assert "The sides are T0, T1, T2." in refused(
        "compare", EXAMPLES / "records.jsonl", "--baseline", "T9"
    )
    assert "'nothing' is not known" in refused("compare", before, "--by", "nothing")
    assert "no such file" in refused("compare", tmp_path / "missing.jsonl", before)
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    assert "empty" in refused("compare", before, empty)


def test_sides_without_a_common_task_are_described_and_not_compared(tmp_path):
    path = tmp_path / "apart.jsonl"
    rows = [{"id": f"{t}{k}", "tier": t, "passed": True} for t in ("T0", "T1") for k in range(3)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = pennyweight("compare", path)
    assert result.code == 0
    assert "T1 and T0 have no tasks in common" in result.out
    assert compared(path)["pairs"][0]["tasks"] == 0


@pytest.mark.parametrize("columns", ["80", "120"])
def test_the_table_fits_the_terminal(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    out = pennyweight("compare", STUDY, *PUBLISHED).out
    assert max(map(len, out.splitlines())) <= int(columns)
    assert "T1 passes 21.3 points more often than T0 (95 %: 9.3 to 32.8" in out.replace("\n", " ")
    row = r"pass_rate +\+21\.3 points +< 0\.001 +(?:< )?0\.00\d +\d\d\.\d points\n"
    row += r" +\+9\.3 to \+32\.8\n"
    assert re.search(row, out)


def test_markdown_and_csv():
    text = pennyweight("compare", STUDY, *PUBLISHED, "--format", "markdown").out
    assert text.startswith("- T1 passes 21.3 points more often than T0")
    assert "| T1 − T0 | pass\\_rate | +21.3 points | +9.3 to +32.8 points |" in text
    table = pennyweight("compare", STUDY, *PUBLISHED, "--format", "csv").out
    rows = list(csv.DictReader(table.splitlines()))
    assert len(rows) == 12
    assert float(rows[0]["low"]) < float(rows[0]["difference"]) < float(rows[0]["high"])


def test_hostile_names_stay_text(tmp_path):
    evil = "=2+3\x1b[31mred\x07|`*<b>"
    rows = [{"id": k, "tier": t, "passed": True} for t in ("T0", evil) for k in range(3)]
    path = tmp_path / "evil.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for form in ("table", "markdown"):
        out = pennyweight("compare", path, "--format", form).out
        assert "\x1b" not in out
        assert "\x07" not in out
    assert {side["name"] for side in compared(path)["sides"]} == {"T0", evil}


def test_a_pass_never_seen_is_said_with_its_bound(tmp_path):
    path = tmp_path / "never.jsonl"
    rows = [
        {"id": k, "tier": t, "passed": t == "T1", "cost_usd": 0.5}
        for t in ("T0", "T1", "T2")
        for k in range(10)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = compared(path)["words"]
    assert "a pass costs $0.50; T0 never passed, so a pass costs more than $1.62 (95 %" in words[0]
    assert "neither ever passed, so a pass costs more than $1.62 (95 % confidence)" in words[1]
    assert "more than $1.62" in pennyweight("compare", path).out
    score = pennyweight("score", path, "--by", "tier", "--metric", "cost_of_pass").out
    assert "more than $1.62" in score
    alone = tmp_path / "alone.jsonl"
    alone.write_text("".join(json.dumps(row) + "\n" for row in rows if row["tier"] == "T0"))
    assert "more than $1.62" in pennyweight("score", alone, "--metric", "cost_of_pass").out


@pytest.fixture
def costly(tmp_path):
    """Two tiers with results, costs and judge scores: more columns than 60 characters hold."""
    path = tmp_path / "costly.jsonl"
    rows = [
        {"id": f"t{k}", "tier": tier, "passed": k % 2 == 0, "impl_rate": k / 20, "latency_ms": 9.0}
        | {"cost_usd": 0.000123 * (k + 1)}
        for tier in ("T0", "T1")
        for k in range(20)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_columns_that_do_not_fit_follow_below_with_the_name_of_the_side(costly, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    out = pennyweight("compare", costly).out
    tables = [line for line in out.splitlines() if line.startswith("tier ")]
    assert len(tables) > 1
    assert all(title in " ".join(tables) for title in ("records", "cost of pass", "uplift"))
    assert len(re.findall("^T1 ", out, re.MULTILINE)) > len(tables)
    assert "Variance" not in out
    assert compared(costly)["across"]["cost_variance"] is not None


def test_the_table_has_the_metrics_that_were_named(costly):
    out = pennyweight("compare", costly, "--metric", "latency_p95_ms").out
    assert re.search(r"tier +records +latency p95\nT0 +20 +9\.00 ms\n", out)
    assert "pass" not in out


def four_sides(tmp_path: Path) -> Path:
    rows = [
        {"task_id": i, "tier": f"T{tier}", "passed": i < passes, "cost_usd": 50 if i == 0 else cost}
        for tier, (passes, cost) in enumerate([(2, 0.1), (9, 0.5), (5, 0.2), (7, 0.4)])
        for i in range(20)
    ]
    path = tmp_path / "sides.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.mark.parametrize(
    ("options", "order"),
    [((), "1320"), (("--sort", "cost_usd_mean"), "0231"), (("--sort", "pass_rate"), "1320")],
)
def test_many_sides_are_listed_with_the_best_first(tmp_path, options, order):
    path = four_sides(tmp_path)
    for format_ in ("table", "markdown"):
        out = pennyweight("compare", path, *options, "--format", format_).out
        assert re.findall(r"^(?:\| )?T(\d) (?:\| | +)20 ", out, re.MULTILINE) == list(order)
    names = [side["name"] for side in compared(path, *options)["sides"]]
    assert names == ([f"T{i}" for i in order] if options else ["T0", "T1", "T2", "T3"])
    assert "Did you mean" in refused("compare", path, "--sort", "acuracy")
    other = refused("compare", path, "--metric", "pass_rate", "--sort", "latency_p95_ms")
    assert "name it under --metric too" in other


def test_a_mean_that_a_few_tasks_decide_has_a_note(tmp_path):
    path = four_sides(tmp_path)
    for format_ in ("table", "markdown"):
        out = pennyweight("compare", path, "--format", format_).out.replace("\\", "")
        assert "A few tasks decide cost_usd_mean" in " ".join(out.split())


@pytest.mark.parametrize(
    ("passes", "sentence"),
    [
        ({"a": (1, 0), "b": (0, 0)}, "Of the 2 common tasks, no side ever solves 1. Only"),
        ({"a": (1, 0), "b": (1, 1)}, "Of the 2 common tasks, every side always solves 1. Only"),
        (
            {"a": (1, 0), "b": (1, 1), "c": (0, 0)},
            "Of the 3 common tasks, every side always solves 1 and no side ever solves 1. Only",
        ),
    ],
)
def test_tasks_on_which_sides_agree_are_counted_where_there_are_any(tmp_path, passes, sentence):
    rows = [
        {"task_id": task, "tier": tier, "passed": bool(passed)}
        for task, both in passes.items()
        for tier, passed in zip(("T0", "T1"), both, strict=True)
    ]
    path = tmp_path / "records.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    shown = " ".join(pennyweight("compare", path, "--by", "tier").out.split())
    assert sentence in shown


@pytest.mark.parametrize(("better", "said"), [(60, "points). b"), (0, "It is not shown that b")])
def test_a_margin_below_0_asks_for_an_improvement(tmp_path, better, said):
    for name, right in (("a", 200), ("b", 200 + better)):
        rows = [{"task_id": f"t{n}", "passed": n < right or n == 399} for n in range(400)]
        rows[-1]["passed"] = name == "a"
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{name}.jsonl").write_text(text)
    sides = (tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    words = ("--metric", "pass_rate", "--margin", "-1%")
    found = " ".join(pennyweight("compare", *sides, *words).out.split())
    assert said in found
    assert "in pass rate by at least 1.0 points" in found
    assert "this is said in at most 5 %" in found
