"""How one run differs from its suite's file: some of the tasks, other models, other settings.

The value is stored with the run, so that resuming the run asks for the same attempts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from fnmatch import fnmatchcase
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from pennyweight.errors import UsageError, unknown
from pennyweight.schema.user_code import model_name
from pennyweight.text.format import plural

if TYPE_CHECKING:
    from pennyweight.schema.tree import Node
    from pennyweight.suite.values import LoadedSuite, Task

_GLOB = frozenset("*?[")
_READ_OTHERWISE = ("tasks.columns.", "tasks.make.")
"""Changes that say how a file of tasks is read; the tasks are still those of the file."""
LIMITS = "limits"


class NarrowingOptions(TypedDict, total=False):
    """The keywords by which `run` narrows or changes a suite; None means as the file says."""

    limit: int | None
    """Try only the first tasks."""
    tasks: Collection[str] | None
    """Try only the tasks with these ids, or that match these patterns (`math-*`)."""
    sample: int | None
    """Try only so many tasks, drawn at random."""
    seed: int | None
    """The random seed of `sample`; 0 by default."""
    subjects: Collection[str] | None
    """Only these subjects of the suite, by name or pattern."""
    tiers: Collection[str] | None
    """Only these tiers, by name or pattern."""
    models: Collection[str | Callable[..., Any]] | None
    """Measure these models, or functions, in place of the suite's subjects."""
    runs: int | None
    """The number of attempts at each task."""
    concurrency: int | Literal["auto"] | None
    """The number of concurrent calls."""
    temperature: float | None
    """The temperature of every call."""
    lane: Literal["live", "batch"] | None
    """Whether calls go into the providers' batches."""
    answer: Any
    """How the final answer is extracted, as a suite writes it."""
    match: Any
    """How an answer is compared with its target, as a suite writes it."""
    columns: Mapping[str, str] | None
    """The column of each field of a file of tasks: `{"target": "expected_outcome"}`."""
    set: Mapping[str, Any] | None
    """Other values of the suite, by their place in it: `{"tiers.T1.system": "Be brief."}`."""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What a run takes of its suite, and what it changes."""

    limit: int | None = None
    tasks: tuple[str, ...] = ()
    sample: int | None = None
    seed: int | None = None
    subjects: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    changes: Mapping[str, Any] = field(default_factory=dict)
    """The values that replace those of the suite, by their place in it."""
    of_tasks: int | None = None
    """The tasks of the whole suite; known once the suite was read."""
    of_runs: int | None = None
    """The attempts at each task that the suite's file asks for."""

    @classmethod
    def of(cls, **given: Any) -> Narrowing:
        """Make it of the keywords of `NarrowingOptions`; refuse what does not go together."""
        changes = dict(given.pop("set", None) or {})
        short = {
            "runs": "runs",
            "concurrency": f"{LIMITS}.concurrency",
            "temperature": None,
            "lane": f"{LIMITS}.lane",
            "answer": "answer",
            "match": "match",
        }
        columns = given.pop("columns", None) or {}
        changes |= {f"tasks.columns.{name}": column for name, column in columns.items()}
        for name, path in short.items():
            if (value := given.pop(name, None)) is not None:
                changes[path or name] = value
        for name in _LISTS:
            if given.get(name) is not None and not given[name]:
                raise UsageError(f"{name!r} names no {name[:-1]}, so there is nothing to run.")
        values: dict[str, Any] = {
            **{n: _names(n, v) for n in _LISTS if (v := given.pop(n, None)) is not None},
            **{n: v for n in ("limit", "sample", "seed") if (v := given.pop(n, None)) is not None},
        }
        if given:
            names = NarrowingOptions.__annotations__
            raise TypeError(unknown("The keyword", next(iter(given)), names))
        one = cls(**values, changes=changes)
        one._check()
        return one

    def _check(self) -> None:
        for name, value in (("limit", self.limit), ("sample", self.sample)):
            if value is not None and not (isinstance(value, int) and value >= 1):
                raise UsageError(f"{name} {value!r}: it must be a whole number of at least 1.")
        if self.limit is not None and self.sample is not None:
            raise UsageError(
                "'limit' takes the first tasks and 'sample' random ones; use one of them."
            )
        if self.seed is not None and self.sample is None:
            raise UsageError(
                "'seed' is the seed of 'sample'. The seed of the suite is set with set: seed=N."
            )
        if "tasks.limit" in self.changes:
            raise UsageError("tasks.limit cannot be set for one run; use 'limit'.")

    @classmethod
    def stored(cls, settings: Mapping[str, Any]) -> Narrowing:
        """Read it back from the settings of a run."""
        given = settings.get("narrowing") or {}
        known = {f.name for f in fields(cls)}
        lists = {n: tuple(given[n]) for n in _LISTS if n in given}
        return cls(**{**{n: v for n, v in given.items() if n in known}, **lists})

    def plain(self) -> dict[str, Any]:
        """Return it as plain data, as a run stores it."""
        given = {n: v for n, v in asdict(self).items() if v not in (None, (), {})}
        return {n: list(v) if isinstance(v, tuple) else v for n, v in given.items()}

    def __bool__(self) -> bool:
        """Whether the run is anything but the suite as its file says."""
        return self.alters or any(self._parts())

    def _parts(self) -> tuple[Any, ...]:
        return (self.limit, self.tasks, self.sample, self.subjects, self.tiers)

    @property
    def alters(self) -> bool:
        """Whether the run uses models or settings that the suite's file does not have."""
        return bool(self.models or self.changes)

    @property
    def alterations(self) -> Narrowing:
        """Only that: what it takes of the suite is left out."""
        return Narrowing(models=self.models, changes=self.changes)

    def is_part(self, tasks: int, runs: int) -> bool:
        """Whether so many tasks, tried so often, are less than the suite's file asks for."""
        fewer = tasks < (self.of_tasks or 0) or runs < (self.of_runs or 0)
        return fewer or self.replaces_tasks

    @property
    def replaces_tasks(self) -> bool:
        """Whether the tasks are not those of the suite's file."""
        return any(
            path.split(".")[0] == "tasks" and not path.startswith(_READ_OTHERWISE)
            for path in self.changes
        )

    @property
    def only_limits(self) -> bool:
        """Whether it changes nothing but limits, which a resumed run may change as well."""
        limits = all(path.split(".")[0] == LIMITS for path in self.changes)
        return limits and not any((*self._parts(), self.models))

    @property
    def options(self) -> Narrowing:
        """It as it was asked for, without what became known when the suite was read."""
        return replace(self, of_tasks=None, of_runs=None)

    def is_repeated_by(self, asked: Narrowing) -> bool:
        """Whether a person asked for the same, or at least for all that it alters."""
        return asked in (self.options, self.alterations)

    def with_limits(self, other: Narrowing) -> Narrowing:
        """Return it with the limits that another one sets."""
        return replace(self, changes={**self.changes, **other.changes})

    def edited(self, root: Node, tell: Callable[[str], None]) -> Node:
        """Return the tree of a suite with other models and settings; `tell` receives mistakes."""
        from pennyweight.suite import edits  # noqa: PLC0415 - it loads YAML; settings need none

        if self.models and root.is_mapping:
            root = edits.with_models(root, self.models)
        for path, value in self.changes.items():
            try:
                change = edits.everywhere if edits.is_model_setting(path) else edits.put
                root = change(root, path, value)
            except UsageError as error:
                tell(f"{path}: {error}")
        return root

    def selected(self, suite: LoadedSuite, of_runs: int = 1) -> LoadedSuite:
        """Return the suite with the subjects, tiers and tasks that are asked for."""
        tasks = self._tasks(suite)
        chosen = replace(
            suite,
            tasks=tasks,
            subjects=_picked("Subject", self.subjects, suite.subjects, suite.path),
            tiers=_picked("Tier", self.tiers, suite.tiers, suite.path),
        )
        noted = replace(self, of_tasks=len(suite.tasks), of_runs=of_runs)
        return replace(chosen, narrowing=noted)

    def _tasks(self, suite: LoadedSuite) -> tuple[Task, ...]:
        tasks = suite.tasks
        if self.tasks:
            known = {task.id for task in tasks}
            some = ", ".join(sorted(known)[:_LISTED]) + (", …" if len(known) > _LISTED else "")
            wanted = _matching("Task", self.tasks, known, f"The suite has: {some}.")
            tasks = tuple(task for task in tasks if task.id in wanted)
        if self.sample is not None:
            drawn = nsmallest(self.sample, (task.id for task in tasks), key=self._draw)
            tasks = tuple(task for task in tasks if task.id in set(drawn))
        return tasks[: self.limit]

    def _draw(self, task: str) -> bytes:
        """Return a random number that depends only on seed and task, so tasks can be added."""
        text = f"{self.seed or 0}\0{task}".encode(errors="surrogatepass")
        return hashlib.blake2b(text, digest_size=16).digest()


_LISTED = 5
_LISTS = ("tasks", "subjects", "tiers", "models")


def _names(kind: str, given: Any) -> tuple[str, ...]:
    alone = isinstance(given, str) or callable(given)
    name = model_name if kind == "models" else str
    return tuple(dict.fromkeys(name(one) for one in ([given] if alone else given)))


def _picked(kind: str, wanted: Sequence[str], given: Sequence[Any], path: str) -> tuple[Any, ...]:
    if not wanted:
        return tuple(given)
    known = [one.name for one in given]
    names = _matching(kind, wanted, known, f"{path} has: {', '.join(known)}.")
    return tuple(one for one in given if one.name in names)


def _matching(
    kind: str, wanted: Sequence[str], known: Collection[str], where: str
) -> frozenset[str]:
    """Return the names that are meant; a name or pattern that none fits is refused."""
    found: set[str] = set()
    for name in wanted:
        if name in known:
            found.add(name)
            continue
        fits = {one for one in known if fnmatchcase(one, name)} if _GLOB & set(name) else set()
        if not fits:
            raise UsageError(unknown(kind, name, known, where))
        found |= fits
    return frozenset(found)


def part_words(settings: Mapping[str, Any]) -> str:
    """Describe, from the settings of a run, what part of its suite it has; "" for all of it.

    >>> part_words({"tasks": 3, "narrowing": {"limit": 3, "of_tasks": 200}})
    'the first 3 of 200 tasks'
    """
    one = Narrowing.stored(settings)
    fewer = _fewer(one, settings.get("tasks", 0), settings.get("runs", 1))
    return ", ".join((*fewer, *_only(one), *_unconverted(settings.get("partial", ()))))


def fewer_words(settings: Mapping[str, Any]) -> str:
    """Describe what keeps a run from being whole: fewer tasks or attempts than its suite has."""
    one = Narrowing.stored(settings)
    return ", ".join(_fewer(one, settings.get("tasks", 0), settings.get("runs", 1)))


def change_words(settings: Mapping[str, Any]) -> str:
    """Describe, from the settings of a run, what it changed in its suite; "" for nothing."""
    one = Narrowing.stored(settings)
    model = [f"{'models' if len(one.models) > 1 else 'model'} {_listed(one.models)}"]
    return ", ".join((*(model if one.models else ()), *_changes(one)))


def _fewer(one: Narrowing, tasks: int, runs: int) -> Iterator[str]:
    if one.replaces_tasks:
        yield "other tasks than its suite's file"
    if one.of_tasks is not None and tasks < one.of_tasks:
        share = f"{tasks:,} of {plural(one.of_tasks, 'task')}"
        if one.sample:
            yield f"{share} drawn at random (seed {one.seed or 0})"
        elif one.tasks:
            yield f"{share} ({_listed(one.tasks)})"
        else:
            yield f"the first {share}"
    if one.of_runs is not None and runs < one.of_runs:
        yield f"{runs:,} of {plural(one.of_runs, 'attempt')} at each task"


def _unconverted(missing: Sequence[str]) -> Iterator[str]:
    if missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        yield f"only a part of the suite it was made from (missing: {missing[0]}{more})"


def _only(one: Narrowing) -> Iterator[str]:
    for word, names in (("subject", one.subjects), ("tier", one.tiers)):
        if names:
            yield f"only {word}{'s' if len(names) > 1 else ''} {_listed(names)}"


def option_words(narrowing: Narrowing) -> list[str]:
    """Write the options of `pennyweight run` that ask for it.

    >>> option_words(Narrowing(limit=3, models=("a/b",), changes={"temperature": 0}))
    ['--limit', '3', '-m', 'a/b', '--set', 'temperature=0']
    """
    flags = {"tasks": "--task", "subjects": "--subject", "tiers": "--tier", "models": "-m"}
    words: list[str] = []
    for name in ("limit", "sample", "seed"):
        value = getattr(narrowing, name)
        words += [] if value is None else [f"--{name}", str(value)]
    for name, flag in flags.items():
        words += [word for one in getattr(narrowing, name) for word in (flag, one)]
    return words + [w for change in _changes(narrowing) for w in ("--set", change)]


def _changes(narrowing: Narrowing) -> Iterator[str]:
    for path, value in narrowing.changes.items():
        yield f"{path}={value if isinstance(value, str) else json.dumps(value, default=str)}"


def _listed(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
