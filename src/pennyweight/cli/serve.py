"""`pennyweight serve`: the page, in the browser."""

from __future__ import annotations

import socket
from pathlib import Path

import click

from pennyweight.cli.options import option, store_option
from pennyweight.errors import UsageError

MAX_HEAD_BYTES = 262_144
"""Size of a request's head: URLs contain filters and the keys of records."""


@click.command("serve", epilog="Example: pennyweight serve suites/ --port 9000")
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path), metavar="[FOLDER...]")
@option("--port", "Port to bind; 0: any free one.", type=click.IntRange(0, 65535), default=8700)
@option("--host", "Address to bind. A non-loopback address requires a token.", default="127.0.0.1")
@option("--allow-host", "Another host name that the server answers to.", "NAME", multiple=True)
@store_option
def command(
    folders: tuple[Path, ...],
    port: int,
    host: str,
    allow_host: tuple[str, ...],
    store: str | None,
) -> None:
    """View, start and compare runs in the browser.

    Suites in each FOLDER (default: the current one) can be started from the page.
    A non-loopback address requires a token: set the environment variable
    PENNYWEIGHT_TOKEN, or PENNYWEIGHT_READ_TOKEN for read-only access.
    """
    from pennyweight.api.sources import open_store

    try:
        import uvicorn

        from pennyweight.web.app import make_app
    except ModuleNotFoundError as error:
        raise UsageError(
            f"pennyweight serve needs {error.name}: pip install 'pennyweight[web]'."
        ) from None
    for folder in folders:
        if not folder.exists():
            raise UsageError(f"{folder}: no such file or folder.")
    at = open_store(store)
    app = make_app(at, host=host, folders=folders or (Path(),), allow=allow_host)
    config = uvicorn.Config(
        app, host=host, port=port, log_level="warning", server_header=False, proxy_headers=False,
        timeout_graceful_shutdown=2, h11_max_incomplete_event_size=MAX_HEAD_BYTES,
    )  # fmt: skip
    listening = _listen(host, port)
    for line in address_lines(host, listening.getsockname()[1], allow_host):
        click.echo(line, err=True)
    uvicorn.Server(config).run(sockets=[listening])
    at.close()


def address_lines(host: str, port: int, allowed: tuple[str, ...] = ()) -> list[str]:
    """Return the lines that name the addresses of the page.

    >>> for line in address_lines("0.0.0.0", 8700):
    ...     print(line)
    Pennyweight is at http://localhost:8700/ (Ctrl-C stops it).
    From other machines, it answers only to names given with --allow-host NAME.
    """
    everywhere = host in {"0.0.0.0", "::", ""}  # noqa: S104
    place = "localhost" if everywhere else f"[{host}]" if ":" in host else host
    lines = [f"Pennyweight is at http://{place}:{port}/ (Ctrl-C stops it)."]
    if allowed:
        names = ", ".join(f"http://{name}:{port}/" for name in allowed)
        lines.append(f"Also at {names}")
    elif everywhere:
        lines.append("From other machines, it answers only to names given with --allow-host NAME.")
    return lines


def _listen(host: str, port: int) -> socket.socket:
    """Listen at once, so that early requests wait instead of being refused.

    The protocol is named: without it, asyncio delays small packets by 40 ms.
    """
    try:
        kind = socket.SOCK_STREAM
        family, *_, place = socket.getaddrinfo(host, port, type=kind)[0]
        made = socket.socket(family, kind, socket.IPPROTO_TCP)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(place)
        made.listen(2048)
    except OSError as error:
        raise UsageError(
            f"{host}, port {port}: {error.strerror or error}; choose others with --host and --port."
        ) from None
    return made
