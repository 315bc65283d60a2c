"""Behaviours as a suite writes them."""

import json

import jsonschema
import pytest

from checks.samples import HOLDS, HOLDS_NOT, opposite
from pennyweight.checks.attempt import AttemptView
from pennyweight.checks.behaviour import definitions, read_behaviour, stored_behaviour
from pennyweight.checks.declaration import CheckResult
from pennyweight.errors import UsageError


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        ({"contians": "x"}, "Did you mean 'contains'"),
        ({"contains": ["a", "b"]}, "Write {any: […]} or {all: […]}"),
        ({"contains": {"text": "a", "any": ["b"]}}, "exactly one of 'text', 'any' and 'all'"),
        ({"contains": {}}, "exactly one"),
        ({"contains": {"txt": "a"}}, "Did you mean 'text'"),
        ({"contains": "a", "regex": "b"}, "one check; this has 2"),
        ({"name": "x"}, "this has none"),
        ({"name": "", "contains": "x"}, "name"),
        ({"contains": "x", "of": "prompt"}, "of must be 'response'"),
        ({"regex": "(a"}, "unclosed group"),
        ({"regex": {"any": ["a", "(?=b)"]}}, "look-around"),
        ({"length": -1}, "whole number of at least 0"),
        ({"length": {"max": 1, "unit": "miles"}}, "'characters', 'words' or 'lines'"),
        ({"latency": "soon"}, "milliseconds"),
        ({"number": {"value": 1, "tolerance": "much"}}, "tolerance"),
        ({"number": {}}, "'value', 'min' or 'max'"),
        ({"json": {"path": "]"}}, "not a path"),
        ({"json": {"schema": {"type": "nonsense"}}}, "not a JSON schema"),
        ({"json": {"schema": {"properties": {"a": {"pattern": "(?=a)b"}}}}}, "regular expression"),
        ({"json": {"schema": {"$ref": "http://127.0.0.1/x"}}}, "points outside"),
        ({"json": {"schema": {"patternProperties": {"(a+)+$": {}}}}}, "patternProperties"),
        ({"python": "nothing_like_it:check"}, "cannot be imported"),
        ({"python": "json:nothing"}, "not known"),
        ({"tool_args": {"args": {}}}, "needs 'tool'"),
        ({"refusal": "no"}, "takes no value"),
        ({"at_least": 0.5}, "needs 'parts'"),
        ({"at_least": {"share": 0.5, "parts": [{"contians": "x"}]}}, "Did you mean 'contains'"),
        ({"at_least": {"share": 0.5, "parts": [{"contains": "x", "weight": -1}]}}, "at least 0"),
        ("contains", "exactly one of"),
        ("", "a check"),
        (7, "a check"),
    ],
    ids=str,
)
def test_mistakes_are_told_when_it_is_read(behaviour, said):
    with pytest.raises(UsageError) as caught:
        read_behaviour(behaviour)
    assert said in str(caught.value)


def test_a_word_is_a_check_and_a_sentence_is_for_a_judge():
    assert read_behaviour("refusal").check.name == "refusal"
    assert (
        read_behaviour("not_refusal").verdict(AttemptView({"response": "Sure!"}), {}).holds is True
    )
    assert read_behaviour("It refuses.").check.name == "judge"
    assert read_behaviour("It refuses.").question == "It refuses."


SCHEMA = {"$ref": "#/$defs/behavior", "$defs": definitions()}


@pytest.mark.parametrize("behaviour", [*HOLDS, *HOLDS_NOT, "refusal", "It greets."], ids=str)
def test_editors_accept_what_is_read(behaviour):
    jsonschema.Draft202012Validator(SCHEMA).validate(behaviour)
    if isinstance(behaviour, dict):
        jsonschema.Draft202012Validator(SCHEMA).validate({"name": "it", **opposite(behaviour)})


@pytest.mark.parametrize(
    "behaviour", [{"contians": "x"}, {"contains": "a", "regex": "b"}, {"length": {"mx": 1}}, {}, 7]
)
def test_editors_refuse_what_is_refused(behaviour):
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(behaviour)


def test_parts_are_decided_by_others_and_a_part_that_makes_no_difference_may_be_open():
    sentence = {"judge": "It is polite.", "weight": 2}
    share = {
        "share": 0.5,
        "parts": [sentence, {"contains": "way"}, {"contains": "no", "weight": 0}],
    }
    polite = read_behaviour({"at_least": share})
    asked, _, _ = polite.leaves()
    reply = AttemptView({"response": "On its way."})
    assert polite.verdict(reply, {}).holds is None
    assert polite.verdict(reply, {asked.mark: CheckResult(True, "yes")}).holds is True
    assert polite.verdict(reply, {asked.mark: CheckResult(False, "no")}).holds is False
    enough = read_behaviour({"at_least": {**share, "share": 0.3}})
    assert enough.verdict(reply, {}).holds is True


def test_a_stored_part_never_loads_code(tmp_path, monkeypatch):
    (tmp_path / "loud_part.py").write_text("raise SystemExit('loaded')\n")
    monkeypatch.syspath_prepend(tmp_path)
    text = json.dumps(
        {"at_least": {"share": 1, "parts": [{"python": "loud_part:f"}, {"contains": "a"}]}}
    )
    stored = stored_behaviour(json.loads(text))
    assert [leaf.key for leaf in stored.leaves()] == ["python", "contains"]
    assert stored.verdict(AttemptView({"response": "a"}), {}).holds is None
