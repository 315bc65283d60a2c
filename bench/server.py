"""A server that speaks OpenAI's format, answers at once (or after a delay) and counts its calls."""

import asyncio
import json
import sys

THOUGHT = "\n".join(
    f"Step {n}: two and two are taken together, which gives four; so far nothing speaks against it."
    for n in range(1, 16)
)
"""Reasoning of about 1.5 KB, as models write it, so that memory and disk are realistic."""
BODY = json.dumps(
    {
        "id": "x",
        "object": "chat.completion",
        "model": "instant",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": f"{THOUGHT}\nFINAL_ANSWER: 4"},
            }
        ],
        "usage": {"prompt_tokens": 20, "completion_tokens": 8, "total_tokens": 28},
    }
).encode()


class Server(asyncio.Protocol):
    """Just enough HTTP/1.1 for keep-alive POSTs, so that the server is never the bottleneck."""

    calls = 0
    delay = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.buffer = transport, b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (head := self.buffer.find(b"\r\n\r\n")) >= 0:
            low = self.buffer[:head].lower()
            at = low.find(b"content-length:")
            size = int(low[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self.buffer) < head + 4 + size:
                return
            counting = self.buffer.startswith(b"GET /calls")
            self.buffer = self.buffer[head + 4 + size :]
            if counting:
                self.answer(str(Server.calls).encode())
                continue
            Server.calls += 1
            if Server.delay:
                asyncio.get_running_loop().call_later(Server.delay, self.answer, BODY)
            else:
                self.answer(BODY)

    def answer(self, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        self.transport.write(head % len(body) + body)


async def main(delay: float) -> None:
    Server.delay = delay
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)  # exits with the process that started it


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 0.0))
