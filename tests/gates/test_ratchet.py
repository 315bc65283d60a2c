"""The ratchet: thresholds rise to what was reached, never fall, and the file keeps its looks."""

import json
import math
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gates.samples import answers, gate, records_of, share
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


def reached(found, name, errors=3.7, margin=0.01):
    """Give what a rate may be raised to, in percent: so many of Wilson's errors off its value."""
    only = gate(found, name)
    up, z, n = only.sign != "<=", 1.6448536, only.tasks
    value = only.value if up else 1 - only.value
    half = z / (1 + z * z / n) * math.sqrt(value * (1 - value) / n + z * z / (4 * n * n))
    low = (value + z * z / (2 * n)) / (1 + z * z / n) - half
    new = value - errors * (value - low) / z - margin
    return (
        math.floor(round(1000 * new, 4)) / 10 if up else math.ceil(round(1000 - 1000 * new, 4)) / 10
    )


YAML = """\
# what we promise
thresholds:
  blocking: {accuracy: "≥ 65%",   pass_rate: 0.8}  # two on one line
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
    found = turn(path, rows(95))
    rates = {n: reached(found, n) for n in ("accuracy (thresholds)", "pass_rate", "error_rate")}
    sure = 88.7  # the worse end of the exact interval, less the margin
    expected = YAML.replace('"≥ 65%"', f'"≥ {rates["accuracy (thresholds)"]:g}%"')
    expected = expected.replace("0.8}", f"{rates['pass_rate'] / 100:g}}}")
    expected = expected.replace("error_rate: 40", f"error_rate: {rates['error_rate']:g}")
    expected = expected.replace(">= 70 %", f"'>= {sure:g} %'")
    assert path.read_text() == expected


def test_nothing_is_ever_lowered(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(YAML.replace(">= 70 %", "'>= 70 %'"))
    turn(path, rows(95))
    before = path.read_text()
    for hits, word in ((95, "pass"), (90, "inconclusive"), (70, "fail")):
        assert turn(path, rows(hits), margin=0.02).verdict == word
        assert path.read_text() == before


@pytest.mark.parametrize("indent", [2, 4, None])
def test_json_keeps_its_layout_too(tmp_path, indent):
    path = tmp_path / "policy.json"
    given = {"pass_criteria": {"overall": "≥ 60%", "by_category": {"x": 50, "y": "100%"}}}
    path.write_text(json.dumps(given, indent=indent, ensure_ascii=False))
    sample = [*share(45, 50, "x", category="x"), *share(10, 10, "y", category="y")]
    found = turn(path, sample)
    overall, some = (reached(found, found.gates[i].name) for i in (0, 1))
    new = {"overall": f"≥ {overall:g}%", "by_category": {"x": some, "y": "100%"}}
    expected = {"pass_criteria": new}
    assert path.read_text() == json.dumps(expected, indent=indent, ensure_ascii=False)


def test_line_endings_stay(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_bytes(b"thresholds:\r\n  pass_rate: 50 # half\r\n")
    new = reached(turn(path, share(90, 100)), "pass_rate")
    assert path.read_bytes() == b"thresholds:\r\n  pass_rate: %g # half\r\n" % new


def test_a_threshold_of_a_version_is_raised_and_no_later_one_is_looser(tmp_path):
    path = tmp_path / "policy.yaml"
    text = "progressive_thresholds:\n  accuracy: {{v1: {}, v2: {}, v3: {}, Target: {}}}\n"
    path.write_text(text.format("60%", "0.65", "{threshold: 70}", "97%"))
    found = decided(path, answers(95, 100), "v2.4")
    ratchet(found, 0.01)
    new = reached(found, "accuracy")
    assert path.read_text() == text.format(
        "60%", f"{new / 100:g}", f"{{threshold: {new:g}}}", "97%"
    )


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("p.yaml", "thresholds: {error_rate: 15}", "thresholds: {error_rate: NEW}"),
        ("p.json", '{"thresholds": {"error_rate": 15}}', '{"thresholds": {"error_rate": NEW}}'),
        ("p.yaml", "thresholds: {error_rate: 15.7%}", "thresholds: {error_rate: NEW%}"),
        ("p.yaml", 'on: confident\nthresholds: {latency_p95: "< 1.5e-1 min"}',
         'on: confident\nthresholds: {latency_p95: "< 0.021 min"}'),
        ("p.json", '{"thresholds": {"accuracy": "\\u2265 85%"}}',
         '{"thresholds": {"accuracy": "\\u2265 NEW%"}}'),
        ("p.yaml", "thresholds: {accuracy: '≥ 85 %'}", "thresholds: {accuracy: '≥ NEW %'}"),
    ],
)  # fmt: skip
def test_what_is_written_is_stricter_when_read_again(tmp_path, name, before, after):
    path = tmp_path / name
    path.write_text(before)
    (old,) = load_policy(path).gates
    found = turn(path, rows(100))
    if "NEW" in after:
        after = after.replace("NEW", f"{reached(found, old.name):g}")
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
        found = turn(path, answers(100 - wrong, 100), 0.002)
        (new,) = load_policy(path).gates
    assert new.threshold.value <= old.threshold.value
    least = reached(found, "error_rate", margin=0.002) / 100
    if found.verdict == "pass" and least < old.threshold.value - 0.001:
        assert new.threshold.value == pytest.approx(least, abs=0.0011)


def test_a_link_stays_a_link_and_a_file_keeps_its_mode(tmp_path):
    real, link = tmp_path / "real.yaml", tmp_path / "link.yaml"
    real.write_text("thresholds: {pass_rate: 50}")
    real.chmod(0o640)
    link.symlink_to(real)
    new = reached(turn(link, share(90, 100)), "pass_rate")
    assert link.is_symlink()
    assert real.read_text() == f"thresholds: {{pass_rate: {new:g}}}"
    assert real.stat().st_mode & 0o777 == 0o640


def test_what_cannot_be_raised_is_told(tmp_path):
    path = tmp_path / "policy.yaml"
    before = "composite: 's = accuracy × 1  pass = s ≥ 0.5'\nthresholds:\n  accuracy: |\n    50\n"
    path.write_text(before)
    turned = ratchet(decided(path, answers(90, 100)), 0.01)
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
    turned = ratchet(decided(path, rows(90)), 0.01)
    assert ["which other values may use" in why for why in turned.left] == [True, True]
    assert path.read_text() == before


def test_a_system_that_does_not_change_rarely_fails_and_a_worse_one_does(tmp_path):
    """Twenty releases of a system that passes 90 %, then one that passes 70 %."""
    rng, path, alarms, caught = np.random.default_rng(4), tmp_path / "p.json", 0, 0
    for _ in range(12):
        path.write_text(json.dumps({"thresholds": {"pass_rate": 50}}))
        for hits in rng.binomial(200, 0.9, 20):
            alarms += turn(path, share(hits, 200)).verdict == "fail"
        caught += turn(path, share(rng.binomial(200, 0.7), 200)).verdict == "fail"
    assert alarms <= 12  # of 240; with the values themselves as thresholds it is about 180
    assert caught == 12


@pytest.mark.parametrize(
    ("on", "why"),
    [
        ("value", "write 'on: confident', or compare with a baseline by 'no_worse_than'."),
        ("confident", "its interval has no end; more tasks are needed to raise it."),
    ],
)
def test_a_number_is_raised_only_if_its_interval_tells_how_far(tmp_path, on, why):
    path = tmp_path / "p.yaml"
    path.write_text(f"gates: [{{metric: latency_p95_ms, threshold: 5s, on: {on}}}]")
    before = path.read_text()
    few = [{"task_id": f"t{i}", "latency_ms": 100.0 + i} for i in range(10)]
    found = decided(path, few)
    turned = ratchet(
        replace(found, gates=tuple(replace(g, verdict="pass") for g in found.gates)), 0
    )
    assert turned.left[0].endswith(why)
    assert path.read_text() == before


def test_a_lower_mean_cost_is_kept_with_what_chance_may_add(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text("gates: [{metric: cost_usd_mean, threshold: $5, on: confident}]")
    costs = np.random.default_rng(1).lognormal(0, 0.5, 80)
    found = turn(path, [{"task_id": f"t{i}", "cost_usd": float(x)} for i, x in enumerate(costs)], 0)
    (new,) = load_policy(path).gates
    assert found.gates[0].high < new.threshold.value < 2 * found.gates[0].high
