"""Calls of tools in what agents print."""

import json

import pytest

from checks.samples import verdict

TRACES = {
    "claude": '{"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "t1", '
    '"name": "Bash", "input": {"command": "ls"}}]}}\n'
    '{"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "t1", '
    '"name": "Bash", "input": {"command": "ls"}}]}}\n{"type": "result"}',
    "codex": 'Working.\n{"type": "item.completed", "item": {"id": "i1", '
    '"type": "command_execution", "command": "ls"}}',
    "openai": '{"role": "assistant", "tool_calls": [{"id": "c", "type": "function", '
    '"function": {"name": "Bash", "arguments": "{\\"command\\": \\"ls\\"}"}}]}',
    "gemini": '{"parts": [{"functionCall": {"name": "Bash", "args": {"command": "ls"}}}]}',
}


@pytest.mark.parametrize("kind", TRACES)
def test_tool_calls_are_read_from_traces_of_agents(kind):
    tool = "shell" if kind == "codex" else "Bash"
    row = {"response": "Done.", "work": json.dumps({"stdout": TRACES[kind]})}
    assert verdict({"tool_args": {"tool": tool, "args": {"command": "ls"}}}, row).holds is True
    assert verdict({"tool_count": {"exactly": 1}}, row).holds is True
