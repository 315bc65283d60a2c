"""Policies as files: what they may hold, and every mistake at once with its line."""

import pytest

from pennyweight.errors import InputError
from pennyweight.gates.declaration import json_schema
from pennyweight.gates.loader import load_policies, load_policy


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
        "'lots' is not a threshold",
        "latency_p95_ms takes ms or s, not '%'",
        "Did you mean 'ids'?",
        "Did you mean 'overall'?",
        "accuracy needs 'threshold', 'no_worse_than' or 'better: true'",
        "no number of attempts can show ≥ 100.0 %; write 'on: value'",
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
        ("weights: {accuracy: 0}", "the weights sum to 0"),
        ("thresholds: {grade: 3}", "grade is not a number"),
        ("required_scenarios: [A]\noptional_scenarios: [A]", "'A' is both required and optional"),
        ("composite: {weights: {accuracy: 0}}", "sum to 0"),
        ("composite: {weights: {acuracy: 1}}", "Did you mean 'accuracy'"),
        ("composite: {weights: {latency_p95: 1}}", "is not a rate"),
        ("composite: 's = accuracy + 1'", "is not a term"),
        ("composite: 's = accuracy × 1\n\n  pass = s or so'", "is not a condition"),
        ("gates: [{metric: accuracy, no_worse_than: '> 2%'}]", "without a sign|no sign"),
        ("thresholds: {accuracy: 80}\nerror_rate: 60%", "below 50 %"),
        ("thresholds: {accuracy: 80}\nerrors: many", "is not a threshold"),
        ("thresholds: {accuracy: 80}\nerror_rate: 0", "above 0 and below 50 %"),
        ("optional_scenarios: [A]", "the policy has no gate"),
        ("gates: [{metric: pass_rate, better: false}]", "needs .* or 'better: true'"),
        (
            "gates: [{metric: ece, threshold: '= 10%', on: confident}]",
            "no interval can show = 0.1;",
        ),
        ("gates: [{metric: accuracy, threshold: 50, name: must_not}]", "'must_not' is the name"),
        ("gates: [{metric: latency_p95, no_worse_than: 10%}]", "not a mean.*use latency_mean_ms"),
        ("gates: [{metric: ece, better: true}]", "is not a mean"),
        ("gates: [{metric: accuracy, no_worse_than: 1}]", "1 means 100 points; write 1% or 100%"),
        ("thresholds: {bloking: {accuracy: 80}}", "line 1: Key 'bloking'.*Did you mean 'blocking'"),
        ("gates: [{metric: accuracy, k: 3, threshold: 0.5}]", "accuracy has no option 'k'"),
        ("gates: [{metric: k_of_n, k: 3, n: 2, threshold: 0.5}]", "it must be at least k"),
        ("gates: [{metric: pass_at_k, k: 0, threshold: 0.5}]", "k must be a whole number of at"),
        ("composite: {name: pass_rate, weights: {accuracy: 1}}", "is a metric; rename"),
        ("composite: 'accuracy = pass_rate × 1'", "is a metric; rename"),
        ("composite: {name: pass, weights: {accuracy: 1}}", "cannot be called 'pass'"),
        ("composite: 's = accuracy × 1 + pass_rate × 0.5'", "sum to 1.5"),
        ("composite: 's = accuracy × 1\n\n  t = accuracy × 1'", "exactly one formula"),
    ],
)
def test_one_mistake(text, why):
    with pytest.raises(InputError, match=why):
        load_policy("policy.yaml", None, text)


def test_json_mistakes_have_lines_too():
    text = '{\n  "thresholds": {\n    "blocking": {"acuracy": 9}\n  }\n}'
    assert problems(text, "p.json")[0].startswith("p.json, line 3: Metric 'acuracy'")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="no such file"):
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


def joined(tmp_path, *texts):
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.yaml").write_text(text)
    return load_policies([tmp_path / f"{number}.yaml" for number in range(len(texts))])


def test_several_files_are_joined(tmp_path):
    (tmp_path / "a.yaml").write_text("thresholds: {accuracy: 80}\nweights: {by_category: {x: 2}}")
    (tmp_path / "b.json").write_text('{"required_scenarios": ["S"], "errors": "5%"}')
    made = load_policies([tmp_path / "a.yaml", tmp_path / "b.json"])
    assert [g.metric for g in made.gates] == ["accuracy", "pass_rate"]
    assert (made.required, made.weights["category"]) == (("S",), {"x": 2})
    assert made.errors.share


def test_what_one_file_sets_the_silence_of_another_does_not_undo(tmp_path):
    strict = "error_rate: 1%\nerrors: 10%\nlatency_budget: 1s\nthresholds: {accuracy: 80}"
    for texts in ((strict, "thresholds: {ece: 9}"), ("thresholds: {ece: 9}", strict)):
        made = joined(tmp_path, *texts)
        assert (made.error_rate, made.errors.value) == (0.01, 0.1)
        assert made.options["latency_budget_ms"] == 1000


@pytest.mark.parametrize(
    ("one", "two", "why"),
    [
        ("error_rate: 1%", "error_rate: 9%", "error_rate is set to different values"),
        ("errors: 1%", "errors: 2", "errors is set to different"),
        ("latency_budget: 1s", "latency_budget: 2s", "latency_budget_ms is set to different"),
        ("weights: {by_category: {x: 1}}", "weights: {by_category: {X: 2}}",
         "weights.by_category.x is set to different"),
        ("weights: {accuracy: 1}", "weights: {accuracy: 2}", "weights.accuracy is set to diff"),
        ("composite: 's = accuracy × 1'", "composite: 's = pass_rate × 1'", "composite s is set"),
        ("required_scenarios: [S]", "optional_scenarios: [S]", "'S' is required .* and optional"),
        ("optional_scenarios: [S]", "required_scenarios: [S]", "'S' is required .* and optional"),
    ],
)  # fmt: skip
def test_files_that_contradict_each_other_are_refused_with_both_places(tmp_path, one, two, why):
    for text in (one, two):
        assert joined(tmp_path, text, "thresholds: {accuracy: 80}").gates
    with pytest.raises(InputError, match=why) as caught:
        joined(tmp_path, one, two, "thresholds: {accuracy: 80}")
    for name in ("0.yaml, line 1", "1.yaml, line 1"):
        assert name in str(caught.value)
    again = joined(tmp_path, one, one, "thresholds: {accuracy: 80}")
    assert again.gates


def test_gates_of_one_name_are_told_apart_by_where_they_stand(tmp_path):
    first = """\
thresholds: {pass_rate: 60}
pass_criteria: {overall: 65}
risk_based_thresholds: [{risk_level: low, metric: pass_rate, threshold: 70}]
gates:
- {metric: accuracy, threshold: 50, name: ours}
- {metric: accuracy, threshold: 60, name: ours}
"""
    made = joined(tmp_path, first, "thresholds: {ece: 9}")
    assert [g.name for g in made.gates] == [
        "pass_rate (thresholds)",
        "pass_rate (risk table)",
        "pass_rate (overall)",
        "ours (gates[1])",
        "ours (gates[2])",
        "ece",
    ]
    files = joined(tmp_path, "thresholds: {ece: 9}", "thresholds: {ece: 8}")
    assert [g.name for g in files.gates] == ["ece (0.yaml)", "ece (1.yaml)"]
    both = joined(tmp_path, first, first)
    assert len({g.name for g in both.gates}) == len(both.gates) == 10
    assert both.gates[0].name == "pass_rate (thresholds, 0.yaml)"


def test_the_weights_of_a_composite_are_shares_and_every_rule_counts():
    made = load_policy("p.yaml", None, "composite: {weights: {accuracy: 1, pass_rate: 3}}")
    assert [t.weight for t in made.composites["final_score"].terms] == [0.25, 0.75]
    text = "composite: |\n  s = accuracy × 1\n  pass = s ≥ 0.5\n  pass = safety_rate = 1\n"
    rules = load_policy("p.yaml", None, text).gates
    assert [(g.metric, str(g.threshold)) for g in rules] == [
        ("s", "≥ 0.5"),
        ("safety_rate", "= 100.0 %"),
    ]


def test_the_schema_knows_every_key():
    schema = json_schema()
    assert {"thresholds", "gates", "pass_criteria", "composite"} <= set(schema["properties"])
    assert schema["additionalProperties"] is False
