"""A suite is previewed as it was chosen, and written back as it was."""

import pytest

from pennyweight.api.pages.suite_preview import SuiteChoice, preview, read_tree, write_tree
from pennyweight.errors import UsageError

SUITE = """
suite: s
tasks: [{id: a, input: "1+1", target: "2"}]
subjects: [local/smollm2-135m]
tiers: {T0: {}, T1: {system: x}, T2: {extends: T1}}
"""


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "suite.yaml"
    file.write_text(SUITE)
    return file


def test_a_choice_leaves_the_rest_as_it_was_written():
    text = """{suite: s, tasks: [{id: 010, input: yes, target: 1.50, a: "1e3", b: 1e3, c: "",
    d: ~, e: 1:30, f: "true", g: true, h: "x: y # z", i: "<<", j: .5, k: 7, l: 0x1f}]}"""
    tree = read_tree(text)
    again = read_tree(write_tree(tree))
    assert again == tree
    assert str(again["tasks"][0]["target"]) == "1.50"
    assert [type(v) for v in again["tasks"][0].values()] == [
        type(v) for v in tree["tasks"][0].values()
    ]


def test_a_suite_is_taken_as_its_file_says(path):
    assert preview(path, SuiteChoice("id")).text == SUITE


def test_a_choice_narrows_the_suite(path):
    choice = SuiteChoice("id", tiers=("T0",), limit=1, runs=3, usd=0.5)
    found = preview(path, choice, plan=True)
    assert found.text == SUITE
    assert found.options == {"tiers": ["T0"], "limit": 1, "runs": 3, "set": {"limits.usd": 0.5}}
    assert (found.plan["tiers_named"], found.plan["runs"]) == (["T0"], 3)
    assert found.plan["narrowed"] == "only tier T0"
    extended = preview(path, SuiteChoice("id", tiers=("T2",)), plan=True)
    assert extended.plan["tiers_named"] == ["T2"]
    with pytest.raises(UsageError, match="Subject 'x' is not known"):
        preview(path, SuiteChoice("id", subjects=("x",)))
