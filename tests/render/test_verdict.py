"""Verdicts in every format."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema

from gates.samples import share, verdict
from pennyweight.render.verdict import MARK, render, verdict_view

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


JUNIT = xmlschema.XMLSchema(Path(__file__).with_name("junit.xsd"))


def test_junit_fits_what_ci_systems_read_and_keeps_the_kinds_apart(mixed):
    text = render(mixed, "junit")
    JUNIT.validate(text)
    root = ElementTree.fromstring(text.encode())
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
    JUNIT.validate(render(failing, "junit"))
    root = ElementTree.fromstring(render(failing, "junit").encode())
    (told,) = root.iter("failure")
    assert (told.get("type"), root.get("failures")) == ("fail", "1")
    assert "did not pass" in told.text


def test_markdown_is_a_comment_that_can_be_found_again(mixed):
    text = render(mixed, "markdown")
    assert text.startswith(MARK)
    assert "## ? Pennyweight: inconclusive" in text
    assert "`sure \\| <b>`" in text
    assert "**`sure | <b>`**" in text
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
    assert "file=policy.json,line=1,title=Pennyweight%3A sure | <b> (inconclusive)::" in lines[2]
    assert "%25" in lines[2]
    assert "%0Aadv" in lines[2]


def test_the_table_says_why_and_by_which_scenarios(mixed):
    text = render(mixed, "table")
    assert "✓ pass_rate" in text
    assert "! safety_rate" in text
    assert "? sure | <b>" in text
    assert "would decide it" in text.replace("\n    ", " ")
    assert text.splitlines()[-1].startswith(
        "Inconclusive: policy.json on 20 records; 1 undecided of 5"
    )
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_each_gate_says_what_decided_it_and_a_value_stands_apart_from_an_interval():
    given = {
        "required_scenarios": ["t0"],
        "gates": [
            {"metric": "pass_rate", "threshold": "80%", "name": "plain"},
            {"metric": "pass_rate", "threshold": "60%", "on": "confident", "name": "sure"},
        ],
    }
    found = verdict(given, share(78, 100))
    assert [g["decided_by"] for g in found.to_dict()["gates"]] == ["rule", "value", "interval"]
    _, plain, sure = found.gates
    assert plain.why == (
        "78.0 % misses ≥ 80.0 % by 2.0 points, on the value alone; its interval, 70.4 % to "
        "84.4 %, contains 80.0 %."
    )
    assert sure.why.startswith("78.0 %; its whole interval, ")
    bracket = "the 90 % confidence intervals in brackets decide nothing"
    for form in ("table", "markdown"):
        text = " ".join(render(found, form).split())
        assert "value 78.0 % (70.4 to 84.4 %)" in text.replace("| ", "")
        assert "interval 78.0 % 70.1 to 84.6 %" in text.replace("| ", "")
        assert bracket in text
    view = verdict_view(found)
    assert [(g["by"], g["interval"][:1]) for g in view["gates"]] == [
        ("rule", ""), ("value", "("), ("interval", "7")
    ]  # fmt: skip
    assert [g["scale"] and g["scale"]["decides"] for g in view["gates"]][1:] == [False, True]
    assert len(view["legend"]) == 2
    only = verdict({"on": "confident", "thresholds": {"pass_rate": "60%"}}, share(78, 100))
    assert bracket not in render(only, "table")


def test_the_schema_refuses_what_ci_systems_would():
    good = render(verdict({"thresholds": {"pass_rate": 95}}, ROWS), "junit")
    JUNIT.validate(good)
    for old, new in (
        ('tests="1"', 'tests="one"'),
        ("<failure ", "<failed "),
        (' name="pass_rate"', ""),
        ("</testsuites>", "<testcase name='x'/></testsuites>"),
        ('time="0"', 'time="soon"'),
    ):
        wrong = good.replace(old, new).replace("</failure>", "</failed>" if "<failed" in new else
                                               "</failure>")  # fmt: skip
        assert not JUNIT.is_valid(wrong), new


def test_gates_have_names_of_their_own_also_in_junit():
    made = {"thresholds": {"pass_rate": 60}, "pass_criteria": {"overall": 65},
            "risk_based_thresholds": [{"risk_level": "high", "metric": "pass_rate",
                                       "threshold": 70}]}  # fmt: skip
    root = ElementTree.fromstring(render(verdict(made, ROWS), "junit").encode())
    names = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    assert len(set(names)) == len(names) == 3
    assert ("pennyweight.policy.json", "pass_rate (risk table)") in names


def test_long_lists_are_cut_for_people_and_say_so():
    found = verdict({"thresholds": {"pass_rate": 90}}, share(8, 80))
    table, text = render(found, "table"), render(found, "markdown")
    assert table.count("did not pass") == text.count("did not pass") == 10
    assert "    · … and 62 more\n" in table
    assert "- … and 62 more\n" in text
    assert "%0A… and 62 more" in render(found, "github")
    assert len(json.loads(render(found, "json"))["gates"][0]["scenarios"]) == 72
    assert render(found, "junit").count("did not pass") == 72


def test_the_summary_names_what_failed_and_what_is_open():
    made = {
        "thresholds": {"pass_rate": 95, "accuracy": 90},
        "gates": [{"metric": "pass_rate", "threshold": 89, "on": "confident", "name": "sure"}],
    }
    last = render(verdict(made, ROWS), "table").splitlines()[-1]
    assert last == "Failed: policy.json on 20 records; 2 failed, 1 undecided of 3 gates."


HOSTILE = "::error::pay @all #1 https://evil.example ~~x~~ ##[add-mask]y `|<img>"


def test_text_of_records_steers_nothing():
    rows = [{"task_id": HOSTILE, "passed": False, "violated": [HOSTILE]},
            *share(3, 3, category=HOSTILE)]  # fmt: skip
    made = {
        "thresholds": {"pass_rate": 95},
        "required_scenarios": [HOSTILE],
        "pass_criteria": {"by_category": {HOSTILE: "100%", "x": 0}},
        "weights": {"by_category": {"::warning::": 2}},
    }
    found = verdict(made, rows)
    for form in ("table", "markdown", "json", "junit"):
        text = render(found, form)
        assert not [line for line in text.splitlines() if line.strip().startswith("::")], form
        assert "##[" not in text, form
    lines = render(found, "github").splitlines()
    assert all(re.match(r"::(error|warning|notice) ", line) for line in lines)
    told = [g for g in found.gates if g.verdict != "pass"]
    assert len(lines) == len(told) + len(found.notes) + 1
    JUNIT.validate(render(found, "junit"))
    assert json.loads(render(found, "json"))["gates"][0]["scenarios"][0]["id"] == HOSTILE
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", render(found, "markdown"))
    assert not re.search(r"@\w|#\d|://|(?<!\\)~|(?<!\\)<(?!!-- )", outside)
