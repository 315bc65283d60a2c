"""A server in a process of its own that notes when each call came, and how many were in flight."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STATE = {"times": [], "most": 0, "now": 0}
LOCK = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    delay = 0.0

    def log_message(self, *_):
        pass

    def answer(self, value):
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        with LOCK:
            self.answer(STATE)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        with LOCK:
            STATE["times"].append(time.monotonic())
            STATE["now"] += 1
            STATE["most"] = max(STATE["most"], STATE["now"])
        time.sleep(self.delay)
        with LOCK:
            STATE["now"] -= 1
        message = {"role": "assistant", "content": "4"}
        self.answer({
            "model": "m", "usage": {"prompt_tokens": 60, "completion_tokens": 40},
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        })  # fmt: skip


@contextmanager
def counting_server(delay=0.0):
    """Start the server; gives its address and what it has noted."""
    process = subprocess.Popen(
        [sys.executable, __file__, str(delay)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        address = f"http://127.0.0.1:{int(process.stdout.readline())}"

        def noted():
            with urllib.request.urlopen(address, timeout=30) as reply:
                return json.load(reply)

        yield address, noted
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


if __name__ == "__main__":
    Handler.delay = float(sys.argv[1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown()), daemon=True).start()
    server.serve_forever()
