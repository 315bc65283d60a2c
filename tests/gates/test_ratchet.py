"""The ratchet: thresholds rise to what was reached, never fall, and the file keeps its looks."""

import json

import pytest

from assay.gates.decide import decide, needed_metrics
from assay.gates.load import load_policy
from assay.gates.ratchet import ratchet
from assay.gates.records import read_records
from gates.samples import answers, share


def turn(path, rows, margin=0.01):
    """Decide the policy of a file on rows and turn the ratchet; gives the verdict."""
    made = load_policy(path)
    found = decide(made, read_records(rows, needed_metrics(made), made.options))
    ratchet(found, margin)
    return found


YAML = """\
# what we promise
thresholds:
  blocking: {accuracy: "≥ 85%",   pass_rate: 0.8}  # two on one line
  warning:
    latency_p95: 5s   # people wait
    error_rate: 40
gates:
- metric: accuracy
  threshold: >= 70 %
  on: confident
"""


def rows(hits):
    return [{**row, "passed": True, "latency_ms": 1234.0} for row in answers(hits, 100)]


def test_only_numbers_change(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(YAML.replace(">= 70 %", "'>= 70 %'"))
    turn(path, rows(95))
    expected = YAML.replace('"≥ 85%"', '"≥ 94%"').replace("0.8}", "0.99}")
    expected = expected.replace("5s ", "1.25s ").replace("error_rate: 40", "error_rate: 6")
    expected = expected.replace(">= 70 %", "'>= 88.7 %'")
    assert path.read_text() == expected


def test_nothing_is_ever_lowered(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(YAML.replace(">= 70 %", "'>= 70 %'"))
    turn(path, rows(95))
    before = path.read_text()
    for hits, word in ((95, "pass"), (94, "inconclusive"), (80, "fail")):
        assert turn(path, rows(hits), margin=0.02).verdict == word
        assert path.read_text() == before


@pytest.mark.parametrize("indent", [2, 4, None])
def test_json_keeps_its_layout_too(tmp_path, indent):
    path = tmp_path / "policy.json"
    given = {"pass_criteria": {"overall": "≥ 80%", "by_category": {"x": 70, "y": "100%"}}}
    path.write_text(json.dumps(given, indent=indent, ensure_ascii=False))
    sample = [*share(45, 50, "x", category="x"), *share(10, 10, "y", category="y")]
    turn(path, sample)
    expected = {"pass_criteria": {"overall": "≥ 90.6%", "by_category": {"x": 89, "y": "100%"}}}
    assert path.read_text() == json.dumps(expected, indent=indent, ensure_ascii=False)


def test_line_endings_stay(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_bytes(b"thresholds:\r\n  pass_rate: 50 # half\r\n")
    turn(path, share(9, 10))
    assert path.read_bytes() == b"thresholds:\r\n  pass_rate: 89 # half\r\n"


def test_a_threshold_of_a_version_is_raised_in_its_place(tmp_path):
    path = tmp_path / "policy.json"
    path.write_text('{"progressive_thresholds": {"accuracy": {"v1": "80%", "v2": "85%"}}}')
    made = load_policy(path, "v1.4")
    found = decide(made, read_records(answers(95, 100), needed_metrics(made), {}))
    ratchet(found, 0.01)
    assert (
        path.read_text() == '{"progressive_thresholds": {"accuracy": {"v1": "94%", "v2": "85%"}}}'
    )
