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
