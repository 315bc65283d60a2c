"""New run: what is started is what was chosen, and what is wrong is said where it is."""

import pytest

from web.serving import replayed, serving

TOKEN, READ = "write-0123456789abcdef", "read-0123456789abcdef"
TASK = b'{"id": "a", "input": "1 + 1?", "target": "2"}\n'
BROKEN = "suite: broken\ntasks: none.jsonl\nsubjects: [local/smollm2-135m]\n"


@pytest.fixture
def page(site, open_page):
    server, _ = site
    page = open_page().page
    page.goto(f"{server.address}/new")
    return page


def choose(page, name, held=TASK):
    file = {"name": name, "mimeType": "application/octet-stream", "buffer": held}
    page.locator("[data-upload]").set_input_files(file)


def test_nothing_is_chosen_unasked(page):
    assert page.locator("[data-suite]").input_value() == ""
    assert page.get_by_role("button", name="Start").is_disabled()
    assert page.get_by_text("Choose or upload a suite").count() == 1
    assert page.locator("[data-subjects] input").count() == 0


def test_a_file_that_is_chosen_takes_the_place_of_the_suite(page):
    start = page.get_by_role("button", name="Start")
    page.locator("[data-suite]").select_option(index=1)
    page.locator("[data-start]:not([disabled])").wait_for()
    choose(page, "mine.jsonl")
    page.get_by_text("mine.jsonl is not uploaded yet.").wait_for()
    assert page.locator("[data-suite]").input_value() == ""
    assert start.is_disabled()
    page.locator("input[name=runs]").fill("2")
    page.locator("input[name=runs]").blur()
    assert start.is_disabled()
    page.get_by_role("button", name="Cancel").click()
    assert page.locator("[data-upload]").evaluate("field => field.files.length") == 0
    page.locator("[data-suite]").select_option(index=1)
    page.locator("[data-start]:not([disabled])").wait_for()


def test_the_prompt_asks_for_the_answer_as_it_is_found(page):
    choose(page, "mine.jsonl")
    prompt = page.locator("textarea[name=prompt]")
    assert "FINAL_ANSWER:" in prompt.input_value()
    page.locator("select[name=answer]").select_option("boxed")
    assert "\\boxed{}" in prompt.input_value()
    prompt.fill("{{ input }} My own words.")
    page.locator("select[name=answer]").select_option("marker")
    assert prompt.input_value() == "{{ input }} My own words."


def test_a_data_set_needs_a_model_and_says_so(page):
    choose(page, "mine.jsonl")
    model = page.locator("input[name=subject]")
    assert model.input_value() == "local/smollm2-135m"
    model.fill(" ")
    page.locator("[data-send]").click()
    page.get_by_role("alert").get_by_text("Model: enter the model").wait_for()
    model.fill("local/smollm2-135m")
    model.press("Enter")
    page.get_by_text("1 attempt:").wait_for()
    assert "FINAL_ANSWER" in page.locator("[data-plan] .said").first.text_content()


def test_what_is_no_data_set_is_refused_and_the_next_file_begins_again(page):
    alert = page.get_by_role("alert")
    choose(page, "picture.png")
    alert.get_by_text("picture.png: choose a suite (.yaml) or a data set (.jsonl").wait_for()
    assert not page.locator("[data-send]").is_visible()
    choose(page, "mine.yaml", b"suite: [")
    alert.get_by_text("not YAML").wait_for()
    choose(page, "mine.jsonl")
    alert.wait_for(state="hidden")
    assert page.locator("[data-send]").is_visible()


def test_the_cost_limit_of_the_suite_is_shown_until_another_one_is_entered(page):
    limited = (
        b"suite: limited\ntasks: [{id: a, input: '1 + 1?', target: '2'}]\n"
        b"subjects: [local/smollm2-135m]\nlimits: {usd: 1.00}\n"
    )
    usd = page.locator("input[name=usd]")
    choose(page, "limited.yaml", limited)
    page.locator("[data-start]:not([disabled])").wait_for()
    assert usd.get_attribute("placeholder") == "1"
    usd.fill("0.25")
    usd.blur()
    page.locator("[data-start]:not([disabled])").wait_for()
    usd.fill("")
    usd.blur()
    page.locator("[data-start]:not([disabled])").wait_for()
    assert usd.get_attribute("placeholder") == "1"
    choose(page, "mine.yaml", limited.replace(b"limits: {usd: 1.00}\n", b""))
    page.locator("[data-plan]").get_by_text("At most").wait_for()
    page.wait_for_function("document.querySelector('input[name=usd]').placeholder === 'none'")


def test_a_wrong_number_is_named_by_its_field(page):
    page.locator("[data-suite]").select_option(index=1)
    page.locator("[data-start]:not([disabled])").wait_for()
    for name, title in (("runs", "Attempts per task"), ("usd", "Cost limit (US$)")):
        field = page.locator(f"input[name={name}]")
        field.fill("0")
        field.blur()
        page.get_by_role("alert").get_by_text(f"{title}: ").wait_for()
        assert page.get_by_role("button", name="Start").is_disabled()
        field.fill("")
        field.blur()
        page.locator("[data-start]:not([disabled])").wait_for()


def test_a_program_is_told_which_field_is_wrong(site, page):
    said = page.evaluate("call('POST', '/api/plan', {suite: 'x', runs: 0}).catch((e) => e.message)")
    assert said == "runs: Input should be greater than or equal to 1"
    server, _ = site
    given = {"X-Pennyweight-Csrf": server.csrf()}
    at = "/api/uploads?kind=jsonl&subject="
    status, told = server.json(at, method="POST", body=TASK, headers=given)
    assert (status, told["detail"][:14]) == (400, "Name the model")


def test_who_may_only_look_is_told_so_and_not_where_things_lie(tmp_path, open_page):
    run = replayed(tmp_path)
    (tmp_path / "broken.yaml").write_text(BROKEN)
    with serving(
        tmp_path, tmp_path, env={"PENNYWEIGHT_TOKEN": TOKEN, "PENNYWEIGHT_READ_TOKEN": READ}
    ) as server:
        page = open_page().page
        page.goto(f"{server.address}/new")
        page.locator("input[name=token]").fill(READ)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("this token allows planning a run").wait_for()
        assert page.locator("header .tag").inner_text() == "read only"
        suites = page.locator("[data-suite]")
        broken = suites.locator("option", has_text="broken").get_attribute("value")
        suites.select_option(broken)
        page.get_by_role("alert").get_by_text("none.jsonl").wait_for()
        assert str(tmp_path) not in page.content()
        sums = suites.locator("option", has_text="sums").first.get_attribute("value")
        suites.select_option(sums)
        page.get_by_text("192 attempts").wait_for()
        assert page.get_by_role("button", name="Start").is_disabled()
        for place in (f"/runs/{run}", f"/runs/{run}/records"):
            page.goto(server.address + place)
        page.locator("table.rows tbody a").first.click()
        page.locator("[data-remark]").get_by_text("Read only").wait_for()
        assert page.locator("[data-remark] :enabled").count() == 0
