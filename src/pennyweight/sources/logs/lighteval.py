"""lighteval."""

from __future__ import annotations

from pathlib import Path

from pennyweight.sources.log_format import LogFormat
from pennyweight.sources.peek import Peek


def recognise(peek: Peek) -> bool:
    """Whether a file is a table of details, or a file of results."""
    columns = set(peek.columns)
    return (
        columns.issuperset({"doc", "metric", "model_response"})
        or columns.issuperset({"example", "predictions", "gold"})
        or (peek.has("config_general") and "lighteval_sha" in peek.inside("config_general"))
    )


def home(path: Path) -> Path:
    """Return the folder that holds `details` and `results`."""
    above = [one for one in path.parents if one.name in {"details", "results"}]
    return above[-1].parent if above else path.parent


FORMAT = LogFormat("lighteval", "lighteval", recognise, home=home)
