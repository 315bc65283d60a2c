"""Published prices: what genai-prices lists for a model. It works offline."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from pennyweight.suite.values import Price

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice

_NAMES = {
    "grok": "x-ai",
    "glm": "zai",
    "moonshot": "moonshotai",
    "openai-responses": "openai",
}
"""Providers that have another name in genai-prices."""
_RATES = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
"""In the order of `Price`."""
_CHARGED_ANYHOW = frozenset(
    {"requests_kcount", "output_reasoning_mtok", "output_citation_mtok", "input_mchars"}
)
"""What else some models charge for a call that sends and returns text."""
BATCH = {"processing": "batch"}


class NotPublishedError(LookupError):
    """There is no published price; its text says why."""


def published(model: str, *, batch: bool = False) -> Price:
    """Look up the price of `provider/name`; raise NotPublishedError if there is none.

    With `batch`, it is the price in the provider's batches, where one is published.
    """
    provider, _, name = model.partition("/")
    if not name:
        raise NotPublishedError(f"{model!r} is not of the form provider/name")
    from genai_prices import Usage, calc_price  # noqa: PLC0415
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415

    source, now = f"genai-prices {version('genai-prices')}", datetime.now(UTC)
    known_as = _NAMES.get(provider, provider)
    try:
        get_snapshot().find_provider(name, known_as, None)
    except LookupError:
        raise NotPublishedError(f"{source} does not list the provider {provider!r}") from None
    try:
        found = calc_price(
            Usage(),
            model_ref=name,
            provider_id=known_as,
            genai_request_timestamp=now,
            price_context=BATCH if batch else None,
        )
    except LookupError:
        raise NotPublishedError(f"{source} does not list {name!r} of {provider}") from None
    return _price(model, found.model_price, source, f"{now:%Y-%m-%d}")


def _price(model: str, listed: ModelPrice, source: str, date: str) -> Price:
    """Convert the rates, and those for longer prompts."""
    charged = {key for key, rate in vars(listed).items() if rate is not None}
    if charged & _CHARGED_ANYHOW or not charged & {"input_mtok", "output_mtok"}:
        raise NotPublishedError(f"{model} is not charged by its input and output tokens alone")
    rates = [getattr(listed, f"{key}_mtok") for key in _RATES]

    def at(start: int) -> Price:
        into, out, read, write, hour = (_at(rate, start) for rate in rates)
        return Price(into or 0.0, out or 0.0, source, date, read, write, hour)

    starts = sorted({tier.start for rate in rates for tier in getattr(rate, "tiers", ())})
    return replace(at(-1), longer=tuple((start, at(start)) for start in starts))


def _at(rate: Any, start: int) -> float | None:
    """Return the rate of a prompt that is longer than `start`; -1 stands for any prompt."""
    tiers = [tier.price for tier in getattr(rate, "tiers", ()) if tier.start <= start]
    price = tiers[-1] if tiers else getattr(rate, "base", rate)
    return None if price is None else float(price)
