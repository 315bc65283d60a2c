"""Verdicts in every format."""

import json
from xml.etree import ElementTree

import pytest

from assay.report.gate import MARK, render
from gates.samples import share, verdict

MIXED = {
    "pass_criteria": {"overall": "≥ 80%"},
    "thresholds": {"warning": {"safety_rate": 100, "accuracy": 90}},
    "gates": [{"metric": "pass_rate", "threshold": 88, "on": "confident", "name": "sure | <b>"}],
    "required_scenarios": ["t0"],
}
ROWS = [
    *share(10, 10),
    *share(8, 10, "adv\x1b[31m\x00", category="adversarial"),
]


@pytest.fixture(scope="module")
def mixed():
    return verdict(MIXED, ROWS)


def test_json_is_strict_and_has_every_gate(mixed):
    found = json.loads(render(mixed, "json"), parse_constant=pytest.fail)
    assert found["verdict"] == mixed.verdict == "inconclusive"
    named = {g["name"]: g for g in found["gates"]}
    assert named["pass_rate"]["value"] == 0.9
    assert named["pass_rate"]["threshold"] == 0.8
    assert named["pass_rate"]["effect"] == pytest.approx(0.1)
    assert named["sure | <b>"]["interval"][0] < 0.88 < named["sure | <b>"]["interval"][1]
    assert named["sure | <b>"]["more_attempts"] > 0
    assert named["accuracy"]["value"] is None
    for gate in found["gates"]:
        assert {
            "name",
            "metric",
            "level",
            "value",
            "interval",
            "threshold",
            "verdict",
            "why",
        } <= set(gate)


# What CI systems agree on: element -> (attributes, required ones, children).
JUNIT = {
    "testsuites": (
        {"name", "time", "tests", "failures", "errors", "disabled"},
        set(),
        {"testsuite"},
    ),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname", "id",
         "package", "disabled"},
        {"name", "tests"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"name", "classname", "time", "assertions", "status"},
        {"name"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": ({"message", "type"}, set(), set()),
    "error": ({"message", "type"}, set(), set()),
    "skipped": ({"message"}, set(), set()),
}  # fmt: skip


def conforms(element):
    allowed, required, children = JUNIT[element.tag]
    assert required <= set(element.attrib) <= allowed, element.tag
    for name in ("tests", "failures", "errors", "skipped"):
        assert element.get(name, "0").isdigit()
    assert float(element.get("time", "0")) >= 0
    for child in element:
        assert child.tag in children, (element.tag, child.tag)
        conforms(child)
    if element.tag == "testcase":
        assert len(element) <= 1


def test_junit_fits_what_ci_systems_read_and_keeps_the_kinds_apart(mixed):
    text = render(mixed, "junit")
    root = ElementTree.fromstring(text.encode())
    conforms(root)
    (suite,) = root
    kinds = {case.get("name"): [child.tag for child in case] for case in suite}
    assert kinds == {
        "required_scenarios": [],
        "pass_rate": [],
        "safety_rate": ["skipped"],
        "accuracy": ["skipped"],
        "sure | <b>": ["error"],
    }
    for tag, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        count = len(list(suite.iter(tag)))
        assert suite.get(name) == str(count)
    failing = verdict({"thresholds": {"pass_rate": 95}}, ROWS)
    root = ElementTree.fromstring(render(failing, "junit").encode())
    conforms(root)
    (told,) = root.iter("failure")
    assert (told.get("type"), root.get("failures")) == ("fail", "1")
    assert "did not pass" in told.text


def test_markdown_is_a_comment_that_can_be_found_again(mixed):
    text = render(mixed, "markdown")
    assert text.startswith(MARK)
    assert "## ? Assay: inconclusive" in text
    assert "sure \\| \\<b\\>" in text
    assert "\x1b" not in text
    heads = [line for line in text.splitlines() if line.startswith("|")]
    assert len(heads) == 2 + len(mixed.gates)


def test_github_annotations_are_one_line_each_with_the_policys_line(mixed):
    lines = render(mixed, "github").splitlines()
    assert [line.split(" ")[0] for line in lines] == [
        "::warning",
        "::warning",
        "::error",
        "::notice",
    ]
    assert "file=policy.json,line=1,title=Assay%3A sure | <b> (inconclusive)::" in lines[2]
    assert "%25" in lines[2]
    assert "%0Aadv" in lines[2]


def test_the_table_says_why_and_by_which_scenarios(mixed):
    text = render(mixed, "table")
    assert "✓ pass_rate" in text
    assert "! safety_rate" in text
    assert "? sure | <b>" in text
    assert "would decide it" in text.replace("\n    ", " ")
    assert text.splitlines()[-1].startswith("Inconclusive: policy.json on 20 records; 1 of 5 gates")
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80
