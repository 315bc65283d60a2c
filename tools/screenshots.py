"""Take the pictures of README and docs: every page, on a store filled by the recorded example.

`python tools/screenshots.py` writes those that the docs show into docs/images; with a folder's
name it writes all pages, light and dark, wide and phone, into that folder.
"""

import json
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from playwright.sync_api import sync_playwright  # noqa: E402

from web.conftest import FLAGS  # noqa: E402
from web.serving import replayed, serving  # noqa: E402

SHOWN = {
    "run-light": ("run", "light", 1180, 900),
    "run-dark": ("run", "dark", 1180, 900),
    "record": ("record", "light", 1180, 640),
    "compare": ("compare", "light", 1180, 760),
}
"""The pictures in the docs: page, theme, width, height."""
SIZES = {"wide": (1280, 900), "phone": (390, 844)}
POLICY = """
policy: release
thresholds:
  blocking: {accuracy: 25%, truncated_rate: "<= 10%"}
  warning: {latency_p95_ms: "< 12s"}
"""


def places(run: str) -> dict[str, str]:
    """Give the address of each page."""
    key = quote(json.dumps(["candles", "smollm2", "T0", 1]), safe="")
    sides = [quote(json.dumps([run, {"tier": t}]), safe="") for t in ("T0", "T2")]
    return {
        "runs": "/",
        "run": f"/runs/{run}",
        "records": f"/runs/{run}/records",
        "record": f"/runs/{run}/record?key={key}",
        "compare": f"/compare?run={run}",
        "task": f"/compare/task?a={sides[0]}&b={sides[1]}&task=steps",
        "gates": f"/gates?run={run}&tier=T2",
        "new": "/new",
        "docs": "/docs",
    }


def jobs(folder: Path | None) -> list[tuple[Path, str, str, int, int]]:
    """List the pictures to take: file, page, theme, width, height."""
    if folder is None:
        images = ROOT / "docs" / "images"
        return [(images / f"{name}.png", *what) for name, what in SHOWN.items()]
    return [
        (folder / f"{page}-{size}-{theme}.png", page, theme, *SIZES[size])
        for page in places("")
        for size in SIZES
        for theme in ("light", "dark")
    ]


def main() -> None:
    """Fill a store, serve it and look at it."""
    chosen = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory(prefix="assay-pictures-") as name:
        folder = Path(name)
        run = replayed(folder)
        (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
        with serving(folder) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path="/usr/bin/chromium", args=list(FLAGS)
            )
            for path, page, theme, width, height in jobs(chosen):
                path.parent.mkdir(parents=True, exist_ok=True)
                context = browser.new_context(
                    viewport={"width": width, "height": height}, color_scheme=theme
                )
                tab = context.new_page()
                tab.goto(server.address + places(run)[page], wait_until="networkidle")
                tab.screenshot(path=path)
                context.close()
                print(f"Wrote {path}.")
            browser.close()


if __name__ == "__main__":
    main()
