"""Sessions of Claude Code."""

import json
from pathlib import Path
from typing import Any

from pennyweight.render.transcript.trajectory import trajectory
from sources.logs.fixtures import expected, fixture
from sources.logs.reading import records


def line(kind: str, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content, **more.pop("message", {})}
    return {"sessionId": "s-1", "uuid": "u", "type": kind, "message": message, **more}


def reply(number: int, content: Any, output: int, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 3, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 5}
    about = {"id": f"m{number}", "model": "mini", "usage": {**usage, "output_tokens": output}}
    return line("assistant", content, message=about, **more)


LINES = [
    {"type": "summary", "summary": "Adding"},
    line("user", "What is 2 + 2?"),
    reply(1, [{"type": "thinking", "thinking": "I add."}], 1),
    reply(1, [{"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}], 9),
    line("user", [{"type": "tool_result", "content": "a.txt"}]),
    reply(2, [{"type": "text", "text": "inside"}], 4, isSidechain=True),
    reply(3, [{"type": "text", "text": "It is 4."}], 2),
]


def test_a_session_is_one_record(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in LINES))
    (row,) = records(path)
    assert (row["task_id"], row["subject"], row["input"]) == ("s-1", "mini", "What is 2 + 2?")
    assert (row["response"], row["reasoning"]) == ("It is 4.", "I add.")
    assert row["completion_tokens"] == 9 + 4 + 2  # each message once, by its last line
    assert row["prompt_tokens"] == 3 * (3 + 10 + 5)
    assert json.loads(row["tool_calls"]) == [{"name": "Bash", "arguments": {"command": "ls"}}]
    roles = [one["role"] for one in json.loads(row["messages"])]
    assert roles == ["user", "assistant", "tool", "assistant"]


def test_steps_have_their_thoughts_times_and_errors(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    broken = line("user", [{"type": "tool_result", "content": "no such file", "is_error": True}])
    lines = [*LINES[1:4], broken, *LINES[5:]]
    timed = [{**one, "timestamp": f"2026-01-02T03:04:0{n}.000Z"} for n, one in enumerate(lines)]
    path.write_text("".join(json.dumps(one) + "\n" for one in timed))
    (row,) = records(path)
    asked, called, answered, ended = json.loads(row["messages"])
    assert (asked["timestamp"], called["timestamp"]) == (
        timed[0]["timestamp"],
        timed[2]["timestamp"],
    )
    assert called["reasoning"] == "I add."
    assert "reasoning" not in ended
    assert answered["is_error"] is True
    steps = trajectory({"work": json.dumps({"turns": [called, answered, ended]})})
    assert [(step.thought, step.failed, step.at) for step in steps] == [
        ("I add.", True, 0.0), ("", False, 3.0),
    ]  # fmt: skip


def test_an_error_of_the_api_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    failed = line("assistant", [{"type": "text", "text": "API Error: 529"}], isApiErrorMessage=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in [*LINES[:2], failed]))
    (row,) = records(path)
    assert (row["status"], row["error"]) == ("error", "API Error: 529")


def test_a_session_of_the_known_shape_gives_its_numbers() -> None:
    for name, report in expected("claude_code").items():
        (row,) = records(fixture("claude_code") / name)
        cached = report["cache_creation_input_tokens"] + report["cache_read_input_tokens"]
        assert row["prompt_tokens"] == report["input_tokens"] + cached
        assert row["completion_tokens"] == report["output_tokens"]
        assert row["response"] == report["final_text"]
        assert len(json.loads(row["tool_calls"])) == report["tool_calls"]
