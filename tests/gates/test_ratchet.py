"""The ratchet: thresholds rise to what was reached, never fall, and the file keeps its looks."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gates.samples import answers, records_of, share
from pennyweight.gates.decision import decide, needed_metrics
from pennyweight.gates.loader import load_policy
from pennyweight.gates.ratchet import ratchet


def turn(path, rows, margin=0.01):
    """Decide the policy of a file on rows and turn the ratchet; gives the verdict."""
    found = decided(path, rows)
    ratchet(found, margin)
    return found


def decided(path, rows, version=None):
    made = load_policy(path, version)
    return decide(made, records_of(rows, needed_metrics(made), made.options))


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


def test_a_threshold_of_a_version_is_raised_and_no_later_one_is_looser(tmp_path):
    path = tmp_path / "policy.yaml"
    text = "progressive_thresholds:\n  accuracy: {{v1: {}, v2: {}, v3: {}, Target: {}}}\n"
    path.write_text(text.format("80%", "0.85", "{threshold: 90}", "97%"))
    ratchet(decided(path, answers(95, 100), "v2.4"), 0.01)
    assert path.read_text() == text.format("80%", "0.94", "{threshold: 94}", "97%")


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("p.yaml", "thresholds: {error_rate: 5}", "thresholds: {error_rate: 1%}"),
        ("p.json", '{"thresholds": {"error_rate": 5}}', '{"thresholds": {"error_rate": "1%"}}'),
        ("p.yaml", "thresholds: {error_rate: 1.7%}", "thresholds: {error_rate: 1%}"),
        ("p.yaml", 'thresholds: {latency_p95: "< 1.5e-1 min"}',
         'thresholds: {latency_p95: "< 0.021 min"}'),
        ("p.json", '{"thresholds": {"accuracy": "\\u2265 85%"}}',
         '{"thresholds": {"accuracy": "\\u2265 99%"}}'),
        ("p.yaml", "thresholds: {accuracy: '≥ 85 %'}", "thresholds: {accuracy: '≥ 99 %'}"),
    ],
)  # fmt: skip
def test_what_is_written_is_stricter_when_read_again(tmp_path, name, before, after):
    path = tmp_path / name
    path.write_text(before)
    (old,) = load_policy(path).gates
    turn(path, rows(100))
    assert path.read_text() == after
    (new,) = load_policy(path).gates
    assert old.threshold.effect(new.threshold.value) > 0
    assert old.threshold.sign == new.threshold.sign


@given(st.integers(1, 99), st.integers(1, 100), st.sampled_from(["{}", "{}%", "≤ {}%", "0.{:02}"]))
def test_no_notation_of_a_rate_is_ever_loosened(limit, wrong, form):
    if form == "{}" and limit == 1:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.yaml"
        path.write_text(f"thresholds: {{error_rate: '{form.format(limit)}'}}")
        (old,) = load_policy(path).gates
        ratchet(decided(path, answers(100 - wrong, 100)), 0.002)
        (new,) = load_policy(path).gates
    assert new.threshold.value <= old.threshold.value
    if wrong / 100 + 0.002 < old.threshold.value - 0.001:
        assert new.threshold.value == pytest.approx(wrong / 100 + 0.002, abs=0.0011)


def test_a_link_stays_a_link_and_a_file_keeps_its_mode(tmp_path):
    real, link = tmp_path / "real.yaml", tmp_path / "link.yaml"
    real.write_text("thresholds: {pass_rate: 50}")
    real.chmod(0o640)
    link.symlink_to(real)
    turn(link, share(9, 10))
    assert link.is_symlink()
    assert real.read_text() == "thresholds: {pass_rate: 89}"
    assert real.stat().st_mode & 0o777 == 0o640


def test_what_cannot_be_raised_is_told(tmp_path):
    path = tmp_path / "policy.yaml"
    before = "composite: 's = accuracy × 1  pass = s ≥ 0.5'\nthresholds:\n  accuracy: |\n    50\n"
    path.write_text(before)
    turned = ratchet(decided(path, answers(9, 10)), 0.01)
    assert turned.raised == ()
    assert [why.split(": ", 1)[1] for why in turned.left] == [
        "accuracy stays at ≥ 50.0 %: its layout cannot be preserved.",
        "s stays at ≥ 0.5: it is part of a formula; raise it by hand.",
    ]
    assert path.read_text() == before


def test_a_value_on_which_others_hang_is_left_alone(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text("thresholds:\n  accuracy: &least 50\n  warning: {pass_rate: *least}\n")
    before = path.read_text()
    turned = ratchet(decided(path, rows(60)), 0.01)
    assert ["which other values may use" in why for why in turned.left] == [True, True]
    assert path.read_text() == before
