"""Published prices give what genai-prices computes of the providers' own replies."""

from collections.abc import Callable
from typing import Any

import pytest
from genai_prices import extract_usage
from hypothesis import given, settings
from hypothesis import strategies as st

from pennyweight.models.model import Usage
from pennyweight.models.prices import Prices, cost
from pennyweight.models.published_prices import BATCH, NotPublishedError, published
from pennyweight.models.wires import anthropic, google, openai
from pennyweight.suite.values import Subject

tokens = st.integers(0, 3_000) | st.integers(0, 400_000)
"""Some prompts are so long that they cost more."""
maybe_tokens = st.none() | tokens


def known(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


@st.composite
def openai_reply(draw: st.DrawFn, into: str = "prompt", out: str = "completion") -> dict[str, Any]:
    fresh, cached, written = draw(tokens), draw(maybe_tokens), draw(maybe_tokens)
    visible, thought = draw(tokens), draw(maybe_tokens)
    usage = {
        f"{into}_tokens": fresh + (cached or 0) + (written or 0),
        f"{into}_tokens_details": known(cached_tokens=cached, cache_write_tokens=written),
        f"{out}_tokens": visible + (thought or 0),
        f"{out}_tokens_details": known(reasoning_tokens=thought),
    }
    return {"usage": usage | {"total_tokens": usage[f"{into}_tokens"] + usage[f"{out}_tokens"]}}


@st.composite
def anthropic_reply(draw: st.DrawFn) -> dict[str, Any]:
    short, hour = draw(maybe_tokens), draw(maybe_tokens)
    written = None if short is None and hour is None else (short or 0) + (hour or 0)
    usage = known(
        input_tokens=draw(tokens),
        output_tokens=draw(tokens),
        cache_read_input_tokens=draw(maybe_tokens),
        cache_creation_input_tokens=written,
        cache_creation=known(ephemeral_5m_input_tokens=short, ephemeral_1h_input_tokens=hour),
    )
    return {"usage": usage}


@st.composite
def google_reply(draw: st.DrawFn) -> dict[str, Any]:
    fresh, cached, tools = draw(tokens), draw(maybe_tokens), draw(maybe_tokens)
    visible, thoughts = draw(tokens), draw(maybe_tokens)
    prompt = fresh + (cached or 0)
    usage = known(
        promptTokenCount=prompt,
        cachedContentTokenCount=cached,
        toolUsePromptTokenCount=tools,
        candidatesTokenCount=visible,
        thoughtsTokenCount=thoughts,
        totalTokenCount=prompt + (tools or 0) + visible + (thoughts or 0),
    )
    return {"usageMetadata": usage}


REPLIES: list[tuple[str, str, Callable[[Any], Usage], st.SearchStrategy[Any], list[str]]] = [
    ("openai", "chat", openai.spent, openai_reply(), ["gpt-4o", "gpt-5", "gpt-5.4", "o3"]),
    ("openai", "responses", openai.spent, openai_reply("input", "output"), ["gpt-4o", "gpt-5.4"]),
    (
        *("anthropic", "default", anthropic.spent, anthropic_reply()),
        ["claude-sonnet-4-5", "claude-opus-4-5", "claude-3-5-haiku-latest"],
    ),
    (
        *("google", "default", google.spent, google_reply()),
        ["gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.0-flash"],
    ),
]


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("case", REPLIES, ids=lambda case: f"{case[0]}-{case[1]}")
def test_a_reply_costs_what_genai_prices_says(case: Any, *, batch: bool) -> None:
    provider, flavor, spent, replies, models = case
    prices = {model: published(f"{provider}/{model}", batch=batch) for model in models}

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(replies, st.sampled_from(models))
    def check(reply: dict[str, Any], model: str) -> None:
        body = reply | {"model": model, "modelVersion": model}
        read = extract_usage(body, provider_id=provider, api_flavor=flavor)
        context = BATCH if batch else None
        listed = read.provider.find_model(model)
        expected = read.calc_price(model=listed, price_context=context).total_price
        usage = spent(body)
        ours = cost(prices[model].at(usage.prompt_tokens or 0), usage)
        assert ours == pytest.approx(float(expected), rel=1e-12, abs=1e-15)

    check()


def test_some_of_these_prompts_are_long_and_some_models_have_a_batch_rate() -> None:
    sonnet, half = (published("anthropic/claude-sonnet-4-5", batch=b) for b in (False, True))
    assert (sonnet.input, sonnet.cached_input, sonnet.cache_write) == (3.0, 0.3, 3.75)
    assert sonnet.cache_write_1h == 6.0
    assert [(start, price.input) for start, price in sonnet.longer] == [(200_000, 6.0)]
    assert (half.input, half.output) == (1.5, 7.5)
    assert Prices({}, batch=True).of(Subject("s", "anthropic/claude-sonnet-4-5")) == half


@pytest.mark.parametrize(
    "model", ["grok/grok-3", "moonshot/kimi-k2", "anthropic/claude-sonnet-4-5"]
)
def test_providers_are_found_by_our_names(model: str) -> None:
    assert published(model).input > 0


@pytest.mark.parametrize("model", ["gpt-4o", "nowhere/m", "openai/no-such-model"])
def test_what_is_not_listed_has_no_price(model: str) -> None:
    with pytest.raises(NotPublishedError):
        published(model)
