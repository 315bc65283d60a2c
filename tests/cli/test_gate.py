"""`pennyweight gate` and `pennyweight baseline`, as a user calls them."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cli.command import pennyweight, refused
from gates.samples import answers, share
from pennyweight.api.baseline import set_baseline


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PENNYWEIGHT_STORE", raising=False)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def records(tmp_path):
    return write(tmp_path / "records.jsonl", share(90, 100))


@pytest.fixture
def policy(tmp_path):
    def make(text="thresholds: {pass_rate: 85}", name="policy.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return make


def test_exit_codes_tell_the_verdict(records, policy):
    for text, code, word in (
        ("thresholds: {pass_rate: 85}", 0, "pass"),
        ("thresholds: {pass_rate: 91}", 1, "fail"),
        ("thresholds: {pass_rate: {threshold: 88, on: confident}}", 3, "inconclusive"),
        ("thresholds: {warning: {pass_rate: 91}}", 0, "pass"),
    ):
        done = pennyweight("gate", records, "--policy", policy(text), "--format", "json")
        assert (done.code, done.json["verdict"]) == (code, word)
        assert done.err == ""
    assert "Metric 'pass_rat'" in refused(
        "gate", records, "--policy", policy("thresholds: {pass_rat: 85}")
    )


def test_sources_are_those_of_score(tmp_path, records, policy):
    folder = tmp_path / "folder"
    folder.mkdir()
    write(folder / "a.jsonl", share(45, 50))
    write(folder / "b.jsonl", share(40, 50, "u"))
    done = pennyweight("gate", folder, "--policy", policy(), "--format", "json")
    assert (done.code, done.json["records"], done.json["gates"][0]["value"]) == (0, 100, 0.85)
    piped = pennyweight("gate", "-", "--policy", policy(), stdin=records.read_bytes())
    assert piped.code == 0
    assert "no such file" in refused("gate", "none.jsonl", "--policy", policy())
    assert "at least one record" in refused("gate", "-", "--policy", policy(), stdin=b"")
    theirs = write(tmp_path / "theirs.jsonl", [{"case": "1", "ok": True}])
    maps = ("--map", "task_id=case", "--map", "passed=ok")
    assert pennyweight("gate", theirs, "--policy", policy(), *maps).code == 0


def test_bad_records_are_refused_or_told(tmp_path, policy):
    rows = write(tmp_path / "bad.jsonl", [*share(9, 9), {"task_id": "x", "passed": "maybe"}])
    assert "maybe" in refused("gate", rows, "--policy", policy())
    done = pennyweight("gate", rows, "--policy", policy(), "--skip-bad")
    assert (done.code, done.err) == (
        0,
        "1 bad record was left out and not decided on.\n",
    )


def test_one_side_is_picked(tmp_path, policy):
    rows = [*share(9, 9, tier="T0"), *share(2, 9, tier="T1")]
    mixed = write(tmp_path / "mixed.jsonl", rows)
    assert "For example: --where tier=T1." in refused("gate", mixed, "--policy", policy())
    assert pennyweight("gate", mixed, "--policy", policy(), "--where", "tier=T0").code == 0
    assert pennyweight("gate", mixed, "--policy", policy(), "--where", "tier=T1").code == 1
    assert "no records with tier=T7" in refused(
        "gate", mixed, "--policy", policy(), "--where", "tier=T7"
    )
    against = policy("gates: [{metric: pass_rate, no_worse_than: 5%}]")
    sides = ("--where", "tier=T1", "--baseline", mixed, "--baseline-where", "tier=T0")
    assert pennyweight("gate", mixed, "--policy", against, *sides).code == 1


def test_a_metric_without_a_value_says_what_it_is_of(tmp_path, policy):
    rows = [{"task_id": str(i), "target": "1", "answer": "1"} for i in range(9)]
    safe = policy("gates:\n  - {metric: safety_rate, threshold: '>= 90%'}\n")
    for more, why in (
        ({}, "No record has category, which it needs: Share of the adversarial"),
        ({"category": "happy"}, "No record counts for it: Share of the adversarial"),
    ):
        path = tmp_path / "rows.jsonl"
        path.write_text("\n".join(json.dumps({**row, **more}) for row in rows))
        said = pennyweight("gate", path, "--policy", safe)
        assert (said.code, why in " ".join(said.out.split())) == (1, True), said.out


def test_policies_are_joined_and_versions_chosen(tmp_path, policy):
    rows = write(tmp_path / "r.jsonl", answers(17, 20))
    grows = policy('{"progressive_thresholds": {"accuracy": {"v1": 80, "v2": 90}}}', "v.json")
    assert pennyweight("gate", rows, "--policy", grows, "--version", "v1.9").code == 0
    assert pennyweight("gate", rows, "--policy", grows, "--version", "2").code == 1
    assert "pass --version V" in refused("gate", rows, "--policy", grows)
    more = policy("required_scenarios: [a19]", "more.yaml")
    both = pennyweight("gate", rows, "--policy", grows, "--policy", more, "--version", "1")
    assert (both.code, "a19 did not pass" in both.out) == (1, True)


def test_reports_are_written_beside_what_is_printed(tmp_path, records, policy):
    names = [tmp_path / f"gate{suffix}" for suffix in (".xml", ".md", ".json", ".txt")]
    options = [word for name in names for word in ("--report", name)]
    done = pennyweight("gate", records, "--policy", policy("thresholds: {pass_rate: 95}"), *options)
    assert done.code == 1
    assert ElementTree.parse(names[0]).getroot().get("failures") == "1"
    assert json.loads(names[2].read_text())["verdict"] == "fail"
    assert names[3].read_text() == done.out
    wrong = refused("gate", records, "--policy", policy(), "--report", "gate.pdf")
    assert "must end in .json, .md, .xml, .txt" in wrong


def test_github_gets_annotations_and_a_summary(tmp_path, records, policy, monkeypatch):
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    made = policy("thresholds:\n  pass_rate: 95\n")
    done = pennyweight("gate", records, "--policy", made, "--format", "json")
    assert done.code == 1
    assert done.json["verdict"] == "fail"
    assert f"::error file={made},line=2,title=Pennyweight%3A pass_rate::90.0 %25 misses" in done.err
    assert "## ✗ Pennyweight: failed" in summary.read_text()
    shown = pennyweight("gate", records, "--policy", made, "--format", "github")
    assert shown.out.startswith("::error")
    assert shown.err == ""


def test_baselines_from_set_to_rm(tmp_path, records, policy):
    made = policy("gates: [{metric: pass_rate, no_worse_than: 5%}]")
    assert "--baseline names one" in refused("gate", records, "--policy", made)
    assert pennyweight("baseline", "set", "main", records).code == 0
    listed = json.loads(pennyweight("baseline", "list", "--format", "json").out)
    assert [(b["name"], b["source"], b["records"]) for b in listed] == [("main", str(records), 100)]
    assert re.search(r"^main .* 90\.0 %$", pennyweight("baseline", "list").out, re.MULTILINE)
    records.unlink()
    now = write(tmp_path / "now.jsonl", share(90, 100))
    same = pennyweight("gate", now, "--policy", made, "--baseline", "main", "--format", "json")
    assert (same.code, same.json["baseline"]) == (0, f"baseline main ({records})")
    worse = write(tmp_path / "worse.jsonl", share(70, 100))
    assert pennyweight("gate", worse, "--policy", made, "--baseline", "main").code == 1
    assert pennyweight("gate", worse, "--policy", made, "--baseline", now).code == 1
    assert pennyweight("baseline", "rm", "main").code == 0
    assert "Baseline 'main' is not known" in refused(
        "gate", now, "--policy", made, "--baseline", "main"
    )
    assert "Baseline 'main' is not known" in refused("baseline", "rm", "main")
    assert "no baseline yet" in pennyweight("baseline", "list").err


def test_a_baseline_of_values_says_so():
    kept = set_baseline("mine", [{"task_id": "a", "passed": True}])
    assert (kept.baseline.source, kept.baseline.records) == ("the records", 1)


def test_the_ratchet_raises_what_passed(records, policy):
    made = policy("thresholds:\n  pass_rate: 55  # at least\n")
    done = pennyweight("gate", records, "--policy", made, "--ratchet", "--margin", "2%")
    assert done.code == 0
    (new,) = re.findall("line 2: pass_rate 55 → ([0-9.]+)", done.err)
    assert 70 < float(new) < 80  # 90 of 100 passed; the next release may be less lucky
    assert made.read_text() == f"thresholds:\n  pass_rate: {new}  # at least\n"
    again = pennyweight("gate", records, "--policy", made, "--ratchet", "--margin", "2%")
    assert "none was exceeded" in again.err
    fails = policy("thresholds: {pass_rate: 95}", "fails.yaml")
    assert "did not pass" in pennyweight("gate", records, "--policy", fails, "--ratchet").err
    assert "--margin >1" in refused("gate", records, "--policy", made, "--margin", ">1")


SUITE = """\
suite: sums
tasks:
  - {id: plain, input: "2 + 2?", target: "4", category: easy}
  - {id: again, input: "again: 2 + 2?", target: "4"}
  - {id: last, input: "at last: 2 + 2?", target: "4", required: true, checks: [{contains: "4"}]}
subjects: [{model: "python:answers:right", max_tokens: 5}]
limits: {concurrency: 1, tokens: 60}
runs: 2
"""


@pytest.fixture
def stopped(tmp_path):
    """Make a run that stops at its budget, and give its id."""

    def make(answer="4"):
        (tmp_path / f"answers{answer}.py").write_text(
            f'def right(prompt):\n    return "FINAL_ANSWER: {answer}"\n'
        )
        (tmp_path / "suite.yaml").write_text(SUITE.replace("answers", f"answers{answer}"))
        assert pennyweight("run", "suite.yaml").code == 4
        (run,) = pennyweight("runs", "--format", "json").json["runs"]
        return run["id"]

    return make


def test_a_run_that_is_not_whole_is_never_a_pass(tmp_path, stopped, policy):
    run = stopped()
    made = policy("errors: 90%\nthresholds: {accuracy: 90}")
    done = pennyweight("gate", "latest", "--policy", made, "--format", "json")
    assert (done.code, done.json["verdict"], done.json["records"]) == (3, "inconclusive", 1)
    gates = {g["name"]: g for g in done.json["gates"]}
    assert gates["attempts"]["why"] == (
        f"5 of 6 attempts have not been made yet. Make them: 'pennyweight run --resume {run}'."
    )
    assert gates["required_scenarios"]["verdict"] == "inconclusive"
    assert gates["required_scenarios"]["why"] == "last did not run."
    assert gates["accuracy"]["verdict"] == "pass"
    chosen = pennyweight("gate", "latest", "--policy", made, "--where", "category=easy")
    assert (chosen.code, "5 of 6 attempts have not been made yet" in chosen.out) == (3, True)
    assert "? missing attempts" in chosen.out
    kept = pennyweight("baseline", "set", "main", "latest")
    assert "The baseline is incomplete: 5 of 6 attempts of the run are missing." in kept.err
    assert "1 of 6" in pennyweight("baseline", "list").out
    against = policy("gates: [{metric: pass_rate, no_worse_than: 90%}]", "against.yaml")
    for name in ("main", "latest"):
        compared = pennyweight("gate", "latest", "--policy", against, "--baseline", name)
        assert f"the baseline {name} is incomplete (1 of 6 attempts)." in compared.err
    (tmp_path / "suite.yaml").write_text(SUITE.replace("60", "6000").replace("answers", "answers4"))
    assert pennyweight("run", "--resume", run, "--yes").code == 0
    assert pennyweight("gate", "latest", "--policy", made).code == 0


def test_a_failure_of_a_part_that_the_rest_could_turn_is_open(stopped, policy):
    stopped("5")
    for limit, code in ((80, 3), (90, 1)):  # of 6 attempts 5 may still be right
        made = policy(f"thresholds: {{accuracy: {limit}}}", f"{limit}.yaml")
        assert pennyweight("gate", "latest", "--policy", made).code == code


def test_an_unknown_baseline_and_a_replaced_one_are_told(records, policy):
    made = policy("gates: [{metric: pass_rate, no_worse_than: 5%}]")
    assert pennyweight("baseline", "set", "main", records).err.endswith("main.parquet.\n")
    again = pennyweight("baseline", "set", "main", records)
    assert f". Replaced: {records}, 2" in again.err
    wrong = refused("gate", records, "--policy", made, "--baseline", "mian")
    assert "Baseline 'mian' is not known. Did you mean 'main'?" in wrong
    assert "'pennyweight baseline set mian RUN' keeps one. There are main." in wrong
    Path(".pennyweight/baselines/broken.parquet").write_bytes(b"PAR1")
    listed = pennyweight("baseline", "list")
    assert (listed.code, "main" in listed.out, "broken.parquet" in listed.err) == (0, True, True)


def test_a_column_that_no_record_has_is_told(records, policy):
    wrong = refused("gate", records, "--policy", policy(), "--where", "catgory=x")
    assert "Column 'catgory' is not known. Did you mean 'category'? No record has it." in wrong


def test_fragments_of_a_policy_in_files_of_their_own_are_joined(records, policy):
    weights = policy('{"weights": {"by_category": {"edge": 2.0}}}', "weights.json")
    optional = policy('{"optional_scenarios": {"ids": ["t0"]}}', "optional.json")
    overall = policy('{"pass_criteria": {"overall": "≥ 80%"}}', "overall.json")
    names = (weights, overall, optional)
    done = pennyweight("gate", records, *(word for n in names for word in ("--policy", n)))
    assert done.code == 0, done.err
    assert "Note: weights.by_category: no record has 'edge'. No record has a category." in done.out
    required = policy('{"required_scenarios": ["t0"]}', "required.json")
    wrong = refused("gate", records, "--policy", required, "--policy", optional)
    assert "'t0' is required" in wrong
    assert "required.json, line 1" in wrong
