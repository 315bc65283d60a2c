"""Pages that are sent again: never to others, never after something changed."""

import gzip
import http.client
import json
import re

import pytest

from pennyweight.web import page_cache
from pennyweight.web.page_cache import MAX_BYTES, MAX_PART_BYTES, MAX_PLACE, MIN_PART, PageCache
from pennyweight.web.site import MAX_DRAWN, Site
from web.serving import replayed, serving

TOKEN, READ = "write-0123456789abcdef", "read-0123456789abcdef"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server with a token that may write and one that may read; also the id of its run."""
    folder = tmp_path_factory.mktemp("cached")
    run = replayed(folder)
    (folder / "policy.yaml").write_text("policy: p\nthresholds:\n  blocking: {accuracy: 25%}\n")
    tokens = {"PENNYWEIGHT_TOKEN": TOKEN, "PENNYWEIGHT_READ_TOKEN": READ}
    with serving(folder, env=tokens, open_to_all=False) as server:
        yield server, run


def asked(server, path, token=TOKEN, **more):
    headers = {"Authorization": f"Bearer {token}", **more}
    status, _, page = server.get(path, headers=headers)
    assert status == 200
    return page


def received(server, path, accepted):
    """Return a reply and its body as it was sent."""
    port = int(server.address.rpartition(":")[2])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept-Encoding": accepted}
    connection.request("GET", path, headers=headers)
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    return reply, body


def changed(server, path, body):
    given = {"Authorization": f"Bearer {TOKEN}"}
    status, _ = server.json(
        path, method="POST", body=body.encode(),
        headers={**given, "Content-Type": "application/json"},
    )  # fmt: skip
    assert status == 201


@pytest.mark.parametrize("place", ["", "/grid", "/metrics"])
def test_a_page_is_the_same_when_it_is_asked_for_again(guarded, place):
    server, run = guarded
    first, *others = (asked(server, f"/runs/{run}{place}") for _ in range(3))
    assert others == [first, first]
    assert server.get(f"/runs/{run}{place}")[0] == 303  # to the page that asks for a token


def test_readers_with_other_rights_and_looks_get_their_own_pages(guarded):
    server, run = guarded
    at = f"/runs/{run}"
    for _ in range(2):
        writes, reads = asked(server, at), asked(server, at, READ)
        assert "data-look" in reads
        assert "data-look" not in writes
        assert re.search(r"<button disabled>Save", reads)
        assert not re.search(r"<button disabled>Save", writes)
        assert 'data-theme="dark"' in asked(server, at, Cookie="theme=dark")
        assert "data-theme=" not in writes.partition("<body")[0]


def test_notes_and_verdicts_are_on_the_next_page(guarded):
    server, run = guarded
    at = f"/runs/{run}"
    assert "seen by all" not in asked(server, at)
    changed(server, f"/api{at}/remarks", '{"note": "seen by all", "tags": ["one"], "who": "me"}')
    assert "seen by all" in asked(server, at)
    assert 'id="verdicts"' not in asked(server, at)
    choices = asked(server, f"/gates?run={run}").partition('name="policy"')[2]
    policy = re.search(r'option value="([^"]+)"', choices)[1]
    changed(server, f"/api{at}/verdict", json.dumps({"policy": policy}))
    assert 'id="verdicts"' in asked(server, at)


def test_pages_are_compressed_for_those_who_can_read_it(guarded):
    server, run = guarded
    plain = asked(server, f"/runs/{run}").encode()
    for _ in range(2):
        reply, body = received(server, f"/runs/{run}", "gzip")
        assert reply.headers["content-encoding"] == "gzip"
        assert reply.headers["vary"] == "Accept-Encoding"
        assert reply.headers["cache-control"] == "no-store"
        assert gzip.decompress(body) == plain


def test_a_page_is_packed_from_its_parts(monkeypatch):
    pages, packed = PageCache(), []
    plain = page_cache.deflated
    monkeypatch.setattr(page_cache, "deflated", lambda data: packed.append(data) or plain(data))
    charts, grid = "<svg>✓</svg>" * MIN_PART, "<td>✗</td>" * MIN_PART
    for head in ("first", "second", ""):
        page = [head, "<b>", charts, "", grid, charts, "end"]
        assert gzip.decompress(pages.pack(page)).decode() == "".join(page)
    assert [data.decode() for data in packed if len(data) >= MIN_PART] == [charts, grid]
    assert gzip.decompress(pages.pack([])) == b""
    for number in range(MAX_PART_BYTES // MIN_PART):
        pages.pack([f"{number}", f"{number}" + "x" * MIN_PART])
    assert len(packed) > MAX_PART_BYTES // MIN_PART
    pages.pack([charts])
    assert packed[-1].decode() == charts, "the parts that were used longest ago are forgotten"


def test_what_is_drawn_of_a_digest_stays_while_it_is_asked_for():
    site, digest, made = Site(*[None] * 8), {}, []

    def once(what):
        return site.once(digest, (what,), lambda: made.append(what) or what)

    for number in range(2 * MAX_DRAWN):
        assert [once("charts"), once(number)] == ["charts", number]
    assert made.count("charts") == 1
    assert site.once({}, ("charts",), lambda: "of another digest") == "of another digest"


def test_the_oldest_pages_are_dropped():
    pages = PageCache()
    for number in range(5):
        pages.keep(number, "state", bytes(MAX_BYTES // 3 - 2_000))
    assert [pages.find(number, "state") is not None for number in range(5)] == [
        *(False, False),
        *(True, True, True),
    ]
    assert pages.find(4, "another state") is None
    pages.keep(4, "another state", b"new")
    assert pages.find(4, "another state") == b"new"
    assert pages.find(4, "state") is None


def test_addresses_count_too():
    pages = PageCache()
    address = "j" * (MAX_PLACE - 100)
    most = MAX_BYTES // len(address)
    for number in range(most + 100):
        pages.keep((number, address), "state", b"page")
    assert pages.find((99, address), "state") is None
    assert pages.find((most + 99, address), "state") == b"page"


def test_pages_at_long_addresses_are_not_kept():
    pages = PageCache()
    place = ("/grid", b"j=" + b"x" * MAX_PLACE)
    pages.keep(place, "state", b"page")
    assert pages.find(place, "state") is None


@pytest.mark.parametrize(
    ("accepted", "packed"),
    [
        ("gzip", True),
        ("br;q=1.0, GZIP;q=0.5", True),
        ("*", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000, *", False),
        ("*;q=0", False),
        ("notgzip", False),
        ("identity", False),
        ("gzip;q=much", False),
    ],
)
@pytest.mark.parametrize("place", ["/runs/{run}", "/docs"])
def test_only_those_who_accept_it_get_gzip(guarded, place, accepted, packed):
    server, run = guarded
    reply, body = received(server, place.format(run=run), accepted)
    assert reply.headers.get("content-encoding") == ("gzip" if packed else None)
    assert reply.headers.get_all("vary") == ["Accept-Encoding"]
    assert (gzip.decompress(body) if packed else body).startswith(b"<!")
