"""Run the console blocks of README.md and docs/*.md and write the output below each command."""

import sys
import tempfile
from pathlib import Path
from shutil import copytree

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from test_docs import BLOCK, PAGES, run, steps  # noqa: E402


def main() -> None:
    """Update all pages, or the ones named on the command line."""
    named = [Path(name).resolve() for name in sys.argv[1:]]
    for page in [page for page in PAGES if not named or page.resolve() in named]:
        with tempfile.TemporaryDirectory() as folder:
            copytree(ROOT / "examples", Path(folder, "examples"))

            def filled(match, folder=folder):  # type: ignore[no-untyped-def]
                if match[1] != "console":
                    return match[0]
                lines = []
                for command, _ in steps(match[2]):
                    lines += [f"$ {command}", *run(command, folder).stdout.splitlines()]
                return "```console\n" + "\n".join(lines) + "\n```"

            page.write_text(BLOCK.sub(filled, page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
