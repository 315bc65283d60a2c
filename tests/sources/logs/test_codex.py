"""Sessions of Codex."""

import json
from pathlib import Path
from typing import Any

from sources.logs.fixtures import expected, fixture
from sources.logs.reading import notes_of, records


def line(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-01-02T03:04:05Z", "type": kind, "payload": payload}


def said(role: str, text: str) -> dict[str, Any]:
    return line("response_item", type="message", role=role, content=[{"type": "x", "text": text}])


def used(tokens: int) -> dict[str, Any]:
    total = {"input_tokens": tokens, "cached_input_tokens": 5, "output_tokens": 3}
    return line("event_msg", type="token_count", info={"total_token_usage": total})


LINES = [
    line("session_meta", id="s-1"),
    line("turn_context", model="mini"),
    said("user", "<environment_context>here</environment_context>"),
    said("user", "What is 2 + 2?"),
    line("response_item", type="reasoning", summary=[{"text": "I add."}]),
    line("response_item", type="function_call", name="sh", arguments='{"cmd": "ls"}'),
    line("response_item", type="function_call_output", output="a.txt"),
    used(10),
    said("assistant", "It is 4."),
    used(30),
]
END = line("event_msg", type="task_complete", last_agent_message="It is 4.")


def written(folder: Path, *lines: Any) -> Path:
    path = folder / "rollout-1.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return path


def test_a_session_is_one_record(tmp_path: Path) -> None:
    (row,) = records(written(tmp_path, *LINES, END))
    assert (row["task_id"], row["subject"], row["input"]) == ("s-1", "mini", "What is 2 + 2?")
    assert (row["response"], row["reasoning"], row["passed"]) == ("It is 4.", "I add.", None)
    assert (row["prompt_tokens"], row["completion_tokens"]) == (30, 3)  # the last, not the sum
    assert json.loads(row["tool_calls"]) == [{"name": "sh", "arguments": {"cmd": "ls"}}]
    roles = [one["role"] for one in json.loads(row["messages"])]
    assert roles == ["user", "user", "assistant", "tool", "assistant"]


def test_a_session_that_broke_off_is_an_error_if_it_says_why(tmp_path: Path) -> None:
    (row,) = records(written(tmp_path, *LINES))
    assert (row["status"], row["response"]) == ("ok", "It is 4.")
    failed = line("event_msg", type="error", message="no quota")
    (row,) = records(written(tmp_path, *LINES, failed))
    assert (row["status"], row["error"]) == ("error", "no quota")


def test_a_cut_line_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, *LINES, END)
    path.write_text(path.read_text() + '{"type": "event_m')
    assert notes_of(path) == ["rollout-1.jsonl: 1 line left out that are not JSON."]


def test_a_real_session_gives_the_program_s_numbers() -> None:
    for name, report in expected("codex").items():
        (row,) = records(fixture("codex") / name)
        assert row["prompt_tokens"] == report["total_token_usage"]["input_tokens"]
        assert row["completion_tokens"] == report["total_token_usage"]["output_tokens"]
        assert row["response"] == report["last_agent_message"]
