"""The errors that users see.

    PennyweightError      exit 2: wrong usage or bad input, nothing was changed
    ├── UsageError        an unknown name, option or value
    │   ├── NotFoundError a run, a record or a file that does not exist
    │   └── UntrustedError a suite of unknown origin that would run code, read files or use keys
    ├── InputError        a source that cannot be read or has invalid records
    ├── DeclarationError  an invalid declaration of a measure or metric (at import)
    ├── OutputError       exit 4: standard output cannot be written
    ├── CallError         exit 4: a model returned no reply (models/failure.py)
    └── StoreError        exit 4: the store cannot be read or written (store/connection.py)

Every message says what is wrong, with which value, and what to do next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SHOWN = 20


class PennyweightError(Exception):
    """The base class of everything that Pennyweight raises on purpose."""

    exit_code = 2


class UsageError(PennyweightError):
    """An unknown name, option or value."""


class NotFoundError(UsageError):
    """A run, a record or a file does not exist."""


class UntrustedError(UsageError):
    """A suite of unknown origin would do more than call known models."""

    def __init__(
        self, problem: str, uses: Sequence[str], confirmed: Sequence[Sequence[str]] = ()
    ) -> None:
        super().__init__(problem)
        self.uses = tuple(uses)
        """What it would do, such as "run the command python3 agent.py"."""
        self.confirmed = tuple(confirmed)
        """What a person has confirmed before: the files that these uses were found in."""

    @property
    def mark(self) -> str:
        """A hash of the uses: a person who confirms them confirms exactly these."""
        return "-".join(map(mark_of, (*self.confirmed, self.uses)))


def mark_of(uses: Sequence[str]) -> str:
    """Return a hash of what a suite would do."""
    from hashlib import sha256  # noqa: PLC0415 - slow to load, and every command loads this module

    return sha256("\n".join(uses).encode("utf-8", "replace")).hexdigest()[:16]


class DeclarationError(PennyweightError):
    """A measure or metric is declared wrongly."""


class InputError(PennyweightError):
    """A source cannot be read or has invalid records; lists the first problems in full."""

    def __init__(self, problems: Sequence[str], total: int | None = None, hint: str = "") -> None:
        self.problems = tuple(problems)
        self.total = len(self.problems) if total is None else total
        self.hint = hint
        super().__init__(str(self))

    def __reduce__(self) -> tuple[type[InputError], tuple[object, ...]]:
        """Survive the way from another process."""
        return type(self), (self.problems, self.total, self.hint)

    def __str__(self) -> str:
        lines = list(self.problems[:SHOWN])
        if self.total > len(lines):
            lines.append(f"… and {self.total - len(lines):,} more problems.")
        if self.hint:
            lines.append(self.hint)
        return "\n".join(lines)


class OutputError(PennyweightError):
    """Standard output cannot be written: a full disk, for instance."""

    exit_code = 4

    def __str__(self) -> str:
        return f"Standard output cannot be written: {super().__str__()}."


class StoreError(PennyweightError):
    """The store cannot be read or written: a full disk, a lost connection, no permission."""

    exit_code = 4

    def __init__(self, problem: str, advice: str = "", *, transient: bool = False) -> None:
        super().__init__(f"{problem} {advice}".rstrip())
        self.problem = problem
        """What is wrong, without the advice that follows it in the message."""
        self.transient = transient
        """Whether the problem may disappear by itself, such as a server that restarts."""


class DamagedError(StoreError):
    """A value in the store is none that Pennyweight writes."""


def unknown(kind: str, name: str, known: Iterable[str], where: str = "") -> str:
    """Return the message for an unknown name, with the closest known one.

    >>> unknown("Metric", "acuracy", ["accuracy", "ece"], "'pennyweight metrics' lists them all.")
    "Metric 'acuracy' is not known. Did you mean 'accuracy'? 'pennyweight metrics' lists them all."
    """
    from difflib import get_close_matches  # noqa: PLC0415

    near = get_close_matches(name, list(known), n=1, cutoff=0.6)
    words = [f"{kind} {name!r} is not known."]
    if near:
        words.append(f"Did you mean {near[0]!r}?")
    if where:
        words.append(where)
    return " ".join(words)
