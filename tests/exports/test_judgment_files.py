"""Judgments as files of ProjectScylla's judge protocol."""

import json

from engine.judges import judge, judged_suite, pennyweight


def test_judgments_are_written_in_the_shape_of_the_protocol(tmp_path):
    judged_suite(tmp_path, judge("good", "poor", consensus="mean"), tasks=2)
    assert pennyweight(tmp_path, "run", "suite.yaml").returncode == 0
    written = pennyweight(tmp_path, "export", "latest", "--judgments", "-o", "out")
    assert written.returncode == 0, written.stderr
    files = sorted((tmp_path / "out").glob("*/judge_*/judgment.json"))
    assert [path.parent.name for path in files] == ["judge_01", "judge_02"] * 2
    good, poor = (json.loads(path.read_text()) for path in files[:2])
    assert (good["judge_model"], poor["judge_model"]) == ("good", "poor")
    assert (good["summary"]["weighted_score"], good["summary"]["passed"]) == (0.7, True)
    assert (poor["summary"]["weighted_score"], poor["summary"]["passed"]) == (0.0, False)
    assert good["requirements"]["a"]["score"] == 1.0
    assert good["requirements"]["a"]["notes"]
    assert good["is_valid"]
    assert all(one["weight"] for one in good["categories"].values())
    again = pennyweight(tmp_path, "export", "latest", "--judgments", "-o", "out")
    assert again.returncode == 2
    assert "exists already" in again.stderr


def test_a_run_without_judgments_says_so(tmp_path):
    path = judged_suite(tmp_path, judge("good"), tasks=1)
    assert pennyweight(tmp_path, "run", path.name, "--no-judge").returncode in {0, 2}
    found = pennyweight(tmp_path, "export", "latest", "--judgments", "-o", "out")
    assert found.returncode != 0
    assert not (tmp_path / "out").exists()
