"""Make every kept output from fresh files, in a folder and a store of their own."""

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import chdir
from html.parser import HTMLParser
from pathlib import Path
from shutil import copytree
from unittest.mock import patch
from urllib.parse import quote

from cli.command import pennyweight
from golden import cases, worlds
from web.serving import serving

ROOT = Path(__file__).parent.parent.parent
TERMINAL = {"COLUMNS": "80", "NO_COLOR": "1", "PENNYWEIGHT_STORE": ""}
CHANGING = (
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?( UTC|Z|\+00:00)?", "<time>"),
    (r"\d{4}-\d\d-\d\d", "<date>"),
    (r"(created|started|imported|ended)\": [\d.]+", r'\1": <seconds>'),
    (r'(_timestamp": ?)"[\d.]+"', r'\1"<seconds>"'),
    (r"pennyweight[ /-]v?\d+\.\d+\.\d+\S*", "pennyweight <version>"),
    (r"127\.0\.0\.1:\d+", "<address>"),
)
BLOCKS = frozenset(
    "p div section article header footer main nav li ul ol tr table h1 h2 h3 h4 h5 dt dd dl summary"
    " details form option label button text title caption pre br".split()
)


class Text(HTMLParser):
    """The words of a page, a line for each block; tooltips in brackets."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.hidden = 0

    def handle_starttag(self, tag, attrs):
        self.hidden += tag in {"script", "style"}
        if tag in BLOCKS:
            self.parts.append("\n")
        elif tag in {"td", "th"}:
            self.parts.append(" | ")
        if tip := dict(attrs).get("title"):
            self.parts.append(f"[{tip}] ")

    def handle_endtag(self, tag):
        self.hidden -= tag in {"script", "style"}
        if tag in BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data):
        if not self.hidden:
            self.parts.append(data)


def words(html: str) -> str:
    """Give the text of a page."""
    parser = Text()
    parser.feed(html)
    lines = (" ".join(line.split()) for line in "".join(parser.parts).split("\n"))
    return "\n".join(line for line in lines if line)


def steady(text: str, folder: Path) -> str:
    """Replace what differs from one run to the next."""
    text = text.replace(str(folder), "<folder>")
    for pattern, name in CHANGING:
        text = re.sub(pattern, name, text)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def outputs(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each output."""
    folder = folder / "golden"
    folder.mkdir()
    worlds.write(folder)
    copytree(ROOT / "examples", folder / "examples")
    (folder / "out").mkdir()
    with chdir(folder), patch.dict(os.environ, TERMINAL):
        del os.environ["PENNYWEIGHT_STORE"]
        for run in (*cases.RUNS, "one_side"):
            name = "one_side_run" if run == "one_side" else run
            kept = pennyweight("import", f"{run}.jsonl", "--as", name)
            assert kept.code == 0, kept.err
        for name, line in (cases.commands() | cases.EXPORTS).items():
            result = pennyweight(*shlex.split(line))
            written = [*files(folder / "out")]
            shown = f"$ pennyweight {line}\n{result.out}{result.err}exit code {result.code}\n"
            yield name, steady("\n".join([shown, *written]), folder)
        for name, line in cases.REPORTS.items():
            result = pennyweight(*shlex.split(line))
            file = folder / line.split(" -o ")[1].split()[0]
            text = file.read_text("utf-8")
            text = words(text) if file.suffix == ".html" else text
            yield name, steady(f"$ pennyweight {line}\n{result.err}{text}", folder)
        with serving(folder) as server:
            for run in cases.RUNS:
                server.digest(run)
            for name, place in cases.PAGES.items():
                status, _, html = server.get(quote(place, safe="/?=&"))
                yield name, steady(f"{place}\nstatus {status}\n{words(html)}", folder)


def files(folder: Path) -> Iterator[str]:
    """Yield the text of what a command wrote, and remove it."""
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        yield f"--- {path.relative_to(folder)}\n{path.read_text('utf-8')}"
        path.unlink()
