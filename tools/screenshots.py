"""Take the screenshots for README and docs: every page, light and dark, wide and on a phone.

`python tools/screenshots.py` fills a store from the recorded examples and writes docs/images and
docs/gallery.md. With the name of a folder it writes the pictures there instead.
"""

import base64
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tools"))

from playwright.sync_api import Browser, sync_playwright  # noqa: E402

from palette import small_png  # noqa: E402
from pennyweight.api.suites import file_id  # noqa: E402
from web.conftest import FLAGS  # noqa: E402
from web.serving import Server, command, serving  # noqa: E402

IMAGES, GALLERY = ROOT / "docs" / "images", ROOT / "docs" / "gallery.md"
SIZES = {"wide": (1180, 900), "phone": (390, 844)}
TALL = {
    "wide": {"run": 1180, "compare": 1880, "report": 1180, "record": 1000, "gates": 1240},
    "phone": {"run": 960, "gates": 1000},
}
"""Heights of the pages that need a taller picture."""
_EDGE = """most => {
  const spans = [];
  const keep = (box, above = 5, below = 7) => {
    if (box.height) spans.push([box.top - above, box.bottom + below]);
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  while (walk.nextNode()) {
    const text = walk.currentNode;
    if (!text.data.trim() || !text.parentElement.checkVisibility()) continue;
    range.selectNodeContents(text);
    const dense = text.parentElement.closest("table.grid tbody");  // its rows touch each other
    for (const box of range.getClientRects()) dense ? keep(box, 2, 3) : keep(box);
  }
  const marks = "svg, input, select, textarea, button, .button, .tag, progress";
  for (const one of document.querySelectorAll(marks))
    if (one.checkVisibility()) keep(one.getBoundingClientRect());
  const last = Math.max(...spans.map(s => s[1])) + 16;
  const end = Math.min(most, Math.ceil(last));
  let [edge, fewest] = [end, Infinity];
  for (let y = end; y > end * 0.75 && fewest; y -= 1) {
    const cut = spans.filter(([top, bottom]) => top < y && y < bottom).length;
    if (cut < fewest) [edge, fewest] = [y, cut];
  }
  return edge;
}"""
"""Finds the lowest edge, up to a maximum, that cuts through no line of text, or the fewest."""
THEMES = ("light", "dark")
PAGES = {
    "runs": (
        "Runs",
        "The runs in the store: filter, sort, search, tag and compare them.",
    ),
    "run": ("Run", "Its figures with intervals, and charts whose marks lead to records."),
    "records": ("Records", "Filtered and sorted by the database; the address contains the view."),
    "record": (
        "Record",
        "The prompt as sent, the reply with its answer marked, all attempts.",
    ),
    "scenario": ("Record of an agent", "Tool calls, and each check with its evidence."),
    "judged": (
        "Record with judges",
        "The scores that each judge gave for each item, and why.",
    ),
    "compare": (
        "Compare",
        "The words and numbers of `pennyweight compare`, and the tasks that changed.",
    ),
    "task": ("Two replies", "The replies of two sides to one task, with differences marked."),
    "gates": ("Gates", "The verdict of a policy, with each gate on a scale with its interval."),
    "new": ("New run", "Choose a suite, see its plan and maximum cost, start it."),
    "docs": ("API", "Everything the page does, for programs."),
    "report": (
        "Report",
        "The file that `pennyweight report` writes: it opens and prints anywhere.",
    ),
}
POLICY = """
policy: release
thresholds: {blocking: {accuracy: 25%}}
"""
HEAD = """# Gallery

All pages of `pennyweight serve`, and the report. `make docs` takes these pictures from the recorded
examples. The pages follow the light or dark setting of your system and fit any screen.
[The page](page.md) explains each of them.
"""


def filled(folder: Path) -> dict[str, str]:
    """Run the recorded examples; return the runs by suite."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    sums = ("sums", "local/smollm2-135m", '"replay:examples/sums/tape.jsonl#local/smollm2-135m"')
    kettle = ("support", "python:ex", "replay:examples/support/tape.jsonl#python:ex")
    commits = ("judged", "local/smollm2-135m", '"replay:examples/judged/tape.jsonl"')
    made: dict[str, str] = {}
    fewer = iter(("T[12]", "T2"))  # earlier runs with fewer tiers
    for name, model, tape in (commits, kettle, sums, sums, sums):
        path = folder / "examples" / name / "suite.yaml"
        text = path.read_text(encoding="utf-8")
        if tape not in text:
            text = text.replace(model, tape)
        left = next(fewer, None) if name == "sums" else None
        run = re.sub(f"(?m)^  {left}:.*\n", "", text) if left else text
        path.write_text(run, encoding="utf-8")
        done = command("run", f"examples/{name}/suite.yaml", folder=folder, check=False)
        found = re.search(r"Run (\S+):", done.stderr)
        assert found, done.stderr
        if name in made:
            made["earlier"] = made[name]
        made[name] = found[1]
        path.write_text(text, encoding="utf-8")
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
    for name, more in (
        ("support", ()),
        ("sums", ("--where", "tier=T2")),
        ("earlier", ("--where", "tier=T0")),
    ):
        policy = "examples/gates/release.yaml" if name == "support" else "policy.yaml"
        command("gate", made[name], "--policy", policy, *more, folder=folder, check=False)
    written = folder / "report.html"
    command("report", made["sums"], "-o", written, folder=folder)
    return {**made, "report": written.as_uri()}


def places(made: dict[str, str], folder: Path) -> dict[str, str]:
    """Return the address of each page."""

    def record(name: str, *key: Any) -> str:
        return f"/runs/{made[name]}/record?key={quote(json.dumps(key), safe='')}"

    run, policy = made["sums"], folder / "examples" / "gates" / "release.yaml"
    sides = [quote(json.dumps([run, {"tier": t}]), safe="") for t in ("T0", "T2")]
    return {
        "runs": "/?suite=sums",
        "run": f"/runs/{run}?rows=disagreement",
        "records": f"/runs/{run}/records?sort=latency_ms&order=down",
        "record": record("sums", "steps", "smollm2", "T1", 1),
        "scenario": record("support", "HAPPY-001", "support-agent", "T0", 1),
        "judged": record("judged", "cache", "smollm2", "T0", 1),
        "compare": f"/compare?run={run}",
        "task": f"/compare/task?a={sides[0]}&b={sides[1]}&task=steps",
        "gates": f"/gates?run={made['support']}&policy={file_id(policy)}",
        "new": f"/new?suite={file_id(folder.joinpath('examples', 'sums', 'suite.yaml'))}",
        "docs": "/docs",
        "report": made["report"],
    }


def pictures(browser: Browser, server: Server, at: dict[str, str], folder: Path) -> int:
    """Take each picture; return their total size in bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in folder.glob("*.png"):
        one.unlink()
    tool, total = browser.new_page(), 0
    for size, (width, height) in SIZES.items():
        for theme in THEMES:
            view = {"width": width, "height": height}
            context = browser.new_context(viewport=view, color_scheme=theme)  # type: ignore[arg-type]
            tab = context.new_page()
            for name, place in at.items():
                whole = place if place.startswith("file:") else server.address + place
                tall = TALL[size].get(name, height)
                tab.set_viewport_size({"width": width, "height": tall})
                tab.goto(whole, wait_until="load" if name == "runs" else "networkidle")
                if name == "docs":
                    tab.locator("details", has_text="Start a run").locator("summary").click()
                    tab.evaluate("scrollTo(0, 0)")
                if name == "new":
                    tab.locator("[data-plan] table").first.wait_for()
                tab.mouse.move(0, 0)
                tab.wait_for_timeout(300)
                clip = {"x": 0, "y": 0, "width": width, "height": tab.evaluate(_EDGE, tall)}
                shot = tab.screenshot(clip=clip)  # type: ignore[arg-type]
                held = small_png(tool, base64.b64encode(shot).decode())
                (folder / f"{name}-{size}-{theme}.png").write_bytes(held)
                total += len(held)
            context.close()
    return total


def gallery() -> str:
    """Return the page that shows the pictures."""
    parts = [HEAD]
    for name, (title, line) in PAGES.items():
        shown = {f"{s}-{t}": f"images/{name}-{s}-{t}.png" for s in SIZES for t in THEMES}
        parts.append(
            f"## {title}\n\n{line}\n\n"
            f'<img src="{shown["wide-light"]}" width="68%" alt="{title}, wide and light">\n'
            f'<img src="{shown["phone-dark"]}" width="26%" alt="{title}, on a phone and dark">\n\n'
            f"[wide, dark]({shown['wide-dark']}), [phone, light]({shown['phone-light']})\n"
        )
    return "\n".join(parts)


def main() -> None:
    """Fill a store, serve it and take the pictures."""
    images = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    with tempfile.TemporaryDirectory(prefix="pennyweight-pictures-") as held:
        folder = Path(held)
        made = filled(folder)
        at = places(made, folder)
        with serving(folder) as server, sync_playwright() as playwright:
            for run in server.json("/api/runs")[1]["runs"]:
                server.digest(run["id"])
            server.post(f"/api/runs/{made['sums']}/remarks", {"tags": ["release"], "who": "me"})
            browser = playwright.chromium.launch(
                executable_path="/usr/bin/chromium", args=list(FLAGS)
            )
            total = pictures(browser, server, at, images)
            browser.close()
    if images == IMAGES:
        GALLERY.write_text(gallery(), encoding="utf-8")
    print(f"Wrote {len(at) * 4} pictures into {images}, {total / 1e6:.1f} MB.")


if __name__ == "__main__":
    main()
