"""How long `assay --help` takes, against importing click alone."""

import sys

from bench.measure import ASSAY, Result, fastest


def run() -> list[Result]:
    click = fastest([sys.executable, "-c", "import click"], 15).seconds
    shown = fastest([*ASSAY, "--help"], 15).seconds
    print(f"import click {click * 1000:.0f} ms, assay --help {shown * 1000:.0f} ms")
    return [Result("assay --help, to importing click", shown / click, 3, " ×")]
