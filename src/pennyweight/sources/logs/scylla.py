"""ProjectScylla."""

from __future__ import annotations

import re
from pathlib import Path

from pennyweight.sources.log_format import LogFormat
from pennyweight.sources.peek import Peek


def recognise(peek: Peek) -> bool:
    """Whether a file is the result of a run, of its agent, or of one of its judges."""
    return (
        peek.has("run_number", "token_stats", "judge_score")
        or peek.has("exit_code", "token_stats", "api_calls")
        or peek.has("score", "passed", "criteria_scores", "is_valid")
    )


def home(path: Path) -> Path:
    """Return the folder of the experiment: the one that holds the folders of the tiers."""
    tiers = [one for one in path.parents if re.fullmatch(r"T[0-9]+", one.name)]
    return tiers[-1].parent if tiers else path.parent


FORMAT = LogFormat("scylla", "ProjectScylla", recognise, home=home)
