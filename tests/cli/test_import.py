"""`pennyweight import` and what commands say about logs."""

from pathlib import Path

import pytest

from cli.command import pennyweight as call
from sources.logs import test_inspect_ai as inspect
from sources.logs import test_promptfoo as promptfoo


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_log_becomes_a_run(tmp_path: Path) -> None:
    path = promptfoo.written(tmp_path, "x.json")
    done = call("import", str(path), "--as", "mine")
    assert (done.code, done.out) == (0, "Imported 4 records, including 1 error, as run mine.\n")
    assert "promptfoo counts errors as failures" in done.err
    assert "mine" in call("runs").out
    assert "polite" in call("show", "mine").out
    assert call("score", "mine", "--format", "json").code == 0
    again = call("import", str(path), "--as", "mine")
    assert again.code == 2
    assert "there is a run of this name" in again.err


def test_a_gate_takes_the_sides_of_a_log_as_they_are(tmp_path: Path) -> None:
    results = [promptfoo.result(str(i), testIdx=i) for i in range(3)]
    other = {"id": "openai:n", "label": "large"}
    results.append(promptfoo.result("0", provider=other, prompt={"raw": "0", "label": "terse"}))
    path = promptfoo.written(tmp_path, "x.jsonl", {"results": {"results": results}})
    assert call("import", str(path), "--as", "mine").code == 0
    (tmp_path / "policy.yaml").write_text("thresholds: {pass_rate: 50}\n")
    for source in (str(path), "mine"):
        done = call("gate", source, "--policy", "policy.yaml", "--each", "subject,tier")
        assert (done.code, done.out.count("✓")) == (0, 4), done.out
    broken = promptfoo.result("9", failureReason=2, success=False, error="down", gradingResult=None)
    path = promptfoo.written(tmp_path, "y.jsonl", {"results": {"results": [broken]}})
    assert call("import", str(path), "--as", "broken").code == 0
    done = call("gate", "broken", "--policy", "policy.yaml")
    assert done.code == 3
    assert "1 of 1 attempts could not be made" in done.out
    assert "--resume" not in done.out


def test_score_says_what_differs(tmp_path: Path) -> None:
    path = inspect.log(tmp_path, samples=inspect.SAMPLES[:2])
    (tmp_path / "other.json").write_text('{"a": 1}')
    done = call("score", str(tmp_path), "--metric", "accuracy")
    assert done.code == 0
    notes = [line for line in done.err.splitlines() if line.startswith("Note")]
    assert notes == [
        "Note: log.eval: other.json was not read, since it belongs to no log.",
        "Note: log.eval: Inspect AI reports samples 4; these records give 2.",
        "Note: log.eval: Inspect AI reports accuracy of match 0.75; these records give 1.",
    ]
    rule = call("score", str(path), "--answer", "last_number", "--metric", "accuracy")
    assert "Note: by the tool's own verdict 2 of 2 passed, by the answers 2;" in rule.err


def test_commands_choose_a_score(tmp_path: Path) -> None:
    path = str(promptfoo.written(tmp_path, "x.json"))
    (tmp_path / "policy.yaml").write_text("gates:\n  - {metric: pass_rate, threshold: 10%}\n")
    for command in (["score"], ["compare", "--by", "subject"]):
        assert call(*command, path, "--scorer", "polite", "--metric", "pass_rate").code == 0
    failed = call("gate", path, "--policy", "policy.yaml", "--scorer", "polite",
                  "--where", "subject=mini")  # fmt: skip
    assert failed.code in {1, 3}
    done = call("report", path, "--scorer", "nope", "-o", "r.html")
    assert done.code == 2
    assert "--scorer: Score 'nope' is not known." in done.err
