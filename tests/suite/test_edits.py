"""Values of a suite that one run changes."""

import pytest

from pennyweight.errors import UsageError
from pennyweight.schema.tree import parse, plain
from pennyweight.suite.edits import everywhere, put, with_models

TEXT = """\
settings: {top_p: 1}
subjects:
- a/b.1
- {name: ours, model: c/d, temperature: 1, settings: {temperature: 2}}
tiers:
  T0:
  T1: &base {temperature: 0.5}
  T2: *base
"""


@pytest.fixture
def tree():
    return parse(TEXT, is_json=False)[0]


@pytest.mark.parametrize(
    ("path", "read"),
    [
        ("settings.top_p", ("settings", "top_p")),
        ("subjects.0.top_p", ("subjects", 0, "top_p")),
        ("subjects.a/b.1.top_p", ("subjects", 0, "top_p")),
        ("subjects.ours.base_url", ("subjects", 1, "base_url")),
        ("tiers.T0.system", ("tiers", "T0", "system")),
        ("limits.usd", ("limits", "usd")),
    ],
)
def test_a_value_is_put_at_its_place(path, read, tree):
    changed = put(tree, path, 7)
    assert changed.get(*read).value == 7
    assert tree.get("limits") is None, "the tree itself stays"
    assert plain(tree) == plain(parse(TEXT, is_json=False)[0])


def test_a_change_reaches_no_other_place_through_an_alias(tree):
    changed = put(tree, "tiers.T1.temperature", 0)
    assert plain(changed)["tiers"] == {
        "T0": None, "T1": {"temperature": 0}, "T2": {"temperature": 0.5},
    }  # fmt: skip


def test_a_setting_for_every_call_replaces_those_of_subjects_and_tiers(tree):
    changed = plain(everywhere(tree, "temperature", 0))
    assert changed["settings"] == {"top_p": 1, "temperature": 0}
    assert changed["subjects"][0] == "a/b.1"
    assert changed["subjects"][1]["temperature"] == 0
    assert changed["subjects"][1]["settings"] == {"temperature": 0}
    assert changed["tiers"] == {"T0": None, "T1": {"temperature": 0}, "T2": {"temperature": 0}}


def test_models_where_there_are_no_subjects():
    tree = parse("suite: s", is_json=False)[0]
    assert plain(with_models(tree, ["a/b"])) == {"suite": "s", "subjects": ["a/b"]}


def test_an_element_that_does_not_exist_is_refused(tree):
    with pytest.raises(UsageError, match=r"Element 'our' is not known. Did you mean 'ours'"):
        put(tree, "subjects.our.temperature", 0)
