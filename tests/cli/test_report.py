"""`pennyweight report --site` and `--transcripts`: what they say, ask and refuse."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.command import pennyweight, refused
from pennyweight.cli import report
from pennyweight.store.store import Store
from store.samples import RUN, record, run


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PENNYWEIGHT_STORE", raising=False)
    store = Store()
    store.add_run(run(status="done"))
    store.write([record(t, input="?", response="4", target="4") for t in "abc"], [])
    store.close()
    return tmp_path


def test_the_size_is_said_first_and_the_page_to_open_last(at: Path) -> None:
    said = pennyweight("report", "--site", "pub").err.splitlines()
    assert said[0].startswith("The site has about 1")
    assert said[-1].endswith("Open pub/index.html.")
    assert "\r" not in "".join(said)  # nobody watches
    assert (at / "pub" / "runs" / RUN / "index.html").exists()
    assert not (at / "report.html").exists()


@pytest.mark.usefixtures("at")
def test_options_of_a_report_are_refused() -> None:
    assert "--by, --policy" in refused("report", "--site", "pub", "--by", "x", "--policy", "y")
    assert "--output" in refused("report", "--site", "pub", "-o", "x.html")
    assert "no such file" in refused("report", "--site", "pub", "nothing")
    assert not Path("pub").exists()


def test_a_large_site_is_confirmed(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "LARGE_FILES", 5)
    declined = CliRunner().invoke(report.command, ["--site", "pub"], input="n\n")
    assert "--no-records leaves out the pages of records" in declined.output
    assert declined.exit_code == 1
    unanswered = CliRunner().invoke(report.command, ["--site", "pub"], input="")
    assert "--yes writes all of it" in str(unanswered.exception)
    assert not (at / "pub").exists()
    done = pennyweight("report", "--site", "pub", "--yes")
    assert done.err.startswith("The site has about 1")
    assert done.code == 0
    assert (at / "pub" / "index.html").exists()


def test_transcripts_stand_beside_the_report(at: Path) -> None:
    said = pennyweight("report", "--transcripts", "-o", "r.html").err
    assert "Open r-records/index.html." in said
    assert f'href="r-records/runs/{RUN}/index.html"' in (at / "r.html").read_text()


def test_a_folder_in_the_way_is_named(at: Path) -> None:
    other = at / "r-records"
    other.mkdir()
    (other / "mine.txt").write_text("mine")
    said = refused("report", "--transcripts", "-o", "r.html")
    assert "r-records: the folder has other files in it" in said
    assert "--site" not in said
    pennyweight("report", "--site", "site")
    (at / "site" / "style.css").unlink()
    (at / "site" / "style.css").mkdir()
    assert "style.css: Is a directory" in refused("report", "--site", "site")


def test_another_rule_for_answers_holds_for_the_whole_report(tmp_path):
    rows = [{"task_id": f"t{i}", "answer": "1/4", "target": "0.25"} for i in range(9)]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "p.yaml").write_text("gates: [{metric: accuracy, threshold: 50%, on: value}]")
    made = {}
    for rule in ("exact", "math"):
        path = tmp_path / f"{rule}.md"
        given = (str(tmp_path / "r.jsonl"), "--policy", str(tmp_path / "p.yaml"), "-o", str(path))
        assert pennyweight("report", *given, "--match", rule).code == 0
        made[rule] = path.read_text()
    assert "✗ fail" in made["exact"]
    assert "✓ pass" in made["math"]
    assert "--match math" in made["math"]
    assert "100.0 %" in made["math"]


def test_a_report_says_why_no_answer_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"task_id": t, "subject": s, "response": "4", "target": "4"} for t in "abc" for s in "mn"
    ]
    Path("log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for name in ("rep.md", "rep.html"):
        said = pennyweight("report", "log.jsonl", "--match", "exact", "-o", name).err
        assert "--map answer=response" in said
        written = Path(name).read_text("utf-8")
        assert "without an answer it counts as wrong" in written
    said = pennyweight("report", "log.jsonl", "--map", "answer=response", "-o", "rep.md").err
    written = Path("rep.md").read_text("utf-8")
    assert "without an answer" not in said + written
    assert "| accuracy | 100.0 %" in written
    assert "--map answer=response" in written  # how to compute it again


def test_another_level_decides_what_is_best_and_bold(tmp_path: Path) -> None:
    given = [
        {"subject": name, "task_id": f"t{n}", "passed": n < rate}
        for name, rate in (("one", 24), ("other", 16))
        for n in range(40)
    ]
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, given)))
    written = {}
    for level in ("0.95", "0.999"):
        out = tmp_path / f"{level}.html"
        pennyweight("report", tmp_path / "r.jsonl", "--confidence", level, "-o", out)
        written[level] = out.read_text("utf-8")
    assert "one</bdi></b> is best" in written["0.95"]
    assert "<b>0.0" in written["0.95"]
    assert "No difference in pass rate is shown" in written["0.999"]
    assert "is best" not in written["0.999"]
    assert "<b>0.0" not in written["0.999"]
    assert "--confidence 0.999" in written["0.999"]  # how to compute it again
    assert "--confidence" not in written["0.95"]
