"""An object store on loopback that speaks enough of S3 to be read: list, head, and ranges."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from background import in_background

Objects = Mapping[str, bytes]
_NUMBERS = count()


class ObjectServer(ThreadingHTTPServer):
    """Holds the objects of one bucket, and what was asked for."""

    def __init__(self, objects: Objects, status: int | None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects, self.status = objects, status
        self.bucket = f"bucket-{next(_NUMBERS)}"  # Polars remembers the server of each bucket
        self.asked: list[str] = []

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which Polars finds it."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.server_port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "AKIA-not-to-be-shown",
            "AWS_SECRET_ACCESS_KEY": "secret-not-to-be-shown",
            "AWS_REGION": "us-east-1",
        }


@contextmanager
def object_store(objects: Objects, status: int | None = None) -> Iterator[ObjectServer]:
    """Serve objects; with a status, refuse everything and repeat what was sent."""
    with in_background(ObjectServer(objects, status)) as server:
        yield server


class _Handler(BaseHTTPRequestHandler):
    server: ObjectServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        self.server.asked.append(self.path)
        if self.server.status:
            self._send(self.server.status, str(self.headers).encode())
            return
        url = urlsplit(self.path)
        _, bucket, key = f"{url.path}/".split("/", 2)
        objects = self.server.objects if bucket == self.server.bucket else {}
        query, data = parse_qs(url.query), objects.get(unquote(key).rstrip("/"))
        if "list-type" in query:
            self._send(200, _listing(objects, query["prefix"][0]))
        elif data is None:
            self._send(404, b"<Error><Code>NoSuchKey</Code></Error>")
        else:
            self._send_range(data)

    def _send_range(self, data: bytes) -> None:
        first, _, last = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
        start = int(first) if first else max(0, len(data) - int(last))
        stop = min(int(last) + 1, len(data)) if first and last else len(data)
        part = {"Content-Range": f"bytes {start}-{stop - 1}/{len(data)}"}
        partial = "Range" in self.headers
        self._send(206 if partial else 200, data[start:stop], part if partial else {})

    def _send(self, status: int, data: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        usual = {"Last-Modified": formatdate(0, usegmt=True), "ETag": '"x"'}
        for name, value in {**usual, **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)


def _listing(objects: Objects, prefix: str) -> bytes:
    found = "".join(
        f"<Contents><Key>{escape(key)}</Key><LastModified>1970-01-01T00:00:00.000Z</LastModified>"
        f"<ETag>x</ETag><Size>{len(data)}</Size></Contents>"
        for key, data in sorted(objects.items())
        if key.startswith(prefix)
    )
    return f"<ListBucketResult><IsTruncated>false</IsTruncated>{found}</ListBucketResult>".encode()
