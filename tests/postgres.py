"""A PostgreSQL server for tests: a private cluster on a port of this machine, gone afterwards."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg

USER, PASSWORD = "pennyweight", secrets.token_hex(8)
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",  # a test ends processes, not the machine: what was written stays in the cache
    "full_page_writes": "off",
    "shared_buffers": "16MB",
    "max_connections": "50",
}


def binaries():
    """Find the folder of initdb and postgres, the newest first; None where there is none."""
    places = [Path(p) for p in os.environ.get("PATH", "").split(os.pathsep) if p]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    return next((p for p in places if all((p / n).exists() for n in ("initdb", "postgres"))), None)


def _version(folder):
    return float(folder.parent.name) if folder.parent.name.isdigit() else 0.0


class Cluster:
    """A server with data of its own. It refuses root, so root hands it to another user."""

    def __init__(self, folder):
        self.bin = binaries()
        self.folder = Path(folder)
        self.data, self.log = self.folder / "data", self.folder / "log"
        self.who = {"user": _other(), "group": _group(), "extra_groups": []} if _root() else {}
        self.process = None
        if self.who:
            shutil.chown(self.folder, self.who["user"], self.who["group"])
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        # a language whose order is not that of code points, where this server has languages
        if not self._made(secret, "--locale-provider=icu", "--icu-locale=en-US"):
            assert self._made(secret)
        self.port = _free_port()

    def _made(self, secret, *language):
        """Make the data of the server; gives whether that worked."""
        shutil.rmtree(self.data, ignore_errors=True)
        done = subprocess.run(
            [
                *(self.bin / "initdb", "-D", self.data, "-U", USER, f"--pwfile={secret}"),
                *("--auth=scram-sha-256", "--encoding=UTF8", "--no-sync", "--locale=C", *language),
            ],
            capture_output=True,
            check=False,
            cwd=self.folder,
            **self.who,
        )
        return done.returncode == 0

    def start(self):
        """Start the server and wait until it takes connections."""
        options = [o for name, value in SETTINGS.items() for o in ("-c", f"{name}={value}")]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [self.bin / "postgres", "-D", self.data, "-p", str(self.port), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                **self.who,
            )
        end = time.monotonic() + 60
        while True:
            try:
                return psycopg.connect(self.url("postgres")).close()
            except psycopg.OperationalError:
                text = self.log.read_text()
                assert self.process.poll() is None, text
                assert time.monotonic() < end, text
                time.sleep(0.05)

    def stop(self, *, at_once=False):
        """End the server, in good order or `-m immediate`: without a word to anyone."""
        if self.process:
            self.process.send_signal(signal.SIGQUIT if at_once else signal.SIGINT)
            self.process.wait(60)
            self.process = None

    def url(self, database, user=USER, password=PASSWORD):
        """Give the address of a database."""
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def database(self):
        """Make a new database; gives its address."""
        name = f"t{secrets.token_hex(4)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)


def cluster():
    """Start a cluster, give it, and remove it in the end."""
    with tempfile.TemporaryDirectory(
        prefix="pennyweight-pg-", ignore_cleanup_errors=True
    ) as folder:
        made = Cluster(folder)
        made.start()
        try:
            yield made
        finally:
            made.stop(at_once=True)


def _root():
    return hasattr(os, "getuid") and os.getuid() == 0


def _other():
    import pwd

    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _group():
    import pwd

    return pwd.getpwnam(_other()).pw_gid


def _free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
