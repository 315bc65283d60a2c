"""Results in notebooks: tables and small charts, in which no reply can do anything."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import pennyweight
from pennyweight import Run, Suite
from pennyweight.render.notebook import html

ATTACK = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e</details>\"'{{ 7 * 7 }}"
TASKS = [{"id": f"t{n}{ATTACK}", "input": f"{n}{ATTACK}", "target": str(n)} for n in range(24)]


class Page(HTMLParser):
    """Collects the tags, and checks that each one that opens is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not any(name.startswith("on") for name, _ in attrs)
        self.tags.append(tag)
        if tag not in {"br", "wbr"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    subjects = {f"a{ATTACK}": lambda prompt: prompt[0], "b": lambda prompt: ATTACK}
    return pennyweight.run(Suite(TASKS, subjects, name=f"suite{ATTACK}"))


def test_a_run_shows_its_scores_and_unfolds_its_records(made: Run) -> None:
    page = Page(made._repr_html_())
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert page.tags.count("details") == 20
    assert page.tags.count("svg") >= 2
    assert "20 of 48 records" in page.text
    assert "<script>alert(1)</script>" in page.text
    assert "⟨U+202E⟩" in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert re.search(r"accuracy\s*41\.7 %", page.text.replace("_", ""))


def test_every_result_is_shown(made: Run) -> None:
    Path("policy.yaml").write_text("thresholds: {blocking: {accuracy: 90%}}\n")
    results = {
        "accuracy": made.scores(),
        "difference": made.compare(by="subject"),
        "Failed": made.gate("policy.yaml", where={"subject": "b"}),
        "power": pennyweight.plan(difference="10%", rate="50%"),
    }
    for word, result in results.items():
        page = Page(result._repr_html_() or "")
        assert word in page.text
        assert not {"script", "img"} & set(page.tags)


def test_a_run_without_records_is_shown(made: Run) -> None:
    Page(html(pennyweight.score([])))


def test_a_narrowed_run_says_so(made: Run) -> None:
    few = pennyweight.run(Suite(TASKS), models=[str.upper], limit=3)
    assert "the first 3 of 24 tasks" in Page(few._repr_html_()).text
    assert "the first 3 of 24 tasks" in Page(few.scores()._repr_html_()).text
