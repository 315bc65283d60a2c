"""A paid model on loopback, in a process of its own: it bills a call when it arrives.

`GET /billed` says how many calls and how much money that was, whoever has been killed meanwhile.
"""

import json
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

INPUT, OUTPUT = 10.0, 30.0
"""Dollars per million tokens."""


def cost(prompt, completion):
    return (prompt * INPUT + completion * OUTPUT) / 1e6


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    lock, calls, billed = threading.Lock(), 0, 0.0
    delay, usages = 0.0, ()

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        with Handler.lock:
            prompt, completion = Handler.usages[min(Handler.calls, len(Handler.usages) - 1)]
            Handler.calls += 1
            Handler.billed += cost(prompt, completion)
        time.sleep(Handler.delay)
        message = {"role": "assistant", "content": "FINAL_ANSWER: 4"}
        self.answer(
            {
                "model": "m",
                "choices": [{"finish_reason": "stop", "message": message}],
                "usage": {"prompt_tokens": prompt, "completion_tokens": completion},
            }
        )

    def do_GET(self):
        self.answer({"calls": Handler.calls, "billed": Handler.billed})

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, *_):  # a client that was killed
        pass


@contextmanager
def paid_server(delay, usages):
    """Start a server; `usages` are the tokens of the first calls, the last for all others."""
    process = subprocess.Popen(
        [sys.executable, __file__, str(delay), json.dumps(usages)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


def billed(address):
    """How many calls a server has billed, and how much money that is."""
    with urllib.request.urlopen(f"{address}/billed", timeout=10) as reply:
        value = json.loads(reply.read())
    return value["calls"], value["billed"]


def paid_suite(folder, address, tasks=200, settings="{max_tokens: 100}", **limits):
    """Write a suite against a server, with its prices."""
    lines = ["suite: paid", "tasks:"]
    lines += [f'  - {{id: t{i}, input: "2 + {i}?", target: "4"}}' for i in range(tasks)]
    lines += [
        "subjects:",
        f'  - {{name: m, model: openai/m, base_url: "{address}/v1", settings: {settings}}}',
        f"prices: {{m: {{input: {INPUT}, output: {OUTPUT}}}}}",
        f"limits: {json.dumps(limits)}",
    ]
    path = Path(folder, "suite.yaml")
    path.write_text("\n".join(lines) + "\n")
    return path


if __name__ == "__main__":
    Handler.delay, Handler.usages = float(sys.argv[1]), json.loads(sys.argv[2])
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()
