"""Harbor."""

from __future__ import annotations

from pathlib import Path

from pennyweight.sources.log_format import LogFormat
from pennyweight.sources.peek import Peek


def recognise(peek: Peek) -> bool:
    """Whether a file is a trial, a job, or a trajectory (ATIF)."""
    trajectory = peek.inside("schema_version")
    return (
        peek.has("task_name", "trial_name", "agent_info")
        or peek.has("n_total_trials", "stats", "started_at")
        or (isinstance(trajectory, str) and trajectory.startswith("ATIF-v"))
    )


def home(path: Path) -> Path:
    """Return the folder of the job, else of the trial, else the file."""
    above = [one for one in path.parents[:3] if (one / "result.json").is_file()]
    return above[-1] if above else path


FORMAT = LogFormat("harbor", "Harbor", recognise, home=home)
