"""What has happened in a run so far."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    """What has happened so far, for the progress."""

    total: int
    done: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    retries: int = 0
    retried: str = ""
    """The kind of error that was last tried again."""
    said: str = ""
    """What that error says."""
    paused_until: float = 0.0
    """Until when the account that failed last is left alone."""
    interrupted: bool = False
    exhausted: str | None = None
    stopping: bool = False
    lost: bool = False
    """Whether another process has the run now."""
