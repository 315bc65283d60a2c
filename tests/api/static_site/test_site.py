"""A static site: every link leads somewhere, every record has a page, nothing is a script."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from pennyweight.api.report import report, transcripts_folder, write
from pennyweight.api.static_site.lists import RecordLists
from pennyweight.api.static_site.places import record_file, run_folder
from pennyweight.api.static_site.site import site
from pennyweight.errors import UsageError
from pennyweight.record import AttemptKey
from pennyweight.store.store import Store
from store.samples import record, run
from web.serving import ROOT, replayed

LOG = ROOT / "examples" / "records.jsonl"


class Page(HTMLParser):
    """The links, the ids and the names of the elements of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.ids, self.tags = [], set(), set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.add(tag)
        self.ids.add(given.get("id"))
        self.links += [given[name] for name in ("href", "src", "action") if name in given]


def broken(folder, *also):
    """The links of a folder that lead nowhere or out of it, and pages that nothing leads to."""
    pages = {p: Page(p) for p in [*folder.rglob("*.html"), *also]}
    wrong, reached = [], {folder / "index.html", *also}
    for path, page in pages.items():
        for link in page.links:
            place, fragment = urldefrag(link)
            target = (path.parent / unquote(place)).resolve() if place else path
            reached.add(target)
            inside = folder in target.parents or target in also
            if not inside or not target.is_file():
                wrong.append(f"{path.name}: {link}")
            elif fragment and fragment not in pages[target].ids:
                wrong.append(f"{path.name}: #{fragment}")
    return wrong, {str(p) for p in pages if p not in reached}


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site").resolve()
    found = replayed(folder)
    store = Store(str(folder / ".pennyweight" / "pennyweight.db"))
    yield store, store.find(found), folder
    store.close()


@pytest.fixture(scope="module")
def made(filled):
    store, _, folder = filled
    told = []
    return site(folder / "pub", store=store, agree=lambda s: not told.append(s)), told[0]


def test_every_link_leads_to_a_page_and_every_page_is_reached(made):
    assert broken(made[0].folder) == ([], set())


def test_every_record_has_a_page_with_its_reply(made, filled):
    store, found, _ = filled
    pages = made[0].folder / run_folder(found.id) / "r"
    keys = store.attempts(found.id)
    assert {p.name for p in pages.glob("*.html")} == {record_file(key) for key in keys}
    key = AttemptKey(found.id, "smollm2", "T1", "boxes", 1)
    text = (pages / record_file(key)).read_text()
    assert "3 boxes hold 5 pens each" in text
    assert "ends with the right one" in text


def test_pages_need_no_script_and_no_other_site(made):
    for path in made[0].folder.rglob("*.html"):
        tags, links = Page(path).tags, Page(path).links
        assert not tags & {"script", "img", "iframe", "form", "object", "embed"}, path
        assert not [one for one in links if ":" in one], path
        assert len(path.read_bytes()) < 300_000, path


def test_the_size_is_told_beforehand(made):
    written, told = made
    assert told.files == pytest.approx(written.size.files, rel=0.15)
    assert told.bytes == pytest.approx(written.size.bytes, rel=0.25)
    files = [p for p in written.folder.rglob("*") if p.is_file() and p.name[0] != "."]
    assert written.size.files == len(files)
    assert written.size.bytes == sum(p.stat().st_size for p in files)


def test_sizes_of_long_and_short_records_are_told_too(tmp_path, store_address):
    store = Store(store_address)
    store.add_run(run("long", status="done", attempts=300, settings={"subjects": ["m"]}))
    texts = ("word " * (20 if n % 10 else 8_000) for n in range(300))
    rows = [record(f"t{n:03}", "long", input="x", response=t) for n, t in enumerate(texts)]
    store.write(rows, [])
    told = []
    written = site(tmp_path / "pub", store=store, agree=lambda s: not told.append(s))
    assert told[0].bytes == pytest.approx(written.size.bytes, rel=0.3)
    assert told[0].files == pytest.approx(written.size.files, rel=0.15)
    assert broken(tmp_path / "pub")[0] == []  # the complete texts are there
    assert len(list(written.folder.rglob("*-response.txt"))) == 30
    store.close()


def test_a_size_that_is_not_agreed_to_writes_nothing(filled, tmp_path):
    said = site(tmp_path / "pub", store=filled[0], agree=lambda size: False)
    assert not said.written
    assert not (tmp_path / "pub").exists()


def test_without_records_there_are_the_runs_alone(filled, tmp_path):
    store, found, _ = filled
    tmp_path = tmp_path.resolve()
    site(tmp_path / "pub", store=store)
    written = site(tmp_path / "pub", found.id[:-1], records=False, store=store)
    assert broken(written.folder) == ([], set())
    names = {p.name for p in written.run_page(found.id).parent.iterdir()}
    assert names == {
        *("index.html", "grid.html", "grid-differs.html", "grid-wrong.html", "grid-flaky.html")
    }


def test_a_file_of_records_is_a_run_of_the_site(filled, tmp_path):
    tmp_path = tmp_path.resolve()
    written = site(tmp_path / "pub", [LOG, filled[1].id], store=filled[0])
    assert len(written.runs) == 2
    assert broken(written.folder) == ([], set())
    assert len(filled[0].runs()) == 1


def test_a_run_without_records_says_so(tmp_path):
    store = Store(str(tmp_path / "a.db"))
    with pytest.raises(UsageError, match="no runs"):
        site(tmp_path / "pub", store=store)
    store.add_run(run("empty", status="stopped"))
    written = site(tmp_path.resolve() / "pub", store=store)
    assert "no records yet" in written.run_page("empty").read_text()
    assert broken(written.folder) == ([], set())
    store.close()


def test_a_report_links_to_its_records(filled, tmp_path):
    store, found, _ = filled
    output = tmp_path.resolve() / "my report.html"
    held = report(found.id, store=store)
    pages = site(transcripts_folder(output), found.id, store=store)
    write(held, output, transcripts=pages)
    assert broken(pages.folder, output) == ([], set())
    links = [link for link in Page(output).links if not link.startswith("#")]
    assert sum("/r/" in link for link in links) == len(held.digest["telling"])
    assert sum("/list-" in link for link in links) == 3
    write(held, output.with_suffix(".md"), transcripts=pages)
    assert "my%20report-records/runs/" in output.with_suffix(".md").read_text()
    with pytest.raises(UsageError, match=r"\.html or \.md"):
        transcripts_folder(Path("report.pdf"))


def test_marks_of_a_side_lead_to_its_list_whatever_its_name_is():
    lists = RecordLists()
    for side in ({"subject": "known"}, {"subject": "m", "tier": "known"}):
        assert lists.side({**side, "passed": "known", "latency_ms": (0, None)}) == lists.link(side)
    assert lists.side({"subject": "m", "category": "c", "passed": "known"}) is None
    assert lists.side({"passed": "known"}) is None


def test_a_run_page_with_some_of_its_tasks_leads_to_all_of_them(tmp_path, store_address):
    """Its grid is shorter than the pages of the grid, so it has no next one among them."""
    store = Store(store_address)
    settings = {"subjects": ["m", "n"], "tiers": ["T0"]}
    store.add_run(run("wide", status="done", attempts=140, settings=settings))
    rows = [
        record(f"t{n:03}", "wide", subject=s, target="4", response="4")
        for n in range(70)
        for s in settings["subjects"]
    ]
    store.write(rows, [])
    made = site(tmp_path / "pub", store=store, records=False)
    assert broken(tmp_path / "pub")[0] == []
    text = made.run_page("wide").read_text("utf-8")
    assert "1 to 40 of 70 tasks" in text
    assert 'href="grid.html">The grid on a page of its own' in text
    store.close()
