"""A server on this machine that answers by rules, for Pennyweight and for the tool it reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from background import in_background

ADDRESS = "http://127.0.0.1:8765/v1"
"""The address in the configurations, which is replaced by that of the server."""
_OURS = re.compile(r'^- ("[^"]*") \(0 to 1 points\): (.*?)(?: "N/A" only when: .*)?$', re.MULTILINE)
_JUDGED = re.compile(
    r"<Output>\n?(.*?)\n?</Output>|reply that was given:\n<data-\w+>\n(.*?)\n</data-", re.DOTALL
)
_RUBRIC = re.compile(r"<Rubric>\n?(.*?)\n?</Rubric>", re.DOTALL)


def grade(rubric: str, output: str) -> bool:
    """Grade by rules: a text in quotation marks must be in it; politeness needs please or thank."""
    wanted = re.findall(r'"([^"]+)"', rubric) or ["please", "thank"]
    return any(text.lower() in output.lower() for text in wanted)


def judged(text: str) -> str:
    found = _JUDGED.search(text)
    return (found[1] or found[2] or "") if found else ""


def verdict(messages: list[dict[str, str]]) -> str:
    """Answer as a judge, in the form that is asked for."""
    text = "\n".join(m["content"] for m in messages)
    last = messages[-1]["content"]
    output, ours = judged(last), _OURS.findall(text)
    if not ours:
        rubric = _RUBRIC.search(last)
        passed = grade(rubric[1] if rubric else "", output)
        return json.dumps({"reason": "by rule", "score": int(passed), "pass": passed})
    scores = {json.loads(key): grade(said, output) for key, said in ours}
    items = {k: {"evidence": "By rule.", "score": "1" if v else "0"} for k, v in scores.items()}
    share = sum(scores.values()) / len(scores)
    whole = {"items": items, "confidence": 1, "weighted_score": share, "passed": share == 1}
    return json.dumps(whole)


class RuleServer(ThreadingHTTPServer):
    """Answers with the first rule whose pattern is in the messages."""

    daemon_threads = True

    def __init__(self, rules: list[dict[str, Any]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.rules = rules

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def reply(self, model: str, messages: list[dict[str, Any]]) -> str | None:
        if model == "grader":
            return verdict(messages)
        text = "\n".join(str(m["content"]) for m in messages)
        for rule in self.rules:
            if rule.get("model", model) == model and re.search(rule.get("asked", ""), text):
                said: str | None = rule.get("say")
                return said
        return text


class _Handler(BaseHTTPRequestHandler):
    server: RuleServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        size = int(self.headers.get("content-length", 0))
        asked = json.loads(self.rfile.read(size))
        text = self.server.reply(asked["model"], asked["messages"])
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        body = {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": asked["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": usage,
        }
        if text is None:
            body = {"error": {"message": "refused by rule", "type": "invalid_request_error"}}
        data = json.dumps(body).encode()
        self.send_response(200 if text is not None else 400)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving(folder: Path) -> Iterator[RuleServer]:
    """Serve the rules of a folder, `replies.yaml`."""
    rules = yaml.safe_load((folder / "replies.yaml").read_text()) or []
    with in_background(RuleServer(rules)) as server:
        yield server


def copied(folder: Path, target: Path, address: str) -> None:
    """Copy a configuration with the address of the server."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in {"verdicts.json", "replies.yaml"}:
            new = target / path.relative_to(folder)
            new.parent.mkdir(parents=True, exist_ok=True)
            new.write_text(path.read_text().replace(ADDRESS, address))
