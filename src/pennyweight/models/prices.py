"""What tokens cost: the suite's own prices first, then the published ones, else not known."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pennyweight.suite.values import Price

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pennyweight.models.model import Model, Usage
    from pennyweight.suite.values import Subject

MILLION = 1_000_000
_ASKED = 1000
"""The tokens a published price is asked for: few, since some models charge more for many."""
_PUBLISHED = {"grok": "x-ai", "glm": "zai", "moonshot": "moonshotai"}
"""Providers that genai-prices calls by other names."""
LOOPBACK = {"localhost", "127.0.0.1", "::1"}
"""Addresses of this machine: what serves a model there has prices of its own, if any."""
_FREE = ("local/", "replay:", "python:")
"""What nobody charges for by the token."""


@dataclass(slots=True)
class Prices:
    """The prices of a run's subjects; those that nobody knows are null, never 0.

    `names` are the models' own names by subject, where they differ from what the suite says: a
    recording answers in the name of the model that was recorded, and costs what that one did.
    """

    own: Mapping[str, Price]
    names: Mapping[str, str] = field(default_factory=dict)
    _known: dict[str, Price | None] = field(default_factory=dict)

    @classmethod
    def with_models(cls, own: Mapping[str, Price], models: Mapping[str, Model]) -> Prices:
        """Make the prices of a run from its models, by the names of their subjects."""
        return cls(own, {name: model.name for name, model in models.items()})

    def of(self, subject: Subject) -> Price | None:
        """Find the price of a subject's model."""
        if subject.name not in self._known:
            model = self.names.get(subject.name) or recorded(subject.model)
            found = [self.own.get(name) for name in (subject.name, subject.model, model)]
            own = next((price for price in found if price), None)
            here = urlsplit(subject.base_url or "").hostname in LOOPBACK
            self._known[subject.name] = own or (None if here else published(model))
        return self._known[subject.name]

    def cost(self, subject: Subject, usage: Usage) -> float | None:
        """Price what a call used; null if the price is not known, or a count that matters."""
        price = self.of(subject)
        sent, made = usage.prompt_tokens, usage.completion_tokens
        if price is None or (sent is None and price.input) or (made is None and price.output):
            return None
        return ((sent or 0) * price.input + (made or 0) * price.output) / MILLION

    def unknown(self, subjects: Iterable[Subject], *, limited: bool = False) -> list[str]:
        """Name the models that cost something and whose price is not known, each once.

        An agent may say itself what it cost. Where money is limited, a function may cost some too.
        """
        free = _FREE[:-1] if limited else _FREE
        paid = [s for s in subjects if s.agent is None and not s.model.startswith(free)]
        models = {s.model: None for s in paid if self.of(s) is None}
        return list(models)


def recorded(model: str) -> str:
    """Give the model behind `replay:FILE#MODEL`; any other is itself.

    >>> recorded("replay:tape.jsonl#openai/gpt-4o"), recorded("openai/gpt-4o")
    ('openai/gpt-4o', 'openai/gpt-4o')
    """
    return model.partition("#")[2] if model.startswith("replay:") else model


def published(model: str) -> Price | None:
    """Look a model's price up in genai-prices, which works offline."""
    provider, _, name = model.partition("/")
    if not name or model.startswith(_FREE):
        return None
    from genai_prices import Usage as Counted  # noqa: PLC0415
    from genai_prices import calc_price  # noqa: PLC0415

    now = datetime.now(UTC)
    found = []
    for counts in ({"input_tokens": _ASKED}, {"output_tokens": _ASKED}):
        try:
            priced = calc_price(
                Counted(**counts),
                model_ref=name,
                provider_id=_PUBLISHED.get(provider, provider),
                genai_request_timestamp=now,
            )
        except LookupError:
            return None
        found.append(float(priced.total_price * MILLION / _ASKED))
    source = f"genai-prices {version('genai-prices')}"
    return Price(found[0], found[1], source, f"{now:%Y-%m-%d}")
