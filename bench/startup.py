"""How long `pennyweight --help` takes, against importing click alone."""

import sys

from bench.measure import PENNYWEIGHT, Result, fastest


def run() -> list[Result]:
    click = fastest([sys.executable, "-c", "import click"], 15).seconds
    shown = fastest([*PENNYWEIGHT, "--help"], 15).seconds
    print(f"import click {click * 1000:.0f} ms, pennyweight --help {shown * 1000:.0f} ms")
    return [Result("pennyweight --help, to importing click", shown / click, 3, " ×")]
