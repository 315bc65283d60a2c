"""What tokens cost: the suite's own prices first, then the published ones, else not known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.suite.values import Price

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.models.model import Usage
    from assay.suite.values import Subject

_MILLION = 1_000_000


@dataclass(slots=True)
class Prices:
    """The prices of a run's subjects; those that nobody knows are null, never 0."""

    own: Mapping[str, Price]
    _known: dict[str, Price | None] = field(default_factory=dict)

    def of(self, subject: Subject) -> Price | None:
        """Find the price of a subject's model."""
        if subject.name not in self._known:
            own = self.own.get(subject.name) or self.own.get(subject.model)
            self._known[subject.name] = own or _published(subject.model)
        return self._known[subject.name]

    def cost(self, subject: Subject, usage: Usage) -> float | None:
        """Price what a call used; null if the price or a count is not known."""
        price = self.of(subject)
        if price is None or usage.prompt_tokens is None or usage.completion_tokens is None:
            return None
        used = usage.prompt_tokens * price.input + usage.completion_tokens * price.output
        return used / _MILLION


def _published(model: str) -> Price | None:
    """Look a model's price up in genai-prices, which works offline."""
    provider, _, name = model.partition("/")
    if not name or provider == "local":
        return None
    from genai_prices import Usage as Counted  # noqa: PLC0415
    from genai_prices import calc_price  # noqa: PLC0415

    found = []
    for counts in ({"input_tokens": _MILLION}, {"output_tokens": _MILLION}):
        try:
            priced = calc_price(Counted(**counts), model_ref=name, provider_id=provider)
        except LookupError:
            return None
        found.append(float(priced.total_price))
    return Price(*found)
