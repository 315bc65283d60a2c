"""Policies as files: what they may hold, and every mistake at once with its line."""

import pytest

from assay.errors import InputError
from assay.gates.form import json_schema
from assay.gates.load import load_policies, load_policy


def problems(text, file="policy.yaml", version=None):
    with pytest.raises(InputError) as caught:
        load_policy(file, version, text)
    return str(caught.value).splitlines()


def test_all_mistakes_are_told_at_once_with_line_and_suggestion():
    text = """\
threshold: {}
thresholds:
  blocking:
    acuracy: 90
    safety_rate: lots
  warning:
    latency_p95: 95%
required_scenarios: {id: [A]}
pass_criteria: {overal: 80}
gates:
  - {metric: accuracy}
  - {metric: pass_rate, threshold: 100%, on: confident}
  - {metric: pass_rate, threshold: 90%, on: sure}
weights: {accuracy: much}
"""
    found = problems(text)
    assert [line.split(":")[0] for line in found] == [
        f"policy.yaml, line {n}" for n in (1, 4, 5, 7, 8, 8, 9, 11, 12, 13, 14)
    ]
    said = "\n".join(found)
    for part in (
        "Key 'threshold' is not known. Did you mean 'thresholds'?",
        "Metric 'acuracy' is not known. Did you mean 'accuracy'?",
        "'lots' is no threshold",
        "latency_p95_ms takes ms or s, not '%'",
        "Did you mean 'ids'?",
        "Did you mean 'overall'?",
        "accuracy needs 'threshold', 'no_worse_than' or 'better'",
        "no number of attempts can show ≥ 100 %; write 'on: value'",
        "on must be 'value' or 'confident', not 'sure'",
        "weights.accuracy must be a number of at least 0, not 'much'",
    ):
        assert part in said


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("description: nothing", "the policy has no gate"),
        ("thresholds: {accuracy: 80", "not YAML"),
        ("[1, 2]", "must be a mapping"),
        ("weights: {accuracy: 0}", "the weights add up to 0"),
        ("thresholds: {grade: 3}", "grade is no number"),
        ("required_scenarios: [A]\noptional_scenarios: [A]", "'A' is required and optional"),
        ("composite: {weights: {accuracy: 0}}", "add up to 0"),
        ("composite: {weights: {acuracy: 1}}", "Did you mean 'accuracy'"),
        ("composite: {weights: {latency_p95: 1}}", "is no rate"),
        ("composite: 's = accuracy + 1'", "is no part of a composite"),
        ("composite: 's = accuracy × 1\n\n  pass = s or so'", "is no condition"),
        ("gates: [{metric: accuracy, no_worse_than: '> 2%'}]", "without a sign|no sign"),
        ("thresholds: {accuracy: 80}\nerror_rate: 60%", "below 50 %"),
        ("thresholds: {accuracy: 80}\nerrors: many", "is no threshold"),
    ],
)
def test_one_mistake(text, why):
    with pytest.raises(InputError, match=why):
        load_policy("policy.yaml", None, text)


def test_json_mistakes_have_lines_too():
    text = '{\n  "thresholds": {\n    "blocking": {"acuracy": 9}\n  }\n}'
    assert problems(text, "p.json")[0].startswith("p.json, line 3: Metric 'acuracy'")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="cannot be read: no such file"):
        load_policy(tmp_path / "none.yaml")


def test_one_threshold_may_have_several_rules():
    made = load_policy(
        "p.yaml", None, "thresholds: {accuracy: {threshold: 80, no_worse_than: 2%, better: true}}"
    )
    assert [(g.against, g.on) for g in made.gates] == [
        ("threshold", "value"),
        ("no_worse_than", "confident"),
        ("better", "confident"),
    ]


def test_confident_for_all_leaves_what_no_sample_can_prove_to_the_value():
    text = "on: confident\nthresholds: {accuracy: 80, safety_rate: 100}"
    made = load_policy("p.yaml", None, text)
    assert {g.metric: g.on for g in made.gates} == {"accuracy": "confident", "safety_rate": "value"}


def test_several_files_are_joined(tmp_path):
    (tmp_path / "a.yaml").write_text("thresholds: {accuracy: 80}\nweights: {by_category: {x: 2}}")
    (tmp_path / "b.json").write_text('{"required_scenarios": ["S"], "errors": "5%"}')
    made = load_policies([tmp_path / "a.yaml", tmp_path / "b.json"])
    assert [g.metric for g in made.gates] == ["accuracy", "pass_rate"]
    assert (made.required, made.weights["category"]) == (("S",), {"x": 2})
    assert made.errors.share


def test_the_schema_knows_every_key():
    schema = json_schema()
    assert {"thresholds", "gates", "pass_criteria", "composite"} <= set(schema["properties"])
    assert schema["additionalProperties"] is False
