"""`pennyweight serve`: the page."""

from __future__ import annotations

import socket
from pathlib import Path

import click

from pennyweight.cli.options import store_option

LONGEST = 262_144
"""Bytes of a request's head: addresses hold filters and the keys of records."""

EPILOG = """\b
Examples:
  pennyweight serve
  pennyweight serve suites/ --port 9000
"""


@click.command("serve", epilog=EPILOG, context_settings={"max_content_width": 80})
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path), metavar="[FOLDER...]")
@click.option("--port", type=click.IntRange(0, 65535), default=8700, show_default=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Others need a token.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="A host name it goes by.")
@store_option
def command(
    folders: tuple[Path, ...],
    port: int,
    host: str,
    allow_host: tuple[str, ...],
    store: str | None,
) -> None:
    """Look at runs, start them and compare them in the browser.

    Suites below each FOLDER (default: here) can be started from the page.
    Bound to anything but loopback, the environment variable PENNYWEIGHT_TOKEN (or
    PENNYWEIGHT_READ_TOKEN, for those who may only look) is demanded.
    """
    from pennyweight.errors import UsageError  # noqa: PLC0415
    from pennyweight.store.store import Store  # noqa: PLC0415

    try:
        import uvicorn  # noqa: PLC0415

        from pennyweight.web.app import make_app  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise UsageError(
            f"pennyweight serve needs {error.name}: pip install 'pennyweight[web]'."
        ) from None
    for folder in folders:
        if not folder.exists():
            raise UsageError(f"{folder}: no such file or folder.")
    at = Store(store)
    app = make_app(at, host=host, folders=folders or (Path(),), allow=allow_host)
    config = uvicorn.Config(
        app, host=host, port=port, log_level="warning", server_header=False, proxy_headers=False,
        timeout_graceful_shutdown=2, h11_max_incomplete_event_size=LONGEST,
    )  # fmt: skip
    listening = _listen(host, port)
    for line in told(host, listening.getsockname()[1], allow_host):
        click.echo(line, err=True)
    uvicorn.Server(config).run(sockets=[listening])
    at.close()


def told(host: str, port: int, allowed: tuple[str, ...] = ()) -> list[str]:
    """Say where the page is: addresses that it answers to, and how there come to be others.

    >>> for line in told("0.0.0.0", 8700):
    ...     print(line)
    Pennyweight is at http://localhost:8700/ (Ctrl-C ends it).
    Others reach it by the names that --allow-host gives, and none is given: --allow-host NAME.
    """
    everywhere = host in {"0.0.0.0", "::", ""}  # noqa: S104
    place = "localhost" if everywhere else f"[{host}]" if ":" in host else host
    lines = [f"Pennyweight is at http://{place}:{port}/ (Ctrl-C ends it)."]
    if allowed:
        names = ", ".join(f"http://{name}:{port}/" for name in allowed)
        lines.append(f"Others reach it at {names}")
    elif everywhere:
        none = "and none is given: --allow-host NAME."
        lines.append(f"Others reach it by the names that --allow-host gives, {none}")
    return lines


def _listen(host: str, port: int) -> socket.socket:
    """Listen at once, so that who comes now waits and is not refused.

    The protocol is named: without it asyncio leaves small packets waiting for 40 ms.
    """
    from pennyweight.errors import UsageError  # noqa: PLC0415

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
