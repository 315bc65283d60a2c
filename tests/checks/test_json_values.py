"""Replies as JSON."""

from checks.samples import verdict


def test_json_stands_alone_or_in_one_block():
    schema = {"type": "object", "required": ["a"]}
    block = {"response": 'Here:\n```json\n{"a": [1, {"b": null}]}\n```\n'}
    assert verdict({"json": {"schema": schema}}, block).holds is True
    assert verdict({"json": {"path": "$.a[1].b", "equals": None}}, block).holds is True
    assert verdict({"json": {"path": "a[0]", "equals": True}}, block).holds is False
    assert verdict({"json": {"path": "a[7]"}}, block).holds is False
    assert verdict({"json": {"schema": {"required": ["b"]}}}, block).why.startswith("At $:")


def test_where_json_may_stand_is_chosen():
    block = {"response": 'Here:\n```json\n{"a": 1}\n```\n'}
    prose = {"response": 'First {"a": 1}, then {"b": 2} and {not json}.'}
    assert verdict({"json": {"where": "reply"}}, block).holds is False
    assert verdict({"json": {"where": "reply"}}, {"response": ' {"a": 1}\n'}).holds is True
    assert verdict({"json": {}}, prose).holds is False
    second = verdict({"json": {"where": "anywhere", "path": "b", "equals": 2}}, prose)
    assert second.holds is True
    assert verdict({"json": {"where": "anywhere", "path": "c"}}, prose).holds is False
    assert verdict({"json": {"where": "anywhere"}}, {"response": "{no}"}).holds is False
