"""Prices of tokens: the suite's own first, then published ones, else unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from pennyweight.errors import UsageError
from pennyweight.models.model import Lane, Model, Usage
from pennyweight.models.providers import LOOPBACK, PROVIDERS, own_address
from pennyweight.models.published_prices import NotPublishedError, published
from pennyweight.suite.values import Price, Subject

MILLION = 1_000_000
_FREE = ("local/", "replay:", "python:")
"""Model prefixes that are not billed by the token."""


@dataclass(slots=True)
class Prices:
    """The prices of a run's subjects. An unknown price is null, never 0.

    `names` maps subjects to the models' own names where they differ from the suite: a recording
    answers in the name of the recorded model and costs what that model did. With `batch`, published
    prices are those of the providers' batches; prices of the suite are taken as they are.
    """

    own: Mapping[str, Price]
    names: Mapping[str, str] = field(default_factory=dict)
    batch: bool = False
    _known: dict[str, Price | str] = field(default_factory=dict)
    _prices: dict[str, Price | None] = field(default_factory=dict)
    _of_batches: Prices | None = None

    @classmethod
    def with_models(cls, own: Mapping[str, Price], models: Mapping[str, Model]) -> Prices:
        """Make the prices of a run from its models by subject."""
        return cls(own, {name: model.name for name, model in models.items()})

    def in_lane(self, lane: Lane) -> Prices:
        """Return the prices of live calls or of batches."""
        if (lane == "batch") == self.batch:
            return self
        if self._of_batches is None:
            self._of_batches = Prices(self.own, self.names, lane == "batch")
        return self._of_batches

    def of(self, subject: Subject) -> Price | None:
        """Return the price of a subject's model."""
        name = subject.name
        if name not in self._prices:
            found = self._found(subject)
            self._prices[name] = found if isinstance(found, Price) else None
        return self._prices[name]

    def why_unknown(self, subject: Subject) -> str:
        """Say why a price is not known, as the end of a sentence; "" if it is."""
        found = self._found(subject)
        return found if isinstance(found, str) else ""

    def _found(self, subject: Subject) -> Price | str:
        if subject.name not in self._known:
            model = self.names.get(subject.name) or recorded(subject.model)
            names = (subject.name, subject.model, model)
            own = next((self.own[name] for name in names if name in self.own), None)
            self._known[subject.name] = own or self._published(subject, model)
        return self._known[subject.name]

    def _published(self, subject: Subject, model: str) -> Price | str:
        if subject.priced_as is None:
            provider = PROVIDERS.get(model.partition("/")[0])
            own = None if subject.base_url else _own_url(model)
            address = subject.base_url or own or (provider.base_url if provider else "")
            if urlsplit(address).hostname in LOOPBACK:
                return f"{address} is an address of this machine, which publishes no prices"
            if model.startswith(_FREE):
                return f"{model} is not billed by the token"
        try:
            return published(subject.priced_as or model, batch=self.batch)
        except NotPublishedError as error:
            return str(error)

    def is_free(self, subject: Subject) -> bool:
        """Whether a subject's model costs nothing: it runs on this machine, and has no price."""
        return subject.agent is None and subject.model.startswith("local/") and not self.of(subject)

    def cost(self, subject: Subject, usage: Usage) -> float | None:
        """Return the cost of a call; None if the price or a count that matters is not known."""
        price = self.of(subject)
        return None if price is None else cost(self._at(price, subject, usage), usage)

    def most(self, subject: Subject, prompt: int, output: int) -> float | None:
        """Return the highest possible cost of a call, however much of its input is cached."""
        price = self.of(subject)
        if price is None:
            return None
        at = self._at(price, subject, Usage(prompt))
        rates = (at.input, at.cached_input, at.cache_write, at.cache_write_1h)
        return (prompt * max(r for r in rates if r is not None) + output * at.output) / MILLION

    def used(
        self, subject: Subject, usages: Sequence[Usage], lanes: Sequence[Lane] = ()
    ) -> Price | None:
        """Return the rates that calls were charged at; the mean per token if they differ.

        `lanes` has the lane of each call, if they were not all made in the lane of these prices.
        """
        price = self.of(subject)
        differ = lanes or (price and price.longer) or any(u.cache_write_1h_tokens for u in usages)
        if price is None or not differ:
            return price
        own = [self.in_lane(lane) for lane in lanes] or [self] * len(usages)
        prices = [one.of(subject) for one in own]
        if None in prices:
            return None
        rates = [self._at(p, subject, u) for p, u in zip(prices, usages, strict=True) if p]
        parts = [p for rate, u in zip(rates, usages, strict=True) if (p := _parts(rate, u))]

        def mean(*places: int) -> float | None:
            counted = [p[i] for p in parts for i in places if p[i][1]]
            paid, tokens = sum(r * n for r, n in counted), sum(n for _, n in counted)
            return paid / tokens if tokens else None

        fresh, cached, written, output = mean(0), mean(1), mean(2, 3), mean(4)
        first = rates[0] if rates else price
        return replace(
            first,
            input=first.input if fresh is None else fresh,
            cached_input=first.cached_input if cached is None else cached,
            cache_write=first.cache_write if written is None else written,
            output=first.output if output is None else output,
        )

    def _at(self, price: Price, subject: Subject, usage: Usage) -> Price:
        """Return the price for a prompt of this length. An agent's usage is that of many calls."""
        return price.at(usage.prompt_tokens or 0) if subject.agent is None else price

    def unknown(self, subjects: Iterable[Subject], *, limited: bool = False) -> dict[str, str]:
        """Map the models that cost something, but whose price is not known, to the reason.

        An agent may report its own cost. If `limited`, a function may cost something too.
        """
        free = _FREE[:-1] if limited else _FREE
        paid = (s for s in subjects if s.agent is None and not s.model.startswith(free))
        return {s.model: why for s in paid if (why := self.why_unknown(s))}


def cost(price: Price, usage: Usage) -> float | None:
    """Return what a call costs; None if a count that matters is missing or contradicts another.

    >>> cost(Price(2, 10, cached_input=0.5), Usage(1000, 200, cached_tokens=600))
    0.0031
    """
    parts = _parts(price, usage)
    return None if parts is None else sum(rate * tokens for rate, tokens in parts) / MILLION


def _parts(price: Price, usage: Usage) -> tuple[tuple[float, int], ...] | None:
    """Return rate and count of fresh input, cached input, short and long cache writes, output.

    Input without a rate of its own is charged as the input that it is a part of.
    """
    prompt, output = usage.prompt_tokens, usage.completion_tokens
    read, short, long = price.cached_input, price.cache_write, price.cache_write_1h
    if output is None and price.output:
        return None
    if prompt is None:
        if price.input or read or short or long:
            return None
        prompt = 0
    cached = 0 if read is None else usage.cached_tokens or 0
    hour = 0 if long is None else usage.cache_write_1h_tokens or 0
    written = 0 if short is None else (usage.cache_write_tokens or 0) - hour
    fresh = prompt - cached - hour - written
    if fresh < 0 or written < 0:
        return None
    return (
        (price.input, fresh),
        (read or 0.0, cached),
        (short or 0.0, written),
        (long or 0.0, hour),
        (price.output, output or 0),
    )


def recorded(model: str) -> str:
    """Return the model behind `replay:FILE#MODEL`; any other name is returned as it is.

    >>> recorded("replay:tape.jsonl#openai/gpt-4o"), recorded("openai/gpt-4o")
    ('openai/gpt-4o', 'openai/gpt-4o')
    """
    return model.partition("#")[2] if model.startswith("replay:") else model


def _own_url(model: str) -> str | None:
    """Return the address that the environment names for a model."""
    try:
        own = own_address(model)
    except UsageError:  # it was reported before the first call
        return None
    return own.url if own else None
