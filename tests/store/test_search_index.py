"""An index finds what a scan finds, counts only for the state of a run, and goes with it."""

import re
import sys

import pytest
from sqlalchemy import inspect

from pennyweight.api.runs import delete_run
from pennyweight.store import queries, search_index
from pennyweight.store.queries import Filter
from pennyweight.store.whole_records import whole_records
from store.samples import RUN, call, record, run

TEXTS = {
    "a": "The heat-pump needs 3.5 kW, isn't it?",
    "b": "A NEEDLE in a haystack, and x_y = 100%",
    "c": "Наклон и needles",
    "d": "北京 is a city; mail me@needle.example",
    "e": None,
}
ASKED = ("needle", "Needle in", "heat-pump", "isn't", "3.5 kw", "x_y", "100%", "е", "京", "*eedle",
         "nothing", "needle.example", "city; mail", "; ", "NEEDLES", '"needle in"', '"needle"',
         "needl*", '"A NEEDLE in a hay"', '"heat-pump needs"', "pum*", '"ump needs"', '"НАКЛОН"',
         '"京"', '"x_y = 100%"', "nee*", '"line 2"', "haystack needle", "hay* nee*", "a needle",
         "needle 京", "京 city;", "100% x_y", '"needle in" hay', "needle *stack",
         "needle zebra")  # fmt: skip


@pytest.fixture
def searched(store):
    store.add_run(run(status="done", ended=2.0))
    store.write([record(task, response=text) for task, text in TEXTS.items()], [call("a")])
    return store


def found(store, text):
    page = queries.page(store, RUN, Filter(text=text))
    assert queries.count(store, RUN, Filter(text=text)) == len(page.columns["task_id"])
    return [*page.columns["task_id"]]


def test_it_finds_what_reading_everything_finds(searched):
    before = {text: found(searched, text) for text in ASKED}
    assert before["needle"] == ["b", "c", "d"]
    assert before["*eedle"] == ["b", "c", "d"]
    told = []
    search_index.build(searched, RUN, told.append)
    assert told == [5]
    assert search_index.is_indexed(searched, RUN)
    assert {text: found(searched, text) for text in ASKED} == before
    used = [text for text in ASKED if search_index.candidates(searched, RUN, text)]
    assert {"needle", "Needle in", "isn't", "x_y"} <= {*used}
    assert not {"*eedle", "京", "; "} & {*used}


def test_words_are_found_from_their_beginning(searched):
    assert found(searched, "eedle") == ["b", "c", "d"]
    search_index.build(searched, RUN)
    assert found(searched, "eedle") == []
    assert found(searched, "*eedle") == ["b", "c", "d"]


def test_quotes_and_operators_are_text(searched):
    search_index.build(searched, RUN)
    for text in (
        '"',
        'needle" OR "zz',
        "needle' | 'a",
        "NOT needle",
        ":words",
        "\\",
    ):
        assert found(searched, text) == []


EXPECTED = {
    '"a needle in"': ["b"],
    '"the needle in"': [],
    ' "needle" ': ["b", "d", "f"],
    '"needles"': ["c"],
    '"needle in a hay"': [],
    '"eedle in"': [],
    '"find a line"': ["g"],
    '"in a haystack, and x_y = 100%"': ["b"],
    '"y"': ["b"],
    '"100%"': ["b"],
    '"HEAT-PUMP"': ["a"],
    '"京"': ["d"],
    '"Наклон"': ["c"],
    '"Накло"': [],
    '"[a-z]*?"': ["g"],
    '"c:\\new"': ["g"],
    "needle*": ["b", "c", "d", "f"],
    "eedle*": [],
    "a nee*": ["a", "b", "d", "f"],
    "haystack needle": ["b"],
    "needle  haystack x_y": ["b"],
    "needle zebra": [],
    "once hay": [],
    "needle haystack": ["b"],
    "in* needle": ["b"],
    "hay* nee* *100": ["b"],
    '"needle in" 100%': ["b"],
    '100% "needle in"': ["b"],
    '"in needle" 100%': [],
    '"needle" "said"': ["f"],
    "needle 京": ["d"],
    "is 北 京": ["d"],
    "needles Накл*": ["c"],
    "3.5 heat-pump": ["a"],
    "3.6 heat-pump": [],
    "pump-heat": [],
    "g find": ["g"],
    "Накл*": ["c"],
    "*eedl*": [],
    "*": ["g"],
    '"*"': ["g"],
}
SPACES = [c for c in map(chr, range(sys.maxunicode + 1)) if c.isspace()]
PLAIN = ('"', '""', '"""', '"needle', 'needle"', "a OR needle", '"needle"needle', "\\",
         "NEAR(needle in)", "text:needle", "- needle", "^needle", "needle +", '" "', "**", "* *",
         "(needle", "{text}: a", "'needle'", "needle' | 'a", ":words", "%s", "%", "\0", "needle\0*",
         "[", "\ud800*", "f NOT g", "*]*? in", ":pattern")  # fmt: skip
QUOTED = ("\\", "[", "]", "^", "(?i)", "\0", "\ud800", "*", "?", "%", "_", "!", "[a-z]", "x' || 'y",
          "NEAR", "needle OR in", "in c:\\new", "\\y", "&", ":*")  # fmt: skip

MORE = {
    "f": "they said \u201cneedle\u201d\u2014once",
    "g": "FIND a\nline of [a-z]*? in c:\\new",
}


@pytest.fixture
def marked(searched):
    searched.write([record(task, response=text) for task, text in MORE.items()], [call("f")])
    return searched


def test_quoted_runs_of_words_and_beginnings_of_words_are_found(marked):
    by_hand = {text: found(marked, text) for text in EXPECTED}
    search_index.build(marked, RUN)
    assert {text: found(marked, text) for text in EXPECTED} == by_hand == EXPECTED
    for text, tasks in EXPECTED.items():
        frames = whole_records(marked, RUN, Filter(text=text))
        assert [task for one in frames for task in one["task_id"]] == tasks
        by_status = queries.page(marked, RUN, Filter({"status": "ok"}, text=text))
        assert [*by_status.columns["task_id"]] == tasks
    assert search_index.candidates(marked, RUN, '"a needle in"')


@pytest.mark.parametrize("text", [*PLAIN, *(f'"{text}"' for text in QUOTED)])
def test_whatever_is_written_is_text_and_no_error(marked, text):
    before = found(marked, text)
    search_index.build(marked, RUN)
    assert found(marked, text) == before
    plain = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    quoted = text not in PLAIN
    terms = [plain[1:-1]] if quoted else [p.removeprefix("*") or p for p in plain.split()]
    said = {t: (said or t).lower() for t, said in {**TEXTS, **MORE}.items()}
    assert before == [t for t, text in said.items() if all(p.lower() in text for p in terms)]


def test_as_many_words_as_an_address_holds_are_looked_up(searched):
    words = [f"{chr(97 + i % 26)}{i // 26}" for i in range(160)]
    longer = [f"word{i}" for i in range(60)]
    searched.write([record("w", response=" ".join([*words, *longer]))], [call("w")])
    asked = (" ".join(words[::-1]), " ".join(longer[::-1]), " ".join([*longer, "other"]))
    before = [found(searched, text) for text in asked]
    search_index.build(searched, RUN)
    assert [found(searched, text) for text in asked] == before == [["w"], ["w"], []]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ne", {"ne"}),
        ("ne hay i", {"hay"}),
        ("in* ha*", {"in", "ha"}),
        ("3.5 kw", {"3", "5", "kw"}),
    ],
)
def test_short_beginnings_are_looked_up_only_without_a_longer_word(searched, text, words):
    search_index.build(searched, RUN)
    _, values = search_index.candidates(searched, RUN, text)
    assert {*re.findall("[a-z0-9]+", values["words"].replace("AND", ""))} == words


def test_every_kind_of_white_space_is_white_space_in_a_phrase(searched):
    texts = {f"s{ord(c):05}": f"Oui, vraiment{c}? Un{c}mot" for c in SPACES}
    searched.write([record(task, response=text) for task, text in texts.items()], [call("b")])
    asked = [f'"vraiment{c}?"' for c in SPACES] + [f'"un{c}mot"' for c in SPACES]
    asked += [f"un{c}mo*" for c in SPACES]
    found_by_hand = {text: found(searched, text) for text in asked}
    search_index.build(searched, RUN)
    assert {text: found(searched, text) for text in asked} == found_by_hand
    assert found_by_hand == {text: [*texts] for text in asked}


def test_an_index_counts_only_for_the_state_it_was_built_from(searched):
    search_index.build(searched, RUN)
    searched.write([record("f", response="another needle")], [call("f")])
    assert not search_index.is_indexed(searched, RUN)
    assert found(searched, "needle") == ["b", "c", "d", "f"]
    search_index.build(searched, RUN)
    assert search_index.is_indexed(searched, RUN)
    assert found(searched, "needle") == ["b", "c", "d", "f"]
    assert len(tables(searched)) <= 1  # the old one is gone


def test_a_running_run_has_none_and_common_words_need_none(searched, monkeypatch):
    other = "20260101-000000-0002"
    searched.add_run(run(other))
    search_index.build(searched, other)
    assert not search_index.is_indexed(searched, other)
    search_index.build(searched, RUN)
    monkeypatch.setattr(search_index, "MAX_CANDIDATES", 2)
    assert search_index.candidates(searched, RUN, "needle") is None
    assert found(searched, "needle") == ["b", "c", "d"]


def test_it_is_deleted_with_its_run(searched):
    search_index.build(searched, RUN)
    delete_run(RUN, searched)
    assert tables(searched) == []
    with searched.engine.connect() as connection:
        for name in ("pennyweight_search", "pennyweight_words"):
            assert connection.exec_driver_sql(f"SELECT count(*) FROM {name}").scalar() == 0


def tables(store):
    """The FTS5 tables of a store; PostgreSQL has none."""
    names = inspect(store.engine).get_table_names()
    return [n for n in names if n.startswith("pennyweight_words_") and n[18:].isdigit()]


def walked(store, text, *, back):
    """The tasks on all pages of one record each, from the first or from the last."""
    tasks, edge = [], {"last": True} if back else {}
    while True:
        page = queries.page(store, RUN, Filter(text=text), limit=1, **edge)
        rows = page.rows
        if not rows:
            return tasks
        tasks.append(rows[0]["task_id"])
        key = tuple(rows[0][name] for name in queries.ORDER)
        if not (page.before if back else page.after):
            return tasks
        edge = {"before" if back else "after": key}


@pytest.mark.parametrize("near", [0, 3])
def test_pages_follow_the_index_both_ways(searched, monkeypatch, near):
    monkeypatch.setattr(search_index, "NEAR", near)
    before = {text: walked(searched, text, back=False) for text in ASKED}
    assert before["needle"] == ["b", "c", "d"]
    search_index.build(searched, RUN)
    assert {text: walked(searched, text, back=False) for text in ASKED} == before
    turned = {text: tasks[::-1] for text, tasks in before.items()}
    assert {text: walked(searched, text, back=True) for text in ASKED} == turned


def test_common_words_are_counted_and_paged_in_order(searched):
    more = [record(f"z{i:04}", response="common needle") for i in range(2_500)]
    searched.write(more, [call("z0000")])
    search_index.build(searched, RUN)
    assert search_index.candidates(searched, RUN, "common") is None
    assert queries.count(searched, RUN, Filter(text="needle")) == 2_503
    assert queries.count(searched, RUN, Filter(text="common"), 1_000) == 1_001
    first = queries.page(searched, RUN, Filter(text="common"), limit=1).rows[0]
    place = ("z2398", *(first[n] for n in queries.ORDER[1:]))
    page = queries.page(searched, RUN, Filter(text="common nee"), after=place)
    assert [*page.columns["task_id"]] == [f"z{i:04}" for i in range(2_399, 2_449)]
    assert page.after
    assert page.before
