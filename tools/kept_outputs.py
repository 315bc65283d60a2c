"""Rewrite the kept outputs in tests/golden/data."""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from golden.outputs import outputs  # noqa: E402

DATA = ROOT / "tests" / "golden" / "data"


def main() -> None:
    """Write every output and remove what is no longer made."""
    DATA.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        texts = {f"{n.replace(' ', '-')}.txt": text for n, text in outputs(Path(folder).resolve())}
    for file in DATA.iterdir():
        if file.name not in texts:
            file.unlink()
    for name, text in texts.items():
        (DATA / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
