"""Where the marks of a comparison lead: to the tasks that changed, or to a side's records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from pennyweight.web.addresses import run_url, write_filter
from pennyweight.web.comparison_sides import INSIDE, Side

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def leading(
    runs: Sequence[str], sides: Sequence[tuple[Side, str]]
) -> Callable[[Mapping[str, Any]], str | None]:
    """Make the links of charts that show sides of runs, each given with its name."""
    known = {name.replace(" · ", " / "): side for side, name in sides}

    def link(wanted: Mapping[str, Any]) -> str | None:
        if "pair" not in wanted:
            return run_url(runs[0], "records", **write_filter(wanted)) if len(runs) == 1 else None
        later, earlier = (known.get(name.replace(" · ", " / ")) for name in wanted["pair"])
        if later is None or earlier is None:
            return None
        query = [*(("run", run) for run in runs), ("baseline", runs[0])]
        query += [("a", earlier.write()), ("b", later.write())]
        return f"/compare?{urlencode(query)}#changed"

    return link


def sides_of(run: str, told: Mapping[str, Any]) -> list[tuple[Side, str]]:
    """Give the sides of a run's digest with their names."""
    if not set(told["by"]) <= set(INSIDE):
        return []
    return [
        (Side(run, tuple((k, str(v)) for k, v in side["group"].items())), side["name"])
        for side in told["sides"]
    ]
