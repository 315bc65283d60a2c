"""Every code block of the README and the docs runs, and what it is shown to print is printed."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page, language):
    return [text for kind, text in BLOCK.findall(page.read_text("utf-8")) if kind == language]


def steps(block):
    """Split a console block into commands with the lines they are shown to print."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def run(command, folder):
    """Run one line in a shell, with this project's `pennyweight`."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "COLUMNS": "80", "NO_COLOR": "1"}
    return subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_print_what_the_page_shows(page, tmp_path):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for block in blocks(page, "console"):
        for command, shown in steps(block):
            done = run(command, tmp_path)
            assert done.stdout.splitlines() == shown, command
            failed = any(line.startswith("Error:") for line in shown)
            assert done.returncode == (2 if failed else 0), command


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.name)
def test_python_runs(page, tmp_path):
    code = "\n".join(blocks(page, "python"))
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "page.py").write_text(code, "utf-8")
    done = run(shlex.join([sys.executable, "-W", "error", "page.py"]), tmp_path)
    assert done.returncode == 0, done.stdout


def test_the_notebook_runs_and_shows_its_results(tmp_path):
    pytest.importorskip("nbclient", reason="needs nbclient and ipykernel: make setup")
    notebook = tmp_path / "notebook.ipynb"
    shutil.copy(ROOT / "examples" / "notebook.ipynb", notebook)
    done = run("jupyter execute --inplace notebook.ipynb", tmp_path)
    assert done.returncode == 0, done.stdout
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    shown = ["".join(output["data"]["text/html"]) for output in outputs]
    lines = [html for html in shown if html.startswith("<small>")]
    assert [line.split(" · ")[0] for line in lines] == ["<small>12 of 12", "<small>96 of 96"]
    assert "the first 3 of 24 tasks" in shown[1]
    assert shown[3].count("<details>") == 20
    assert sum('<div class="pennyweight">' in html for html in shown) == 4


LINKING = [*PAGES, ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*/*.md")]


@pytest.mark.parametrize("page", LINKING, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target, _, anchor in (
        link.partition("#")
        for link in re.findall(r"\]\((?!https?:)([^)]+)", page.read_text("utf-8"))
    ):
        path = page.parent / target if target else page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), f"{target}#{anchor}"


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


OLD_NAME = "as" + "say"


def test_the_old_name_is_nowhere():
    """The project had another name, under which nothing was released."""
    kinds = {".py", ".md", ".yaml", ".yml", ".toml", ".sh", ".json", ".html", ".js", ".css", ""}
    folders = ["src", "tests", "docs", "tools", "bench", "examples", ".github", ".ci"]
    files = [f for name in folders for f in (ROOT / name).rglob("*") if f.suffix in kinds]
    files += [f for f in ROOT.iterdir() if f.suffix in kinds]
    named = {
        str(file.relative_to(ROOT))
        for file in files
        if file.is_file() and OLD_NAME in file.read_text("utf-8", errors="ignore").lower()
    }
    assert not named


def test_generated_pages_are_fresh():
    done = run(shlex.join([sys.executable, "tools/docs.py", "--check"]), ROOT)
    assert done.returncode == 0, done.stdout
