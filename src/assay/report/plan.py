"""The plan of a suite: attempts, an example prompt for each tier, tokens and cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.models.model import Usage
from assay.report.catalogue import _console, _trimmed
from assay.run.prices import Prices
from assay.suite.plan import count, estimates
from assay.text.safe import clean

if TYPE_CHECKING:
    from assay.suite.values import Suite


def render(suite: Suite) -> str:
    """Write the plan for the terminal."""
    console, out = _console()
    prices = Prices(suite.prices)
    console.print(f"{suite.name}: {count(suite):,} attempts", style="bold")
    console.print(
        f"{len(suite.tasks):,} tasks × {len(suite.subjects)} subjects × {len(suite.tiers)} tiers "
        f"× {suite.runs} runs"
    )
    total, known = 0.0, True
    for one in estimates(suite):
        output = one.output_tokens
        cost = prices.cost(one.subject, Usage(one.prompt_tokens, output or 0))
        most = "no limit" if output is None else f"at most {output:,}"
        price = "price not known" if cost is None else f"about ${cost:.4g}"
        known &= cost is not None and output is not None
        total += cost or 0.0
        console.print(f"\n{clean(one.subject.name)}, tier {clean(one.tier.name)}", style="bold")
        console.print(f"{one.prompt_tokens:,} tokens in, {most} out, {price}")
        for turn in one.example:
            console.print(f"{turn['role']}:", style="dim")
            console.print(clean(turn["content"]))
    suffix = "" if known else " or more: not every price or limit is known"
    console.print(f"\nEstimated cost: ${total:.4g}{suffix}. Nothing was called.")
    return _trimmed(out)
