"""`pennyweight serve`: the page, in the browser."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import sys
import webbrowser
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from pennyweight.cli.options import names_option, option, store_option
from pennyweight.errors import UsageError
from pennyweight.text.format import plural
from pennyweight.text.safe import clean

MAX_HEAD_BYTES = 262_144
"""Size of a request's head: URLs contain filters and the keys of records."""
EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")
OPENED = '<!doctype html><meta http-equiv="refresh" content="0; url={}">'


@click.command("serve", epilog="Example: pennyweight serve suites/ --port 9000")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH...]")
@option("--port", "Port to bind; 0: any free one.", type=click.IntRange(0, 65535), default=8700)
@option("--host", "Address to bind. A non-loopback address requires a token.", default="127.0.0.1")
@option("--allow-host", "Another host name that the server answers to.", "NAME", multiple=True)
@click.option("--no-token", is_flag=True, help="Let everyone on this machine use the page.")
@names_option("--scorers", "Show the metrics and measures that FILE.py declares, too.", "FILES")
@store_option
def command(
    paths: tuple[Path, ...],
    port: int,
    host: str,
    allow_host: tuple[str, ...],
    no_token: bool,
    scorers: list[str],
    store: str | None,
) -> None:
    """View, start and compare runs in the browser.

    Suites in each PATH that is a folder (default: the current one) can be started
    from the page. A PATH that is a log of another tool, or a file of records, is
    kept as a run first, as by 'pennyweight import'.
    The printed link signs you in, once; other users of this machine cannot. Set
    PENNYWEIGHT_TOKEN to choose the token yourself, and PENNYWEIGHT_READ_TOKEN for
    read-only access. A non-loopback address requires one of them.
    """
    from pennyweight.api.log_import import import_once
    from pennyweight.api.sources import open_store

    try:
        import uvicorn

        from pennyweight.web.access import Access
        from pennyweight.web.app import make_app
    except ModuleNotFoundError as error:
        raise UsageError(
            f"pennyweight serve needs {error.name}: pip install 'pennyweight[web]'."
        ) from None
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path}: no such file or folder.")
    at = open_store(store)
    folders, logs = import_once(paths, at)
    for name, made in logs.items():
        for note in made.notes if made else ():
            click.echo(f"Note: {clean(note)}", err=True)
        read = f"{plural(made.records, 'record')} imported" if made else "imported before"
        click.echo(f"Run {name}: {read}.", err=True)
    access = Access.of(host, os.environ)
    token = secrets.token_urlsafe(18) if access.open and not no_token else ""
    if token:
        access = Access.of(host, os.environ, token)
    app = make_app(
        at, host=host, folders=folders or (Path(),), allow=allow_host, access=access,
        scorers=scorers,
    )  # fmt: skip
    config = uvicorn.Config(
        app, host=host, port=port, log_level="warning", server_header=False, proxy_headers=False,
        timeout_graceful_shutdown=2, h11_max_incomplete_event_size=MAX_HEAD_BYTES,
    )  # fmt: skip
    listening = _listen(host, port)
    bound = listening.getsockname()[1]
    for line in address_lines(host, bound, allow_host):
        click.echo(line, err=True)
    with TemporaryDirectory(prefix="pennyweight-") as private:
        if token:
            link = f"{address_of(host, bound)}enter?code={access.link_code()}"
            click.echo(f"Sign in once with {link}", err=True)
            click.echo(f"or with the token {token}; --no-token turns this off.", err=True)
            open_link(link, Path(private))
        uvicorn.Server(config).run(sockets=[listening])
    at.close()


def address_of(host: str, port: int) -> str:
    """Return the address of the page on this machine."""
    place = "localhost" if host in EVERYWHERE else f"[{host}]" if ":" in host else host
    return f"http://{place}:{port}/"


def address_lines(host: str, port: int, allowed: tuple[str, ...] = ()) -> list[str]:
    """Return the lines that name the addresses of the page.

    >>> for line in address_lines("0.0.0.0", 8700):
    ...     print(line)
    Pennyweight is at http://localhost:8700/ (Ctrl-C stops it).
    From other machines, it answers only to names given with --allow-host NAME.
    """
    everywhere = host in EVERYWHERE
    lines = [f"Pennyweight is at {address_of(host, port)} (Ctrl-C stops it)."]
    if allowed:
        names = ", ".join(f"http://{name}:{port}/" for name in allowed)
        lines.append(f"Also at {names}")
    elif everywhere:
        lines.append("From other machines, it answers only to names given with --allow-host NAME.")
    return lines


def open_link(link: str, private: Path) -> None:
    """Open a link in the browser of a desktop.

    The browser gets the name of a private file that leads there: others can see its arguments.
    """
    desktop = sys.platform in {"win32", "darwin"} or any(map(os.environ.get, DISPLAYS))
    if not (desktop and sys.stderr.isatty()):
        return
    page = private / "open.html"
    page.write_text(OPENED.format(link), encoding="utf-8")
    with contextlib.suppress(webbrowser.Error, OSError):
        webbrowser.open(page.as_uri())


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
