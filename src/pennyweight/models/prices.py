"""Prices of tokens: the suite's own first, then published ones, else unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from urllib.parse import urlsplit

from pennyweight.models.model import Model, Usage
from pennyweight.models.providers import LOOPBACK
from pennyweight.suite.values import Price, Subject

MILLION = 1_000_000
_ASKED = 1000
"""The tokens for which a published price is looked up. Some models charge more for many."""
_PUBLISHED = {"grok": "x-ai", "glm": "zai", "moonshot": "moonshotai"}
"""Providers that have another name in genai-prices."""
_FREE = ("local/", "replay:", "python:")
"""Model prefixes that are not billed by the token."""


@dataclass(slots=True)
class Prices:
    """The prices of a run's subjects. An unknown price is null, never 0.

    `names` maps subjects to the models' own names where they differ from the suite: a recording
    answers in the name of the recorded model and costs what that model did.
    """

    own: Mapping[str, Price]
    names: Mapping[str, str] = field(default_factory=dict)
    _known: dict[str, Price | None] = field(default_factory=dict)

    @classmethod
    def with_models(cls, own: Mapping[str, Price], models: Mapping[str, Model]) -> Prices:
        """Make the prices of a run from its models by subject."""
        return cls(own, {name: model.name for name, model in models.items()})

    def of(self, subject: Subject) -> Price | None:
        """Return the price of a subject's model."""
        if subject.name not in self._known:
            model = self.names.get(subject.name) or recorded(subject.model)
            names = (subject.name, subject.model, model)
            own = next((self.own[name] for name in names if name in self.own), None)
            is_here = urlsplit(subject.base_url or "").hostname in LOOPBACK
            self._known[subject.name] = own or (None if is_here else published(model))
        return self._known[subject.name]

    def cost(self, subject: Subject, usage: Usage) -> float | None:
        """Return the cost of a call; None if the price or a count that matters is not known."""
        price = self.of(subject)
        prompt, output = usage.prompt_tokens, usage.completion_tokens
        if price is None or (prompt is None and price.input) or (output is None and price.output):
            return None
        return ((prompt or 0) * price.input + (output or 0) * price.output) / MILLION

    def unknown(self, subjects: Iterable[Subject], *, limited: bool = False) -> list[str]:
        """List the models that cost something but whose price is not known.

        An agent may report its own cost. If `limited`, a function may cost something too.
        """
        free = _FREE[:-1] if limited else _FREE
        paid = (s for s in subjects if s.agent is None and not s.model.startswith(free))
        return list(dict.fromkeys(s.model for s in paid if self.of(s) is None))


def recorded(model: str) -> str:
    """Return the model behind `replay:FILE#MODEL`; any other name is returned as it is.

    >>> recorded("replay:tape.jsonl#openai/gpt-4o"), recorded("openai/gpt-4o")
    ('openai/gpt-4o', 'openai/gpt-4o')
    """
    return model.partition("#")[2] if model.startswith("replay:") else model


def published(model: str) -> Price | None:
    """Look up a model's price in genai-prices, which works offline."""
    provider, _, name = model.partition("/")
    if not name or model.startswith(_FREE):
        return None
    from genai_prices import Usage as Counted  # noqa: PLC0415
    from genai_prices import calc_price  # noqa: PLC0415

    now, rates = datetime.now(UTC), []
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
        rates.append(float(priced.total_price * MILLION / _ASKED))
    source = f"genai-prices {version('genai-prices')}"
    return Price(rates[0], rates[1], source, f"{now:%Y-%m-%d}")
