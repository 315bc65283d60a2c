"""The command, called in this process: quick, and any exception but a clean exit fails the test."""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from unittest.mock import patch

from pennyweight.cli import main


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return strict_json(self.out)


class _Stdin(NamedTuple):
    buffer: io.BytesIO

    def isatty(self) -> bool:
        return False


def pennyweight(*arguments: str | Path, stdin: bytes = b"") -> Result:
    """Run `pennyweight` with arguments, as its entry point does."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
    with (
        patch.object(sys, "argv", ["pennyweight", *map(str, arguments)]),
        patch.object(sys, "stdin", _Stdin(io.BytesIO(stdin))),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    return Result(code, *(_written(stream) for stream in (out, err)))


def refused(*arguments: str | Path, stdin: bytes = b"") -> str:
    """Run `pennyweight` with a mistake: exit 2, nothing on standard output; give the message."""
    result = pennyweight(*arguments, stdin=stdin)
    assert result.code == 2, result
    assert result.out == ""
    assert "Traceback" not in result.err
    return result.err


def scores(*arguments: str | Path, stdin: bytes = b"") -> list[dict[str, Any]]:
    """Give the groups that `pennyweight score --format json` prints."""
    result = pennyweight("score", *arguments, "--format", "json", stdin=stdin)
    assert result.code == 0, result.err
    groups: list[dict[str, Any]] = result.json["groups"]
    return groups


def strict_json(text: str) -> Any:
    """Parse JSON that has no NaN, no Infinity and no key twice."""
    return json.loads(text, parse_constant=_refuse, object_pairs_hook=_unique)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    assert len(found) == len(pairs), [key for key, _ in pairs]
    return found


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()
