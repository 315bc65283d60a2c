"""Prices: the suite's own, then the published ones, with their source and day; else null."""

import re
from pathlib import Path

import pytest

from cli.command import pennyweight, refused
from models.hostile import GOOD, in_a_thread, in_turn, response
from pennyweight.models.model import Usage
from pennyweight.models.prices import Prices, published
from pennyweight.store.store import Store
from pennyweight.suite.values import Price, Subject

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


def test_a_price_that_rises_with_the_prompt_is_that_of_a_short_one() -> None:
    price = published("google/gemini-2.5-pro")
    assert price is not None
    assert price.input == 1.25


@pytest.mark.parametrize(
    "model", ["grok/grok-3", "moonshot/kimi-k2", "anthropic/claude-sonnet-4-5"]
)
def test_providers_are_found_by_our_names(model: str) -> None:
    assert published(model) is not None


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
    assert Prices({}).unknown(subjects) == ["openai/no-such-model"]


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


def cost(folder: Path, *arguments: str | Path) -> dict[str, float | None]:
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
    before = cost(folder)
    assert before == {"one": pytest.approx(6e-6), "two": pytest.approx(12e-6)}
    prices = folder / "prices.yaml"
    prices.write_text("openai/m: {input: 10, output: 100}\ntwo: {input: 0, output: 0}\n")
    assert cost(folder, "--prices", prices) == {"one": pytest.approx(150e-6), "two": 0.0}
    assert cost(folder) == before  # the run itself stays as it was


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
    assert cost(folder, "--prices", prices)["two"] == pytest.approx(12e-6)


def test_what_has_no_tokens_costs_nothing_where_nothing_is_charged(folder: Path) -> None:
    prices = folder / "prices.json"
    prices.write_text('{"one": {"input": 0, "output": 0}}')
    out = folder / "measured.jsonl"
    cost(folder, "--prices", prices, "--per-task", out)
    rows = [line for line in out.read_text().splitlines() if '"subject":"one"' in line]
    assert all('"cost_usd":0.0' in row for row in rows)


def test_what_has_no_tokens_stays_null(folder: Path) -> None:
    prices = folder / "prices.json"
    prices.write_text('{"one": {"input": 10, "output": 100, "date": "2026-11-01"}}')
    out = folder / "measured.jsonl"
    cost(folder, "--prices", prices, "--per-task", out)
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


def test_files_have_their_own_cost(folder: Path) -> None:
    path = folder / "prices.yaml"
    path.write_text("one: {input: 1, output: 1}")
    records = folder / "r.jsonl"
    records.write_text('{"answer": "4", "target": "4"}\n')
    assert "--prices applies to runs" in refused("score", records, "--prices", path)
    assert "no such file" in refused(
        "score", "latest", "--store", folder / "s.db", "--prices", folder / "none.yaml"
    )
