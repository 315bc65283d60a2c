"""Compare sides on the same tasks: tiers, subjects, runs or files."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pennyweight.api.score import named_scorers, rescored, rules, scored
from pennyweight.api.sources import Given, rematched, resolve
from pennyweight.errors import UsageError
from pennyweight.scoring import comparison
from pennyweight.scoring.comparison import Comparison
from pennyweight.scoring.pipeline import ScoreRequest

if TYPE_CHECKING:
    from pennyweight.api.score import Scorers
    from pennyweight.store.store import Store


def compare(
    source: Given,
    *,
    by: str | Sequence[str] | None = None,
    baseline: str | None = None,
    all_pairs: bool = False,
    metrics: str | Sequence[str] | None = None,
    margin: str | float | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    map: Mapping[str, str] | None = None,  # noqa: A002
    where: Mapping[str, str] | None = None,
    skip_bad: bool = False,
    prices: str | Path | None = None,
    answer: str | None = None,
    match: str | None = None,
    scorers: Scorers = (),
    scorer: str | None = None,
    filter: str | None = None,  # noqa: A002
    store: str | Store | None = None,
    overview: bool = False,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> Comparison:
    """Compare sides on the tasks that they have in common.

    `source` is what `score` takes. `by` names what tells the sides apart: `tier`, `subject`, `run`
    or any column; by default several sources are sides, else tiers, else subjects. Each side is
    compared with the `baseline` (`T0`, else the first), or with `all_pairs` each with each other.
    `metrics` names metrics to report; those that are means are tested too. With a `margin` such as
    `"2%"`, each is also tested for being no worse by more than that, and for being equivalent
    within it: points for rates and scores, a share of the baseline's mean for costs and times.
    `where` leaves out records with other values, and `scorers` score them now, as in `score`.
    With `overview`, sides have only the metrics that a table shows, which is quicker.

    >>> rows = [{"task_id": t, "tier": f"T{i}", "passed": i > 0} for t in range(8) for i in (0, 1)]
    >>> (pair,) = compare(rows).pairs
    >>> pair.difference, pair.p, pair.method
    (1.0, 0.0078125, 'exact McNemar')
    """
    scorers = named_scorers(scorers)
    columns = [by] if isinstance(by, str) else list(dict.fromkeys(by or ()))
    options |= rules(answer, match)
    found = rematched(resolve(source, store, scorer=scorer, filter=filter), options)
    sources, unpriced = rescored(found, [*columns, *(where or ())], prices=prices)
    request = ScoreRequest(
        metrics,
        confidence,
        seed,
        map,
        skip_bad,
        progress,
        options,
        where=where or {},
        overview=overview and not (metrics or options),
    )
    sources, failed = scored(sources, scorers, request)
    allowed = None if margin is None else _margin(margin)
    compared = comparison.compare(
        sources, request, columns, baseline, all_pairs=all_pairs, margin=allowed
    )
    return replace(compared, unpriced=unpriced, score_errors=failed)


def _margin(written: str | float) -> float:
    """Read a margin as a share.

    >>> _margin("2%"), _margin("2 points"), _margin(0.02), _margin("-1%")
    (0.02, 0.02, 0.02, -0.01)
    """
    found = re.fullmatch(r"\s*([-−]?[0-9]*\.?[0-9]+)\s*(%|points?)?\s*", str(written))
    share = float(found[1].replace("−", "-")) / (100 if found[2] else 1) if found else math.nan
    if not 0 < abs(share) < 1:
        raise UsageError(
            f"--margin {written}: write how much worse is still acceptable, above 0 and below "
            "100 %, such as 2% or 0.02; -1% asks for at least 1 point better."
        )
    return share
