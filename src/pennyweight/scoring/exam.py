"""Whether sides took the same exam: which of their tasks changed, and whether grading did.

This is the one place that decides which records may stand beside each other. A task is the same if
no part of it that two sides know has changed (`text/exam.py`). Of plain tables, the input may be
the prompt: if nearly all inputs differ and the targets are equal, the sides are several prompts
over the same tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import polars as pl

from pennyweight.errors import UsageError
from pennyweight.scoring.sides import SIDE
from pennyweight.sources.source import Rerun
from pennyweight.text.exam import VERSION, WORDS, changed_parts, parts_in_order
from pennyweight.text.format import count, plural
from pennyweight.text.natural_order import natural

TASK, GRADING = "task_digest", "grading_digest"
EXAM = (TASK, GRADING)
"""The columns that tell exams apart."""
REGRADED = {"answer_rule": "answer", "match_rule": "match", "confidence_from": "confidence"}
"""The options that take the place of a part of grading."""
NEARLY_ALL = 0.9
"""The share of tasks whose inputs must differ, with equal targets, in another prompt."""
PROMPT_FROM = 3
"""The fewest tasks that can show another prompt."""
NAMED = 3
"""The changed tasks that a sentence names."""
LISTED = 1000
"""The changed tasks that are listed for programs."""
_PROMPT = frozenset({"input", "context"})
"""The parts that a prompt may change: the question in its words, and what was retrieved for it."""
_ASKED = rf"(?:^| )(?:{'|'.join(sorted(_PROMPT))})=\S+"
_TARGET = r"(?:^| )target=(\S+)"
_SIDE = pl.col(SIDE).cast(pl.String)

Rows = Callable[[Sequence[pl.Expr], "pl.Expr | None"], Iterable[pl.DataFrame]]
"""Yields expressions of records, some at a time; of those that an expression selects, if any."""


@dataclass(frozen=True, slots=True)
class ChangedTask:
    """A task that is not the same on all sides, and the parts that differ."""

    task: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExamMatch:
    """How far sides took the same exam."""

    sides: tuple[str, ...]
    tasks: int = 0
    """The tasks that several sides tried, by their names; counted where some changed."""
    changed: int = 0
    """How many of these are not the same on all sides, and so are left out."""
    parts: tuple[tuple[str, int], ...] = ()
    """In how many of them each part differs."""
    examples: tuple[ChangedTask, ...] = ()
    """The first of them."""
    prompts: int = 0
    """On how many tasks only the inputs differ, if the sides have different prompts."""
    known: tuple[str, ...] = ()
    """What each side says of its tasks: `whole`, `parts` or `unknown`."""
    regraded: tuple[str, ...] = ()
    """The parts of grading in which sides differ."""
    apart: tuple[str, str] = ("", "")
    """Two sides that are graded differently, if any are."""
    reruns: tuple[str, ...] = ()
    """The commands that try the changed tasks again."""
    left: pl.Series = field(
        default_factory=lambda: pl.Series(dtype=pl.String), repr=False, compare=False
    )
    """The changed tasks."""

    @classmethod
    def of(
        cls,
        rows: Rows,
        titles: Mapping[str, str] | None = None,
        reruns: Mapping[str, Rerun] | None = None,
        regraded: Collection[str] = (),
    ) -> ExamMatch:
        """Compare the digests of records; `rows` gives their columns and their side.

        `titles` are the names that sides have in sentences. `reruns` says how the tasks of runs are
        tried again, and `regraded` names parts of grading that are decided anew for all sides.
        """
        known, gradings, several = _digests(rows)
        names = titles or {}
        parts, apart = _regraded(gradings, regraded)
        found = cls(
            sides=tuple(names.get(side, side) for side in known),
            known=tuple(known.values()),
            regraded=parts,
            apart=(names.get(apart[0], apart[0]), names.get(apart[1], apart[1])),
        )
        return found if several.is_empty() else _with_changes(found, rows, several, reruns or {})

    def stays(self) -> pl.Expr:
        """Return whether a record is of a task that is the same on all sides."""
        return ~pl.col("task_id").is_in(self.left.implode()).fill_null(value=False)

    def refuse_regraded(self) -> None:
        """Raise UsageError if sides are graded differently."""
        if self.regraded:
            raise UsageError(f"{self.regrading} {how_to_regrade(self.regraded)}")

    @property
    def regrading(self) -> str:
        """Say in what the grading of two sides differs."""
        what = ", ".join(map(part_words, self.regraded))
        return f"{self.apart[0]} and {self.apart[1]} are graded differently: {what}."

    @property
    def changes(self) -> str:
        """Say which tasks are not the same on all sides."""
        which = f"{count(self.changed)} of {plural(self.tasks, 'task')}"
        if self.changed == self.tasks:
            which = f"all {plural(self.tasks, 'task')}"
        differ, are = ("differs", "is") if self.changed == 1 else ("differ", "are")
        left = "" if self.changed == self.tasks else f" and {are} left out"
        return f"{which} {differ} between {_listed(self.sides)}{left}: {self.named}."

    def sentences(self) -> list[str]:
        """Say which tasks are left out, and what is not known."""
        if not self.changed:
            return self.remarks()
        return [f"{self.changes[0].upper()}{self.changes[1:]} {self.again}", *self.remarks()]

    @property
    def nothing_left(self) -> str:
        """Say that some side has no task in common with the others."""
        return f"Nothing is left to compare: {self.changes} {self.again}"

    def remarks(self) -> list[str]:
        """Say what people should know of tasks that count as the same."""
        lines = []
        if self.prompts:
            which = f"all {plural(self.tasks, 'task')}"
            if self.prompts < self.tasks:
                which = f"{count(self.prompts)} of {plural(self.tasks, 'task')}"
            lines.append(
                f"The inputs of {which} differ and their targets are equal: {_listed(self.sides)} "
                "count as different prompts over the same tasks."
            )
        if "whole" in self.known and set(self.known) != {"whole"}:
            less = [s for s, known in zip(self.sides, self.known, strict=True) if known != "whole"]
            say = "says" if len(less) == 1 else "say"
            lines.append(
                f"{_listed(less)} {say} only in part what was asked and how it is decided; "
                "a change of the rest goes unnoticed."
            )
        return lines

    @property
    def named(self) -> str:
        """The first changed tasks, with the parts that differ."""
        shown = [
            f"{one.task} ({', '.join(map(part_words, one.parts))})" if one.parts else one.task
            for one in self.examples[:NAMED]
        ]
        more = self.changed - len(shown)
        return ", ".join(shown) + (f" and {count(more)} more" if more > 0 else "")

    @property
    def again(self) -> str:
        """How the changed tasks are tried again."""
        if self.reruns:
            return f"To try them again: {'; '.join(self.reruns)}"
        return "Compare them once all sides have tried the same ones."

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "tasks": self.tasks if self.changed or self.prompts else None,
            "changed": self.changed,
            "parts": dict(self.parts),
            "examples": [{"task": one.task, "parts": list(one.parts)} for one in self.examples],
            "prompts": self.prompts,
            "known": dict(zip(self.sides, self.known, strict=True)),
            "reruns": list(self.reruns),
        }


def rows_of(frame: pl.DataFrame) -> Rows:
    """Return what yields expressions of records that are in memory."""

    def rows(what: Sequence[pl.Expr], keep: pl.Expr | None) -> Iterable[pl.DataFrame]:
        yield (frame if keep is None else frame.filter(keep)).select(what)

    return rows


def part_words(part: str) -> str:
    """Name a part of an exam as sentences do.

    >>> part_words("target"), part_words("column:code")
    ('the target', 'the column code')
    """
    kind, _, name = part.rpartition(":")
    return f"the {kind} {name}" if kind else WORDS.get(part, part)


_JUDGE = "'pennyweight judge RUN --model MODEL --rubric FILE' has the same judges decide on both."
_REGRADE = {
    "answer": "--answer RULE finds the answers of both by one rule.",
    "match": "--match RULE matches the answers of both by one rule.",
    "confidence": "Set 'confidence:' alike in both suites and resume the run.",
    "scorers": "'pennyweight run --resume RUN' has the scorers of today score both.",
}


def how_to_regrade(parts: Iterable[str]) -> str:
    """Say how to grade all sides alike."""
    return " ".join(dict.fromkeys(_REGRADE.get(part, _JUDGE) for part in parts))


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def _digests(rows: Rows) -> tuple[dict[str, str], dict[str, set[str]], pl.Series]:
    """Return what sides know of their tasks, how they grade, and tasks with several digests."""
    whole = pl.col(TASK).str.starts_with(f"{VERSION} ").fill_null(value=False)
    hashed = [pl.col(name).hash().alias(name) for name in ("task_id", TASK)]
    sides, pairs = [], []
    for part in rows([_SIDE, pl.col("task_id"), *map(pl.col, EXAM)], None):
        sides.append(
            part.group_by(SIDE, maintain_order=True).agg(
                whole=whole.all(),
                some=pl.col(TASK).is_not_null().any(),
                gradings=pl.col(GRADING).drop_nulls().unique(),
            )
        )
        pairs.append(part.drop_nulls(["task_id", TASK]).select(hashed).unique())
    known: dict[str, str] = {}
    gradings: dict[str, set[str]] = {}
    for side, all_of_it, some, digests in pl.concat(sides).iter_rows():
        gradings.setdefault(side, set()).update(digests)
        says = "whole" if all_of_it else "parts" if some else "unknown"
        known[side] = says if known.get(side, says) == says else "parts"
    unique = pl.concat(pairs).unique()
    several = unique.group_by("task_id").len().filter(pl.col("len") > 1)["task_id"]
    return known, gradings, several


def _regraded(
    gradings: Mapping[str, set[str]], ignored: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, str]]:
    """Return the parts in which the gradings of two sides differ, and the sides."""
    for a, b in combinations(gradings, 2):
        each = (changed_parts(x, y, ignored) for x in gradings[a] for y in gradings[b])
        if parts := parts_in_order(part for one in each for part in one):
            return parts, (a, b)
    return (), ("", "")


def _with_changes(
    match: ExamMatch, rows: Rows, several: pl.Series, reruns: Mapping[str, Rerun]
) -> ExamMatch:
    """Find which of the tasks with several digests changed."""
    chosen = pl.col("task_id").is_not_null() & pl.col("task_id").hash().is_in(several.implode())
    columns = [_SIDE, pl.col("task_id"), pl.col(TASK), pl.col("run").cast(pl.String)]
    read = pl.concat([part.unique() for part in rows(columns, chosen)])
    items = read.drop("run").unique(maintain_order=True).drop_nulls(TASK)
    tried = pl.concat(
        [part.unique() for part in rows([_SIDE, pl.col("task_id").hash().alias("task")], None)]
    ).unique()
    groups = _prompt_groups(items, tried)
    changed = _changed_tasks(items, groups)
    shared = tried.drop_nulls("task").group_by("task").len().filter(pl.col("len") > 1).height
    left = pl.Series([one.task for one in changed], dtype=pl.String)
    parts = Counter(part for one in changed for part in one.parts)
    prompts = 0
    if len(set(groups.values())) > 1:
        inputs = _asked(pl.col(TASK)).drop_nulls().n_unique()
        same = items.filter(~pl.col("task_id").is_in(left.implode())).group_by("task_id")
        prompts = same.agg(inputs).filter(pl.col(TASK) > 1).height
    return ExamMatch(
        sides=match.sides,
        tasks=max(shared, len(changed)),
        changed=len(changed),
        parts=tuple((part, parts[part]) for part in parts_in_order(parts)),
        examples=tuple(sorted(changed, key=lambda one: natural(one.task))[:LISTED]),
        prompts=prompts,
        known=match.known,
        regraded=match.regraded,
        apart=match.apart,
        reruns=_reruns(read.filter(pl.col("task_id").is_in(left.implode())), reruns),
        left=left,
    )


def _reruns(read: pl.DataFrame, reruns: Mapping[str, Rerun]) -> tuple[str, ...]:
    """Return the commands that try changed tasks again, in those runs that have such tasks."""
    runs = [reruns[run] for run in read["run"].drop_nulls().unique() if run in reruns]
    return tuple(one.command for one in sorted(runs))


def _prompt_groups(items: pl.DataFrame, tried: pl.DataFrame) -> dict[str, int]:
    """Number the prompts of sides; sides whose digests name all parts have only their tasks."""
    plain = ~pl.col(TASK).str.starts_with(f"{VERSION} ")
    if not items.select(plain.any()).item():
        return {}
    tasks = {s: part["task"] for (s,), part in tried.partition_by(SIDE, as_dict=True).items()}
    table = items.select(
        *(SIDE, "task_id"),
        _asked(pl.col(TASK)).alias("input"),
        pl.col(TASK).str.extract(_TARGET).alias("target"),
        plain.alias("plain"),
    ).unique([SIDE, "task_id"], keep="first", maintain_order=True)
    own = {s: part.drop(SIDE) for (s,), part in table.partition_by(SIDE, as_dict=True).items()}
    groups: dict[str, int] = {}
    first: list[str] = []
    for name, table in own.items():
        for number, other in enumerate(first):
            shared = int(tasks[name].is_in(tasks[other].implode()).sum())
            if not _is_other_prompt(table, own[other], shared):
                groups[name] = number
                break
        else:
            groups[name] = len(first)
            first.append(name)
    return groups


def _asked(digest: pl.Expr) -> pl.Expr:
    """Return what a prompt may change of a digest; null if it says nothing of it."""
    found = digest.str.extract_all(_ASKED)
    return pl.when(found.list.len() > 0).then(found.list.join(""))


def _is_other_prompt(a: pl.DataFrame, b: pl.DataFrame, shared: int) -> bool:
    """Whether nearly all inputs of two sides differ, with equal targets."""
    both = a.join(b, on="task_id", suffix=" b").filter(pl.col("plain") | pl.col("plain b"))
    differ = both.filter(pl.col("input") != pl.col("input b"))
    alike = differ.filter(pl.col("target") == pl.col("target b")).height
    enough = differ.height >= max(PROMPT_FROM, NEARLY_ALL * shared)
    return enough and alike >= NEARLY_ALL * differ.height


def _changed_tasks(items: pl.DataFrame, groups: Mapping[str, int]) -> list[ChangedTask]:
    """Return the tasks of which two digests differ in a part; prompts may have any input."""
    group = pl.col(SIDE).replace_strict(groups, default=0, return_dtype=pl.UInt32).alias("group")
    bare = pl.col(TASK).str.replace_all(_ASKED, "").alias("bare")
    table = items.with_columns(group, bare).drop(SIDE).unique()
    once = pl.len().over("task_id", "group") == 1  # most tasks, at once: only their prompts differ
    only_prompts = (once.all() & (pl.col("bare").n_unique() == 1)).over("task_id")
    open_ = table.filter(~only_prompts).sort("task_id", "group", TASK)
    by_task: dict[str, dict[str, set[int]]] = {}
    for task, digest, number in open_.select("task_id", TASK, "group").iter_rows():
        by_task.setdefault(task, {}).setdefault(digest, set()).add(number)
    found = []
    for task, digests in by_task.items():
        parts = {
            part
            for (a, of_a), (b, of_b) in combinations(digests.items(), 2)
            for part in changed_parts(a, b, () if of_a & of_b else _PROMPT)
        }
        if parts:
            found.append(ChangedTask(task, parts_in_order(parts)))
    return found
