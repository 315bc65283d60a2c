"""Prices: the suite's own, then the published ones, with their source and day; else null."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from cli.command import pennyweight, refused
from models.hostile import GOOD, in_a_thread, in_turn, response
from pennyweight.models.model import Usage
from pennyweight.models.prices import Prices, cost
from pennyweight.store.store import Store
from pennyweight.suite.values import Agent, Price, Subject

GPT = Subject("ours", "openai/gpt-4o")


def test_the_suite_goes_before_what_is_published() -> None:
    assert Prices({"ours": Price(1, 2)}).of(GPT) == Price(1, 2)
    assert Prices({"openai/gpt-4o": Price(3, 4)}).of(GPT) == Price(3, 4)
    both = {"openai/gpt-4o": Price(3, 4), "ours": Price(1, 2)}
    assert Prices(both).of(GPT) == Price(1, 2)


def test_a_published_price_knows_its_source_and_day() -> None:
    price = Prices({}).of(GPT)
    assert price is not None
    assert (price.input, price.output) == (2.5, 10.0)
    assert re.fullmatch(r"genai-prices \d+\.\d+\.\d+, \d{4}-\d\d-\d\d", price.origin)


@pytest.mark.parametrize(
    "model",
    ["openai/no-such-model", "nowhere/m", "local/smollm2-135m", "python:m:f", "replay:f", "m"],
)
def test_what_nobody_knows_is_null(model: str) -> None:
    subject = Subject("s", model)
    assert Prices({}).of(subject) is None
    assert Prices({}).cost(subject, Usage(1, 1)) is None


def test_a_count_that_is_missing_makes_the_cost_null() -> None:
    prices = Prices({"ours": Price(1, 2)})
    assert prices.cost(GPT, Usage(None, 5)) is None
    assert prices.cost(GPT, Usage(5, None)) is None
    assert prices.cost(GPT, Usage(0, 0)) == 0.0
    assert prices.cost(GPT, Usage(1_000_000, 500_000)) == pytest.approx(2.0)


def test_what_costs_nothing_does_so_however_much_it_is() -> None:
    assert Prices({"ours": Price(0, 0)}).cost(GPT, Usage(None, None)) == 0.0
    half = Prices({"ours": Price(0, 2)})
    assert half.cost(GPT, Usage(None, 500_000)) == pytest.approx(1.0)
    assert half.cost(GPT, Usage(5, None)) is None


def test_a_recording_costs_what_the_recorded_model_did() -> None:
    named = Subject("again", "replay:tape.jsonl#openai/gpt-4o")
    alone = Subject("again", "replay:tape.jsonl")
    assert Prices({}).of(named) == Prices({}).of(GPT)
    assert Prices({}, {"again": "openai/gpt-4o"}).of(alone) == Prices({}).of(GPT)
    assert Prices({"openai/gpt-4o": Price(1, 2)}).of(named) == Price(1, 2)


def test_only_what_costs_something_is_missed() -> None:
    subjects = [
        Subject("a", "openai/no-such-model"),
        Subject("b", "openai/no-such-model", settings={"temperature": 1}),
        Subject("c", "local/smollm2-135m"),
        GPT,
    ]
    assert [*Prices({}).unknown(subjects)] == ["openai/no-such-model"]


HERE = "http://127.0.0.1:8000/v1"


@pytest.mark.parametrize(
    ("subject", "why"),
    [
        (Subject("s", "openai/gpt-4o", base_url=HERE), f"{HERE} is an address of this machine"),
        (Subject("s", "ollama/llama3"), "http://127.0.0.1:11434/v1 is an address of this machine"),
        (Subject("s", "sambanova/m"), "does not list the provider 'sambanova'"),
        (Subject("s", "openai/gpt-9-mega"), "does not list 'gpt-9-mega' of openai"),
        (Subject("s", "perplexity/sonar-deep-research"), "not charged by its input and output"),
        (Subject("s", "local/smollm2-135m"), "local/smollm2-135m is not billed by the token"),
        (GPT, ""),
    ],
)
def test_the_reason_why_a_price_is_not_known(subject: Subject, why: str) -> None:
    found = Prices({}).why_unknown(subject)
    assert why in found if why else found == ""
    assert (Prices({}).of(subject) is None) == bool(why)


def test_a_gateway_is_priced_as_a_model_that_is_listed() -> None:
    gateway = Subject("s", "openai/ours", base_url=HERE, priced_as="openai/gpt-4o")
    assert Prices({}).of(gateway) == Prices({}).of(GPT)
    assert Prices({"s": Price(1, 2)}).of(gateway) == Price(1, 2)


def test_each_part_of_the_input_has_its_own_rate() -> None:
    price = Price(2, 10, cached_input=0.5, cache_write=4)
    usage = Usage(1_000_000, 100_000, cached_tokens=500_000, cache_write_tokens=250_000)
    assert cost(price, usage) == pytest.approx(0.5 + 0.25 + 1.0 + 1.0)
    assert cost(Price(2, 10), usage) == pytest.approx(2.0 + 1.0)  # no rates of their own
    assert cost(price, Usage(10, 1, cached_tokens=11)) is None  # parts exceed the whole


def test_a_reservation_covers_the_dearest_way_to_send_the_input() -> None:
    prices = Prices({"ours": Price(2, 10, cached_input=0.5, cache_write=4)})
    assert prices.most(GPT, 1_000_000, 100_000) == pytest.approx(4.0 + 1.0)


def test_a_record_keeps_the_rates_that_were_charged() -> None:
    long = Price(6, 20, cached_input=0.6, cache_write=7.5, cache_write_1h=12)
    price = Price(3, 10, "p", None, 0.3, 3.75, 6, longer=((1000, long),))
    prices = Prices({"ours": price})
    assert prices.used(GPT, [Usage(1000, 10)]) == price
    assert prices.used(GPT, [Usage(1001, 10)]) == long
    calls = [Usage(800, 10, 300, None, 400, 100), Usage(3000, 30, 1000, None, 0, 0)]
    kept = prices.used(GPT, calls)
    assert kept is not None
    whole = Usage(3800, 40, 1300, None, 400)
    paid = sum(prices.cost(GPT, call) or 0 for call in calls)
    assert cost(replace(kept, cache_write_1h=None), whole) == pytest.approx(paid, rel=1e-12)
    assert kept.cached_input == pytest.approx((300 * 0.3 + 1000 * 0.6) / 1300)


def test_the_usage_of_an_agent_is_that_of_many_calls() -> None:
    price = Price(3, 10, longer=((1000, Price(6, 20)),))
    agent = Subject("ours", "openai/gpt-4o", agent=Agent(("a",)))
    assert Prices({"ours": price}).cost(agent, Usage(1_000_000, 0)) == pytest.approx(3.0)


SUITE = """suite: s
tasks: [{{id: a, input: "?", target: "4"}}, {{id: b, input: "??", target: "4"}}]
subjects:
  - {{name: one, model: openai/m, base_url: "{one}/v1"}}
  - {{name: two, model: openai/n, base_url: "{two}/v1"}}
answer: last_line
limits: {{concurrency: 1}}
prices:
  openai/m: {{input: 1, output: 1, source: a price list, date: 2026-10-01}}
  two: {{input: 2, output: 2}}
"""


def mean_cost(folder: Path, *arguments: str | Path) -> dict[str, float | None]:
    result = pennyweight(
        *("score", "latest", "--store", folder / "s.db", "--by", "subject", "--format", "json"),
        *arguments,
    )
    assert result.code == 0, result.err
    return {g["group"]["subject"]: g["metrics"]["cost_usd_mean"] for g in result.json["groups"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run of two subjects; one of four replies says nothing of its tokens."""
    found = tmp_path_factory.mktemp("prices")
    no_usage = {k: v for k, v in GOOD.items() if k != "usage"}
    with in_a_thread({"one": in_turn(response(no_usage), response()), "two": response()}) as at:
        path = found / "suite.yaml"
        path.write_text(SUITE.format(one=at["one"][0], two=at["two"][0]))
        result = pennyweight("run", path, "--store", found / "s.db")
        assert result.code == 0, result.err
    return found


def test_an_old_run_is_priced_again(folder: Path) -> None:
    before = mean_cost(folder)
    assert before == {"one": pytest.approx(6e-6), "two": pytest.approx(12e-6)}
    prices = folder / "prices.yaml"
    prices.write_text("openai/m: {input: 10, output: 100}\ntwo: {input: 0, output: 0}\n")
    assert mean_cost(folder, "--prices", prices) == {"one": pytest.approx(150e-6), "two": 0.0}
    assert mean_cost(folder) == before  # the run itself stays as it was


def test_each_record_keeps_its_price_with_source_and_day(folder: Path) -> None:
    store = Store(str(folder / "s.db"))
    rows = next(store.records(store.find("latest").id)).to_dicts()
    store.close()
    kept = {(r["subject"], r["input_price"], r["output_price"], r["price_source"]) for r in rows}
    assert kept == {("one", 1.0, 1.0, "a price list, 2026-10-01"), ("two", 2.0, 2.0, "suite")}


def test_who_is_not_named_keeps_its_cost_and_that_is_said(folder: Path) -> None:
    prices = folder / "prices.json"
    prices.write_text('{"one": {"input": 10, "output": 100}}')
    arguments = ("score", "latest", "--store", folder / "s.db", "--prices", prices)
    assert "has no price for two; the recorded costs are used" in pennyweight(*arguments).err
    assert mean_cost(folder, "--prices", prices)["two"] == pytest.approx(12e-6)


def test_what_has_no_tokens_costs_nothing_where_nothing_is_charged(folder: Path) -> None:
    prices = folder / "prices.json"
    prices.write_text('{"one": {"input": 0, "output": 0}}')
    out = folder / "measured.jsonl"
    mean_cost(folder, "--prices", prices, "--per-task", out)
    rows = [line for line in out.read_text().splitlines() if '"subject":"one"' in line]
    assert all('"cost_usd":0.0' in row for row in rows)


def test_what_has_no_tokens_stays_null(folder: Path) -> None:
    prices = folder / "prices.json"
    prices.write_text('{"one": {"input": 10, "output": 100, "date": "2026-11-01"}}')
    out = folder / "measured.jsonl"
    mean_cost(folder, "--prices", prices, "--per-task", out)
    rows = [line for line in out.read_text().splitlines() if '"subject":"one"' in line]
    assert sum('"cost_usd":null' in row for row in rows) == 1
    assert all("prices.json, 2026-11-01" in row for row in rows)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("three: {input: 1, output: 1}", "names no subject or model of run"),
        ("one: {input: 1}", "line 1: prices.one needs 'output'"),
        ("one: {input: -1, output: 1}", "must be a number from 0 to"),
        ("one: 3", "prices.one must be a mapping"),
        ("", "must be a mapping of models to prices"),
        ("{}", "names no model or subject"),
    ],
)
def test_a_wrong_file_of_prices(folder: Path, text: str, says: str) -> None:
    path = folder / "wrong.yaml"
    path.write_text(text)
    assert says in refused("score", "latest", "--store", folder / "s.db", "--prices", path)


def test_files_have_their_own_mean_cost(folder: Path) -> None:
    path = folder / "prices.yaml"
    path.write_text("one: {input: 1, output: 1}")
    records = folder / "r.jsonl"
    records.write_text('{"answer": "4", "target": "4"}\n')
    assert "--prices applies to runs" in refused("score", records, "--prices", path)
    assert "no such file" in refused(
        "score", "latest", "--store", folder / "s.db", "--prices", folder / "none.yaml"
    )


CACHED = """suite: s
tasks: [{{id: a, input: "?", target: "4"}}]
subjects:
  - {{name: own, model: openai/m, base_url: "{at}/v1"}}
  - {{name: gateway, model: openai/n, base_url: "{at}/v1", priced_as: anthropic/claude-sonnet-4-5}}
answer: last_line
limits: {{usd: 1}}
prices: {{own: {{input: 10, output: 100, cached_input: 1, cache_write: 20}}}}
"""
DETAILS = {"cached_tokens": 600, "cache_write_tokens": 100}


def test_cached_input_is_charged_at_its_own_rate_from_the_call_to_the_comparison(
    tmp_path: Path,
) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 10, "prompt_tokens_details": DETAILS}
    store, path = tmp_path / "s.db", tmp_path / "suite.yaml"
    with in_a_thread({"one": response({**GOOD, "usage": usage})}) as at:
        path.write_text(CACHED.format(at=at["one"][0]))
        result = pennyweight("run", path, "--store", store)
    assert result.code == 0, result.err
    assert "price" not in result.err
    paid = {"own": 300 * 10 + 600 * 1 + 100 * 20 + 10 * 100}
    paid["gateway"] = 300 * 3 + 600 * 0.3 + 100 * 3.75 + 10 * 15
    expected = {name: pytest.approx(usd / 1e6) for name, usd in paid.items()}
    assert mean_cost(tmp_path) == expected

    at_store = Store(str(store))
    run = at_store.find("latest").id
    rows = {row["subject"]: row for row in next(at_store.records(run)).to_dicts()}
    assert at_store.spent(run)["usd"] == pytest.approx(sum(paid.values()) / 1e6)
    at_store.close()
    counts = ("prompt_tokens", "cached_tokens", "cache_write_tokens")
    assert [rows["own"][name] for name in counts] == [1000, 600, 100]
    rates = ("input_price", "cached_input_price", "cache_write_price", "output_price")
    assert [rows["own"][name] for name in rates] == [10, 1, 20, 100]
    assert [rows["gateway"][name] for name in rates] == [3, 0.3, 3.75, 15]
    assert rows["gateway"]["price_source"].startswith("genai-prices")

    by_subject = ("--by", "subject", "--format", "json")
    sides = pennyweight("compare", "latest", "--store", store, *by_subject)
    means = {s["name"]: s["metrics"]["cost_usd_mean"] for s in sides.json["sides"]}
    assert means == expected

    prices = tmp_path / "prices.yaml"
    prices.write_text("own: {input: 1, output: 1, cached_input: 0.5}\n")
    again = pytest.approx((400 * 1 + 600 * 0.5 + 10 * 1) / 1e6)
    assert mean_cost(tmp_path, "--prices", prices)["own"] == again

    out = tmp_path / "exported.jsonl"
    assert pennyweight("export", "latest", "--store", store, "--output", out).code == 0
    text = re.sub(r'"cost_usd":[^,]*,', "", out.read_text())
    out.write_text(text)
    scored = pennyweight("score", out, *by_subject).json["groups"]
    found = {g["group"]["subject"]: g["metrics"]["cost_usd_mean"] for g in scored}
    assert found == expected


def test_a_model_to_be_priced_as_must_be_listed(tmp_path: Path) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text(
        "tasks: [{id: a, input: x}]\nsubjects:\n"
        "  - {name: s, model: openai/m, base_url: 'http://127.0.0.1:1', priced_as: openai/gpt-9}\n"
    )
    said = refused("run", path, "--store", tmp_path / "s.db")
    assert "line 3: priced_as: genai-prices" in said
    assert "does not list 'gpt-9' of openai. Write the price under 'prices' instead." in said
