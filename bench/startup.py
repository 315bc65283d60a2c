"""Start-up time of `pennyweight --help`, relative to importing click."""

import sys

from bench.measure import PENNYWEIGHT, Result, fastest


def run() -> list[Result]:
    click = fastest([sys.executable, "-c", "import click"], 15).seconds
    help_text = fastest([*PENNYWEIGHT, "--help"], 15).seconds
    print(f"import click {click * 1000:.0f} ms, pennyweight --help {help_text * 1000:.0f} ms")
    return [Result("pennyweight --help, relative to import click", help_text / click, 3, " ×")]
