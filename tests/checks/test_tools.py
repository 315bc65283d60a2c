"""Calls of tools."""

import json

import pytest

from checks.samples import verdict
from pennyweight.models.wires import anthropic, google, openai, responses


@pytest.mark.parametrize(
    ("wire", "file"),
    [
        (openai, "openai_tools"),
        (responses, "responses_tools"),
        (anthropic, "anthropic_tools"),
        (google, "google_tools"),
    ],
)
def test_tool_calls_of_every_provider_are_read(wire, file):
    from models.saved import saved

    reply = wire.decode(saved(file))
    assert reply.tool_calls
    calls = [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in reply.tool_calls]
    row = {"response": reply.text, "tool_calls": json.dumps(calls)}
    first = reply.tool_calls[0]
    wanted = {"tool": first.name, "args": first.parsed()}
    assert verdict({"tool_args": wanted}, row).holds is True
