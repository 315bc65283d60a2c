"""`assay gate` and `assay baseline`, as a user calls them."""

import json
from xml.etree import ElementTree

import pytest

from cli.command import assay, refused
from gates.samples import answers, share


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASSAY_STORE", raising=False)
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
        done = assay("gate", records, "--policy", policy(text), "--format", "json")
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
    done = assay("gate", folder, "--policy", policy(), "--format", "json")
    assert (done.code, done.json["records"], done.json["gates"][0]["value"]) == (0, 100, 0.85)
    piped = assay("gate", "-", "--policy", policy(), stdin=records.read_bytes())
    assert piped.code == 0
    assert "no such file" in refused("gate", "none.jsonl", "--policy", policy())
    assert "at least one record" in refused("gate", "-", "--policy", policy(), stdin=b"")
    theirs = write(tmp_path / "theirs.jsonl", [{"case": "1", "ok": True}])
    maps = ("--map", "task_id=case", "--map", "passed=ok")
    assert assay("gate", theirs, "--policy", policy(), *maps).code == 0


def test_bad_records_are_refused_or_told(tmp_path, policy):
    rows = write(tmp_path / "bad.jsonl", [*share(9, 9), {"task_id": "x", "passed": "maybe"}])
    assert "maybe" in refused("gate", rows, "--policy", policy())
    done = assay("gate", rows, "--policy", policy(), "--skip-bad")
    assert (done.code, done.err) == (
        0,
        "1 bad record was left out; nothing is decided about them.\n",
    )


def test_one_side_is_picked(tmp_path, policy):
    rows = [*share(9, 9, tier="T0"), *share(2, 9, tier="T1")]
    mixed = write(tmp_path / "mixed.jsonl", rows)
    assert "--where tier=T1 picks one" in refused("gate", mixed, "--policy", policy())
    assert assay("gate", mixed, "--policy", policy(), "--where", "tier=T0").code == 0
    assert assay("gate", mixed, "--policy", policy(), "--where", "tier=T1").code == 1
    assert "no records with tier=T7" in refused(
        "gate", mixed, "--policy", policy(), "--where", "tier=T7"
    )
    against = policy("gates: [{metric: pass_rate, no_worse_than: 5%}]")
    sides = ("--where", "tier=T1", "--baseline", mixed, "--baseline-where", "tier=T0")
    assert assay("gate", mixed, "--policy", against, *sides).code == 1


def test_policies_are_joined_and_versions_chosen(tmp_path, policy):
    rows = write(tmp_path / "r.jsonl", answers(17, 20))
    grows = policy('{"progressive_thresholds": {"accuracy": {"v1": 80, "v2": 90}}}', "v.json")
    assert assay("gate", rows, "--policy", grows, "--version", "v1.9").code == 0
    assert assay("gate", rows, "--policy", grows, "--version", "2").code == 1
    assert "--version V names it" in refused("gate", rows, "--policy", grows)
    more = policy("required_scenarios: [a19]", "more.yaml")
    both = assay("gate", rows, "--policy", grows, "--policy", more, "--version", "1")
    assert (both.code, "a19 did not pass" in both.out) == (1, True)


def test_reports_are_written_beside_what_is_printed(tmp_path, records, policy):
    names = [tmp_path / f"gate{suffix}" for suffix in (".xml", ".md", ".json", ".txt")]
    options = [word for name in names for word in ("--report", name)]
    done = assay("gate", records, "--policy", policy("thresholds: {pass_rate: 95}"), *options)
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
    done = assay("gate", records, "--policy", made, "--format", "json")
    assert done.code == 1
    assert done.json["verdict"] == "fail"
    assert f"::error file={made},line=2,title=Assay%3A pass_rate::90 %25 misses" in done.err
    assert "## ✗ Assay: failed" in summary.read_text()
    shown = assay("gate", records, "--policy", made, "--format", "github")
    assert shown.out.startswith("::error")
    assert shown.err == ""


def test_baselines_from_set_to_rm(tmp_path, records, policy):
    made = policy("gates: [{metric: pass_rate, no_worse_than: 5%}]")
    assert "--baseline names one" in refused("gate", records, "--policy", made)
    assert assay("baseline", "set", "main", records).code == 0
    listed = json.loads(assay("baseline", "list", "--format", "json").out)
    assert [(b["name"], b["source"], b["records"]) for b in listed] == [("main", str(records), 100)]
    assert "main" in assay("baseline", "list").out
    records.unlink()
    now = write(tmp_path / "now.jsonl", share(90, 100))
    same = assay("gate", now, "--policy", made, "--baseline", "main", "--format", "json")
    assert (same.code, same.json["baseline"]) == (0, f"baseline main ({records})")
    worse = write(tmp_path / "worse.jsonl", share(70, 100))
    assert assay("gate", worse, "--policy", made, "--baseline", "main").code == 1
    assert assay("gate", worse, "--policy", made, "--baseline", now).code == 1
    assert assay("baseline", "rm", "main").code == 0
    assert "no such file" in refused("gate", now, "--policy", made, "--baseline", "main")
    assert "Baseline 'main' is not known" in refused("baseline", "rm", "main")
    assert "no baseline yet" in assay("baseline", "list").err


def test_the_ratchet_raises_what_passed(records, policy):
    made = policy("thresholds:\n  pass_rate: 85  # at least\n")
    done = assay("gate", records, "--policy", made, "--ratchet", "--margin", "2%")
    assert done.code == 0
    assert "line 2: pass_rate 85 → 88" in done.err
    assert made.read_text() == "thresholds:\n  pass_rate: 88  # at least\n"
    again = assay("gate", records, "--policy", made, "--ratchet", "--margin", "2%")
    assert "none was exceeded" in again.err
    fails = policy("thresholds: {pass_rate: 95}", "fails.yaml")
    assert "did not pass" in assay("gate", records, "--policy", fails, "--ratchet").err
    assert "--margin >1" in refused("gate", records, "--policy", made, "--margin", ">1")
