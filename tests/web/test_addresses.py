"""Records: a filter that makes no sense keeps its form, and a page says where it stands."""

import re
from urllib.parse import quote

import pytest

from web.serving import replayed, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paged")
    run = replayed(folder)
    with serving(folder) as server:
        server.digest(run)
        yield server, f"/runs/{run}/records"


def shown(text):
    pager = re.search(r'<div class="pager">.*?</div>', text, re.DOTALL)[0]
    place = re.sub(r"<[^>]*>", "", re.search(r'<span class="quiet">(.*?)</span></span>', pager)[1])
    return place, re.findall(r">([^<>]+)</a>", pager), pager


def follow(server, pager, rel):
    at = re.search(rf'rel="{rel}" href="([^"]*)"', pager)[1].replace("&amp;", "&")
    return server.get(at)[2]


def test_a_page_says_where_in_the_list_it_stands(served):
    server, at = served
    place, ways, pager = shown(server.get(at)[2])
    assert (place, ways) == ("1–50 of 192", ["Next →", "Last"])
    place, ways, pager = shown(follow(server, pager, "next"))
    assert (place, ways) == ("51–100 of 192", ["First", "← Previous", "Next →", "Last"])
    assert shown(follow(server, pager, "prev"))[0] == "1–50 of 192"
    place, ways, pager = shown(server.get(f"{at}?last=1")[2])
    assert (place, ways) == ("143–192 of 192", ["First", "← Previous"])
    assert shown(follow(server, pager, "prev"))[0] == "93–142 of 192"


def test_a_single_page_needs_no_ways_and_no_count(served):
    server, at = served
    text = server.get(f"{at}?task_id=age")[2]
    place, ways, _ = shown(text)
    assert (place, ways) == ("1–6 of 6", [])
    assert 'data-count=""' in text


def test_numbers_are_read_as_pages_write_them(served):
    server, at = served
    counts = [server.get(f"{at}?latency_ms_min={quote(n)}")[2] for n in ("1,000", "1000", " 1000 ")]
    assert len({shown(text)[0] for text in counts}) == 1
    assert server.get(f"{at}?latency_ms_max={quote('−1')}")[2].count("No records match") == 1


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("latency_ms_min=1,00&tier=T1", "latency_ms, from: &#39;1,00&#39; is not a number"),
        ("cost_usd_max=nan", "cost_usd, below: &#39;nan&#39; is not a number"),
        ("latency_ms_min=5000&latency_ms_max=1000", "the range from 5000 to below 1000 is empty"),
        ("answer_in=x", "answer_in is a list"),
    ],
)
def test_a_filter_that_makes_no_sense_keeps_its_form(served, query, why):
    server, at = served
    text = server.get(f"{at}?{query}")[2]
    assert why in text
    assert 'role="search"' in text
    assert "No records match" not in text
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        held = f'name="{name}" value="{value}"' in text or f'value="{value}" selected' in text
        assert held, name


def test_what_a_chart_filtered_by_is_shown_in_words(served, open_page):
    server, at = served
    page = open_page().page
    page.goto(f"{server.address}{at}?correct=no&answer_in={quote('[null]')}")
    assert page.locator("select[name=correct]").is_visible()
    assert page.locator("[data-among]").inner_text() == "Answer: not found ×"
    assert page.locator("thead th", has_text="answer").count() == 1
    page.get_by_role("button", name="Filter").click()
    page.wait_for_url(re.compile("answer_in="))
    page.get_by_label("Any answer").click()
    page.wait_for_url(lambda url: "answer_in" not in url)
    assert "correct=no" in page.url
    wanted = quote('["ok", "timeout"]')
    page.goto(f"{server.address}{at}?status_in={wanted}")
    assert page.locator("[data-among]").inner_text() == "Status: ok or timeout ×"


def test_a_second_measure_is_added(served, open_page):
    server, at = served
    page = open_page().page
    page.goto(f"{server.address}{at}?latency_ms_min=1,000")
    other = page.locator("fieldset.range").nth(1)
    other.locator("select").select_option("total_tokens")
    other.locator("input[placeholder=below]").fill("500")
    page.get_by_role("button", name="Filter").click()
    page.wait_for_url(re.compile("latency_ms_min=1%2C000.*total_tokens_max=500"))
