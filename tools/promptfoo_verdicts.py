"""Record the verdicts of promptfoo itself on the configurations of the tests.

    python tools/promptfoo_verdicts.py [PROMPTFOO] [NAME…]

PROMPTFOO is its command, `promptfoo` unless given. Each configuration in
tests/suite/foreign/promptfoo/ is run against a server on this machine that answers by the rules in
its replies.yaml, and verdicts.json is written: a row for each test, a column for each provider and
prompt. The tests then need no promptfoo.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from suite.foreign.rules import copied, serving  # noqa: E402

CASES = ROOT / "tests" / "suite" / "foreign" / "promptfoo"
QUIET = {
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
    "PROMPTFOO_DISABLE_SHARING": "1",
}
_REASONS = {0: "pass", 1: "fail", 2: "error"}


def verdicts(folder: Path, command: str) -> list[list[str]]:
    """Run one configuration with promptfoo."""
    with tempfile.TemporaryDirectory() as place, serving(folder) as server:
        copied(folder, Path(place), server.address)
        out = Path(place) / "out.json"
        words = [command, "eval", "-c", "promptfooconfig.yaml", "-o", str(out), "--no-cache"]
        words += ["--no-table", "--no-progress-bar", "-j", "4"]
        environment = {**os.environ, **QUIET, "PROMPTFOO_CONFIG_DIR": str(Path(place) / "own")}
        done = subprocess.run(words, cwd=place, env=environment, capture_output=True, text=True)  # noqa: PLW1510
        if not out.exists():
            raise SystemExit(f"{folder.name}: promptfoo failed: {done.stdout}{done.stderr}")
        results = json.loads(out.read_text())["results"]["results"]
    rows: dict[int, dict[int, str]] = {}
    for one in results:
        said = "pass" if one["success"] else _REASONS[one["failureReason"]]
        rows.setdefault(one["testIdx"], {})[one["promptIdx"]] = said
    return [[row[at] for at in sorted(row)] for _, row in sorted(rows.items())]


def main() -> None:
    """Write the verdicts of all configurations, or of those that are named."""
    command, *names = sys.argv[1:] or ["promptfoo"]
    for folder in sorted(p for p in CASES.iterdir() if not names or p.name in names):
        table = verdicts(folder, command)
        lines = ",\n".join(f" {json.dumps(row)}" for row in table)
        (folder / "verdicts.json").write_text(f"[\n{lines}\n]\n")
        flat = [one for row in table for one in row]
        counts = ", ".join(f"{flat.count(kind)} {kind}" for kind in ("pass", "fail", "error"))
        print(f"{folder.name}: {counts}")


if __name__ == "__main__":
    main()
