"""A browser and filled stores, made once for all tests of a process."""

import shutil
from pathlib import Path

import pytest

import services
from web.serving import replayed, serving

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@pytest.fixture(scope="session")
def chromium():
    """Real Chromium."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if found is None:
        services.missing("chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        yield browser
        browser.close()


class Watched:
    """A page that notes everything that must not happen."""

    def __init__(self, page):
        self.page = page
        self.wrong = []
        page.on("dialog", lambda d: (self.wrong.append(f"dialog {d.message}"), d.dismiss()))
        page.on("pageerror", lambda e: self.wrong.append(f"error {e}"))
        page.on("console", self._console)
        page.on("request", self._request)

    def _console(self, message):
        if message.type == "error" and "status of 4" not in message.text:
            self.wrong.append(f"console {message.text}")

    def _request(self, request):
        if not request.url.startswith(("http://127.0.0.1:", "file://", "blob:")):
            self.wrong.append(f"request to {request.url}")

    def overflow(self):
        """By how many pixels the page is wider than the window."""
        width = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return self.page.evaluate(width)


@pytest.fixture
def open_page(chromium):
    """Open pages that are watched; nothing may have gone wrong in the end."""
    contexts, pages = [], []

    def make(width=1280, height=900, **more):
        context = chromium.new_context(viewport={"width": width, "height": height}, **more)
        contexts.append(context)
        pages.append(Watched(context.new_page()))
        return pages[-1]

    yield make
    wrong = [text for page in pages for text in page.wrong]
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.fixture(scope="session")
def filled(tmp_path_factory):
    """A folder whose store holds a run of the sums; also that run's id."""
    folder = tmp_path_factory.mktemp("filled")
    run = replayed(folder)
    policy = "policy: release\nthresholds:\n  blocking: {accuracy: 25%}\n"
    Path(folder, "policy.yaml").write_text(policy)
    return folder, run


@pytest.fixture(scope="session")
def site(filled):
    """A server over the filled store; also the run's id."""
    folder, run = filled
    with serving(folder) as server:
        yield server, run
