"""A local server that speaks the batch dialects of OpenAI, Anthropic and Gemini.

Run as a process of its own (`python tests/batch_server.py FOLDER`) it outlives a killed client; it
counts every submission. A request is answered by rules, or by another server with OpenAI's format:
`{"answer": "http://…/v1"}` on /control. It keeps files on disk and streams them.

What it does next is set by POST /control with any of: `hold` (batches stay in progress), `answer`,
`says` (texts of requests -> replies), `order` (reversed, doubled, truncated, foreign, junk),
`fail` (texts of prompts -> HTTP status),
`expire` (texts whose requests expire), `drop` (texts that get no row), `whole` (fail the batch),
`keep` (nothing can be deleted), `refuse` (no batch is created),
`die` (close the connection at a step: upload, create, created, results).
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import threading
import time
import urllib.request
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

NUMBER = re.compile(r"\d+")


class State:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.lock = threading.Lock()
        self.count = itertools.count(1)
        self.batches = {}
        self.log = []
        self.rules = {}
        self.live = 0


def prompt_of(body):
    """Return the text of the last message, in any of the three formats."""
    if "contents" in body:
        return body["contents"][-1]["parts"][0]["text"]
    content = body["input" if "input" in body else "messages"][-1]["content"]
    return content if isinstance(content, str) else content[0]["text"]


def answer(state, dialect, body):
    """Answer one request: the sum of the numbers in its prompt, in the dialect's format."""
    prompt = prompt_of(body)
    text = str(sum(map(int, NUMBER.findall(prompt))))
    if server := state.rules.get("answer"):
        data = json.dumps(
            {"model": "m", "max_tokens": 8, "messages": [{"role": "user", "content": prompt}]}
        )
        ask = urllib.request.Request(
            f"{server}/chat/completions", data.encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(ask, timeout=60) as reply:
            text = json.load(reply)["choices"][0]["message"]["content"]
    asked = json.dumps(body)
    for part, said in state.rules.get("says", {}).items():
        text = said if part in asked else text
    into, out = len(prompt.split()), max(1, len(text.split()))
    if "input" in body:
        said = {"type": "output_text", "text": text, "annotations": []}
        message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
        return {
            "id": "resp_1", "object": "response", "created_at": 1, "status": "completed",
            "model": body["model"], "output": [{**message, "content": [said]}], "tools": [],
            "parallel_tool_calls": True, "tool_choice": "auto",
            "usage": {
                "input_tokens": into, "output_tokens": out, "total_tokens": into + out,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 0},
            },
        }  # fmt: skip
    if dialect == "openai":
        message = {"role": "assistant", "content": text}
        return {
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": into, "completion_tokens": out, "total_tokens": into + out},
        }  # fmt: skip
    if dialect == "anthropic":
        return {
            "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"],
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
            "stop_sequence": None, "usage": {"input_tokens": into, "output_tokens": out},
        }  # fmt: skip
    return {
        "candidates": [
            {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}
        ],
        "usageMetadata": {
            "promptTokenCount": into, "candidatesTokenCount": out, "totalTokenCount": into + out,
        },
        "modelVersion": "gemini-test",
    }  # fmt: skip


def outcome(rules, prompt):
    for name in ("expire", "drop"):
        if any(text in prompt for text in rules.get(name, ())):
            return name, 0
    for text, status in rules.get("fail", {}).items():
        if text in prompt:
            return "fail", status
    return "ok", 200


def result_line(state, dialect, id_, body):
    """Return the line of the results for one request, and whether it is an error; None for none."""
    what, status = outcome(state.rules, prompt_of(body))
    if what == "drop":
        return None
    if dialect == "openai":
        line = {"id": f"batch_req_{next(state.count)}", "custom_id": id_, "error": None}
        if what == "expire":
            line |= {"response": None, "error": {"code": "batch_expired", "message": "expired"}}
        elif what == "fail":
            error = {"error": {"message": f"no {status}", "type": "server_error"}}
            line["response"] = {"status_code": status, "request_id": "r", "body": error}
        else:
            reply = answer(state, dialect, body)
            line["response"] = {"status_code": 200, "request_id": "r", "body": reply}
        return line, what != "ok"
    if dialect == "anthropic":
        kinds = {400: "invalid_request_error", 429: "rate_limit_error"}
        if what == "expire":
            result = {"type": "expired"}
        elif what == "fail":
            error = {"type": kinds.get(status, "api_error"), "message": f"no {status}"}
            result = {
                "type": "errored",
                "error": {"type": "error", "error": error, "request_id": None},
            }
        else:
            result = {"type": "succeeded", "message": answer(state, dialect, body)}
        return {"custom_id": id_, "result": result}, False
    if what == "ok":
        return {"key": id_, "response": answer(state, dialect, body)}, False
    code = 4 if what == "expire" else status
    return {"key": id_, "error": {"code": code, "message": f"no {status}"}}, False


def requests_of(dialect, file):
    """Yield the id and body of each request of a file."""
    if dialect == "anthropic":
        with file.open("rb") as opened:
            for one in json.load(opened)["requests"]:
                yield one["custom_id"], one["params"]
        return
    with file.open("rb") as opened:
        for line in opened:
            if line.strip():
                value = json.loads(line)
                if dialect == "openai":
                    assert value["method"] == "POST"
                    yield value["custom_id"], value["body"]
                else:
                    yield value["key"], value["request"]


def work(state, batch):
    """Answer the requests of a batch; write its results."""
    dialect, rules = batch["dialect"], state.rules
    lines, errors = batch["results"], batch["errors"]
    order = rules.get("order", "")
    kept, ids = [], set()
    batch["succeeded"] = 0
    with lines.open("wb") as good, errors.open("wb") as bad:
        for id_, body in requests_of(dialect, batch["file"]):
            assert id_ not in ids, "an id appears twice in one batch"
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", id_), id_
            ids.add(id_)
            made = result_line(state, dialect, id_, body)
            if made is None:
                continue
            line, is_error = made
            batch["succeeded"] += outcome(state.rules, prompt_of(body))[0] == "ok"
            text = json.dumps(line).encode() + b"\n"
            if order and not is_error:
                kept.append(text)
            else:
                (bad if is_error else good).write(text)
        if order == "reversed":
            kept.reverse()
        if order == "doubled":
            kept = [text for one in kept for text in (one, one)]
        if order == "foreign":
            kept = [*(one.replace(b'"pw_', b'"xx_') for one in kept), *kept]
        if order == "odd_id":
            kept = [*(one.replace(b'"pw_', b'"\\u0000\\ud800') for one in kept), *kept]
        if order == "junk":
            wrong = [
                b"[1, 2]\n",
                b"null\n",
                b"{}\n",
                b'{"custom_id": 7, "key": [], "result": 1}\n',
                b"\xff\n",
            ]
            kept = [
                *wrong,
                *kept,
                b'{"custom_id": "pw_x", "response": "no", "result": null, "key": null}\n',
            ]
        whole = b"".join(kept)
        good.write(whole[: len(whole) * 2 // 3] if order == "truncated" else whole)
    batch["ended"] = True


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: State

    def log_message(self, *_):
        pass

    def reply(self, value, status=200, **headers):
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), text)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def take(self, path, length):
        """Write the body to a file, piece by piece."""
        with path.open("wb") as file:
            while length:
                piece = self.rfile.read(min(length, 1 << 20))
                if not piece:
                    break
                file.write(piece)
                length -= len(piece)

    def dies(self, step):
        """Close the connection at a step, as a network does that fails."""
        if self.state.rules.get("die") == step:
            self.state.rules.pop("die")
            self.close_connection = True
            return True
        return False

    def do_GET(self):
        self.route("GET")

    def do_POST(self):
        self.route("POST")

    def do_DELETE(self):
        if self.state.rules.get("keep"):
            return self.reply({"error": {"message": "It stays.", "code": 403}}, 403)
        return self.route("DELETE")

    def delete(self, path):
        if not path.exists():
            raise KeyError(path)
        path.unlink()
        self.state.log.append("deleted")
        self.reply({"id": path.name, "object": "file", "deleted": True})

    def route(self, method):
        state, parts = self.state, urlsplit(self.path)
        path, query = parts.path, {k: v[0] for k, v in parse_qs(parts.query).items()}
        if path == "/control":
            state.rules = {**state.rules, **json.loads(self.body())}
            if not state.rules.get("hold"):
                for batch in [b for b in state.batches.values() if not b["ended"]]:
                    work(state, batch)
            return self.reply({})
        if path == "/log":
            return self.reply({"log": state.log, "live": state.live})
        if method == "POST":
            state.log.append(re.sub(r"(file|msgbatch|batch)[_-]?\w*\d+", r"\1", path))
        for pattern, action in ROUTES:
            if found := re.fullmatch(pattern, f"{method} {path}"):
                with suppress(KeyError):  # there is no such batch or file
                    return action(self, query, *found.groups())
        return self.reply(
            {"error": {"message": f"no {path}", "code": 404, "status": "NOT_FOUND"}}, 404
        )

    def start(self, dialect, file, name, endpoint=""):
        """Create a batch; answer its requests at once, or when it is let go."""
        state = self.state
        number = next(state.count)
        handle = {
            "openai": f"batch_{number}",
            "anthropic": f"msgbatch_{number}",
            "google": f"batches/b{number}",
        }
        batch = {
            "handle": handle[dialect], "dialect": dialect, "file": file, "name": name,
            "endpoint": endpoint, "created": time.time(), "cancelled": False, "number": number,
            "results": state.folder / f"results-{number}", "ended": False,
            "errors": state.folder / f"errors-{number}",
            "total": sum(1 for _ in requests_of(dialect, file)), "succeeded": 0,
        }  # fmt: skip
        state.batches[batch["handle"]] = batch
        state.log.append(f"submitted {batch['total']}")
        batch["whole"] = state.rules.get("whole")
        if batch["whole"]:
            batch["ended"] = True
        elif not state.rules.get("hold"):
            work(state, batch)
        return batch

    def page(self, dialect, query, after, size):
        every = [b for b in reversed(self.state.batches.values()) if b["dialect"] == dialect]
        if (last := query.get(after)) is not None:
            places = [i for i, b in enumerate(every) if b["handle"] == last]
            every = every[places[0] + 1 :] if places else []
        limit = int(query.get(size, 20))
        return every[:limit], len(every) > limit

    # OpenAI

    def openai_upload(self, _):
        if self.dies("upload"):
            return None
        number = next(self.state.count)
        raw = self.state.folder / f"raw-{number}"
        self.take(raw, int(self.headers["Content-Length"]))
        edge = re.search(r'boundary="?([^";]+)', self.headers["Content-Type"])[1].encode()
        parts = raw.read_bytes().split(b"--" + edge)
        fields = {}
        for part in parts[1:-1]:
            head, _, content = part.partition(b"\r\n\r\n")
            fields[re.search(rb'name="([^"]+)"', head)[1].decode()] = content[:-2]
        assert fields["purpose"] == b"batch"
        raw.unlink()
        file = self.state.folder / f"file-{number}"
        file.write_bytes(fields["file"])
        return self.reply({
            "id": f"file-{number}", "object": "file", "bytes": len(fields["file"]), "created_at": 1,
            "filename": "x.jsonl", "purpose": "batch", "status": "processed",
        })  # fmt: skip

    def openai_create(self, _):
        if self.dies("create"):
            return None
        asked = json.loads(self.body())
        assert asked["completion_window"] == "24h"
        assert asked["endpoint"] in {"/v1/chat/completions", "/v1/responses"}
        file = self.state.folder / asked["input_file_id"]
        if self.state.rules.get("refuse"):
            return self.reply({"error": {"message": "No.", "code": 400}}, 400)
        batch = self.start("openai", file, asked.get("metadata"), asked["endpoint"])
        return None if self.dies("created") else self.reply(self.openai_batch(batch))

    def openai_batch(self, b):
        whole = b["whole"]
        status = "completed" if b["ended"] else "in_progress"
        status = "failed" if whole else "cancelled" if b["cancelled"] and b["ended"] else status
        number, errors = b["number"], None
        if whole:
            errors = {
                "object": "list",
                "data": [{"code": whole, "message": f"It is {whole}.", "line": 1, "param": None}],
            }
        shown = b["ended"] and not whole
        has = {n: shown and b[n].exists() and b[n].stat().st_size for n in ("results", "errors")}
        return {
            "id": b["handle"], "object": "batch", "endpoint": b["endpoint"], "errors": errors,
            "input_file_id": b["file"].name, "completion_window": "24h", "status": status,
            "output_file_id": f"results-{number}" if has["results"] else None,
            "error_file_id": f"errors-{number}" if has["errors"] else None,
            "created_at": int(b["created"]), "metadata": b["name"],
            "request_counts": {
                "total": b["total"], "completed": b["succeeded"],
                "failed": b["total"] - b["succeeded"] if b["ended"] else 0,
            },
        }  # fmt: skip

    def openai_list(self, query):
        batches, more = self.page("openai", query, "after", "limit")
        data = [self.openai_batch(b) for b in batches]
        return self.reply(
            {"object": "list", "data": data, "has_more": more, "first_id": None, "last_id": None}
        )

    def openai_get(self, _, handle):
        return self.reply(self.openai_batch(self.state.batches[handle]))

    def openai_cancel(self, _, handle):
        return self.reply(self.openai_batch(self.cancelled(handle)))

    def cancelled(self, handle):
        batch = self.state.batches[handle]
        self.body()
        if not batch["ended"]:
            batch["cancelled"] = batch["ended"] = True
            batch["results"].touch(), batch["errors"].touch()
        return batch

    def openai_file(self, _, name):
        self.results(self.state.folder / name)

    def openai_delete(self, _, name):
        self.delete(self.state.folder / name)

    def results(self, file):
        size = file.stat().st_size
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        cut = self.dies("results")
        with file.open("rb") as opened:
            left = size // 2 if cut else size
            while left and (piece := opened.read(min(left, 1 << 20))):
                self.wfile.write(piece)
                left -= len(piece)

    def chat(self, _):
        """Answer a live call."""
        self.state.live += 1
        self.reply(answer(self.state, "openai", json.loads(self.body())))

    # Anthropic

    def anthropic_create(self, _):
        if self.dies("create"):
            return None
        file = self.state.folder / f"requests-{next(self.state.count)}"
        self.take(file, int(self.headers["Content-Length"]))
        batch = self.start("anthropic", file, None)
        return None if self.dies("created") else self.reply(self.anthropic_batch(batch))

    def anthropic_batch(self, b):
        ended, total = b["ended"], b["total"]
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(b["created"]))
        counts = {"processing": 0 if ended else total, "succeeded": b["succeeded"]}
        wrong = total - b["succeeded"] if ended else 0
        host = f"http://{self.headers['Host']}"
        return {
            "id": b["handle"], "type": "message_batch", "created_at": at, "expires_at": at,
            "processing_status": "ended" if ended else "in_progress", "archived_at": None,
            "cancel_initiated_at": None, "ended_at": at if ended else None,
            "request_counts": {**counts, "errored": wrong, "canceled": 0, "expired": 0},
            "results_url": f"{host}/v1/messages/batches/{b['handle']}/results" if ended else None,
        }  # fmt: skip

    def anthropic_list(self, query):
        batches, more = self.page("anthropic", query, "after_id", "limit")
        data = [self.anthropic_batch(b) for b in batches]
        ids = [b["id"] for b in data] or [None]
        return self.reply({"data": data, "has_more": more, "first_id": ids[0], "last_id": ids[-1]})

    def anthropic_get(self, _, handle):
        return self.reply(self.anthropic_batch(self.state.batches[handle]))

    def anthropic_cancel(self, _, handle):
        return self.reply(self.anthropic_batch(self.cancelled(handle)))

    def anthropic_results(self, _, handle):
        self.results(self.state.batches[handle]["results"])

    def anthropic_delete(self, _, handle):
        batch = self.state.batches.pop(handle)
        batch["results"].unlink()
        self.delete(batch["file"])

    def messages(self, _):
        self.state.live += 1
        self.reply(answer(self.state, "anthropic", json.loads(self.body())))

    # Gemini

    def google_start(self, _):
        self.body()
        assert self.headers["X-Goog-Upload-Protocol"] == "resumable"
        number = next(self.state.count)
        url = f"http://{self.headers['Host']}/upload/{number}"
        self.reply({}, X_Goog_Upload_URL=url, X_Goog_Upload_Status="active")

    def google_upload(self, _, number):
        if self.dies("upload"):
            return None
        assert "upload" in self.headers["X-Goog-Upload-Command"]
        self.take(self.state.folder / f"f{number}", int(self.headers["Content-Length"]))
        file = {
            "name": f"files/f{number}",
            "uri": f"http://{self.headers['Host']}/v1beta/files/f{number}",
        }
        return self.reply({"file": file}, X_Goog_Upload_Status="final")

    def google_create(self, _, model):
        if self.dies("create"):
            return None
        asked = json.loads(self.body())["batch"]
        given = asked.get("inputConfig") or asked["input_config"]
        name = asked.get("displayName") or asked.get("display_name")
        file = self.state.folder / (given.get("fileName") or given["file_name"]).removeprefix(
            "files/"
        )
        batch = self.start("google", file, name, model)
        return None if self.dies("created") else self.reply(self.google_batch(batch))

    def google_batch(self, b):
        whole, ended = b["whole"], b["ended"]
        state = "SUCCEEDED" if ended else "RUNNING"
        state = "FAILED" if whole else "CANCELLED" if b["cancelled"] else state
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(b["created"]))
        about = {
            "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
            "name": b["handle"], "displayName": b["name"], "state": f"BATCH_STATE_{state}",
            "createTime": at, "updateTime": at, "model": f"models/{b['endpoint']}",
            "batchStats": {
                "requestCount": str(b["total"]),
                "pendingRequestCount": "0" if ended else str(b["total"]),
                "successfulRequestCount": str(b["succeeded"]),
            },
            "inputConfig": {"fileName": f"files/{b['file'].name}"},
        }  # fmt: skip
        value = {"name": b["handle"], "metadata": about}
        if whole:
            return {**value, "done": True, "error": {"code": 3, "message": f"It is {whole}."}}
        if ended:
            output = {"responsesFile": f"files/r{b['number']}"}
            about["output"] = output
            value |= {"done": True, "response": output}
        return value

    def google_list(self, query):
        batches, more = self.page("google", query, "pageToken", "pageSize")
        value = {"operations": [self.google_batch(b) for b in batches]}
        return self.reply({**value, "nextPageToken": batches[-1]["handle"]} if more else value)

    def google_get(self, _, handle):
        return self.reply(self.google_batch(self.state.batches[handle]))

    def google_cancel(self, _, handle):
        self.cancelled(handle)
        self.reply({})

    def google_file(self, _, number):
        self.results(self.state.folder / f"results-{number}")

    def google_delete(self, _, kind, number):
        self.delete(self.state.folder / f"{'results-' if kind == 'r' else kind}{number}")

    def generate(self, _, model):
        self.state.live += 1
        self.reply(answer(self.state, "google", json.loads(self.body())))


H = Handler
ROUTES = [
    (r"POST /v1/files", H.openai_upload),
    (r"POST /v1/batches", H.openai_create),
    (r"GET /v1/batches", H.openai_list),
    (r"GET /v1/batches/([\w-]+)", H.openai_get),
    (r"POST /v1/batches/([\w-]+)/cancel", H.openai_cancel),
    (r"GET /v1/files/([\w-]+)/content", H.openai_file),
    (r"DELETE /v1/files/([\w-]+)", H.openai_delete),
    (r"POST /v1/chat/completions", H.chat),
    (r"POST /v1/messages/batches", H.anthropic_create),
    (r"GET /v1/messages/batches", H.anthropic_list),
    (r"GET /v1/messages/batches/([\w-]+)", H.anthropic_get),
    (r"POST /v1/messages/batches/([\w-]+)/cancel", H.anthropic_cancel),
    (r"GET /v1/messages/batches/([\w-]+)/results", H.anthropic_results),
    (r"DELETE /v1/messages/batches/([\w-]+)", H.anthropic_delete),
    (r"POST /v1/messages", H.messages),
    (r"POST /upload/v1beta/files", H.google_start),
    (r"POST /upload/(\d+)", H.google_upload),
    (r"POST /v1beta/models/([^:/]+):batchGenerateContent", H.google_create),
    (r"GET /v1beta/batches", H.google_list),
    (r"GET /v1beta/(batches/[\w-]+)", H.google_get),
    (r"POST /v1beta/(batches/[\w-]+):cancel", H.google_cancel),
    (r"GET /(?:download/)?v1beta/files/r(\d+):download", H.google_file),
    (r"DELETE /v1beta/files/([fr])(\d+)", H.google_delete),
    (r"POST /v1beta/models/([^:/]+):generateContent", H.generate),
]


def main(folder):
    state = State(folder)
    handler = type("Bound", (Handler,), {"state": state})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown()), daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
