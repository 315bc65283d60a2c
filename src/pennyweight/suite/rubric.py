"""The judges of a suite, and their rubric: items, weights, and the score needed to pass."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pennyweight.errors import InputError
from pennyweight.schema.audit import note_file
from pennyweight.schema.documents import read_document
from pennyweight.schema.kinds import AnyOf, Anything, ListOf, MapOf, Number, OneOf, Text
from pennyweight.schema.problems import Problems
from pennyweight.schema.structs import Field, Struct
from pennyweight.schema.tree import Node
from pennyweight.suite.values import Judging, Task

if TYPE_CHECKING:
    from pennyweight.scorers.declaration import Scorer
    from pennyweight.suite.loader import SuiteReader

PASS_MARK = 0.65
"""The grade that the specification calls marginal; anything below it fails."""
MAX_ID_LENGTH = 60


@dataclass(frozen=True, slots=True)
class Item:
    """One criterion, worth some points."""

    id: str
    text: str
    points: float = 1.0
    na_when: str | None = None
    """When it does not apply; it always applies if missing."""


@dataclass(frozen=True, slots=True)
class ScaleItem(Item):
    """An item that can only have certain scores."""

    scores: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Category:
    """Items that belong together, and their weight."""

    name: str
    weight: float
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Rubric:
    """The criteria of a judge."""

    name: str
    categories: tuple[Category, ...]
    pass_mark: float = PASS_MARK
    instructions: str | None = None

    @property
    def items(self) -> tuple[Item, ...]:
        """All items in order."""
        return tuple(item for category in self.categories for item in category.items)

    @property
    def is_question(self) -> bool:
        """Whether it only gives scores on scales: nothing passes or fails by it."""
        return all(isinstance(item, ScaleItem) for item in self.items)

    @cached_property
    def mark(self) -> str:
        """A short hash of the rubric; judgments by another rubric do not count."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=6).hexdigest()


_NAME = Text("a name", one_line=True)

ITEM = Struct(
    "an item",
    (
        Field("text", Text(), "The criterion.", required=True),
        Field("id", _NAME, "Its id; the numbered name of the category if missing."),
        Field("points", Number(0, above=True), "The maximum number of points.", default=1),
        Field("na_when", Text(), "When it does not apply (N/A); it always applies if missing."),
    ),
    {
        **dict.fromkeys(("criterion", "description", "question"), "text"),
        **dict.fromkeys(("max", "max_points", "weight"), "points"),
        "name": "id",
        "na": "na_when",
    },
)

CATEGORY = Struct(
    "a category",
    (
        Field("weight", Number(0, above=True), "The weight of the category.", default=1),
        Field(
            "items",
            ListOf(AnyOf((ITEM, Text())), "a list of items", lone=True, some=True),
            "The criteria: texts worth one point each, or mappings.",
            required=True,
        ),
    ),
    {"criteria": "items", "checks": "items", "item": "items", "points": "weight"},
)

RUBRIC = Struct(
    "a rubric",
    (
        Field("categories", MapOf(CATEGORY), "Categories by name.", required=True),
        Field("rubric", _NAME, "The rubric's name."),
        Field(
            "pass_mark", Number(0, 1), "The lowest weighted score that passes.", default=PASS_MARK
        ),
        Field("instructions", Text(), "Further instructions for the judge."),
    ),
    {
        **dict.fromkeys(("pass_score", "pass_threshold", "threshold"), "pass_mark"),
        "name": "rubric",
        "criteria": "categories",
    },
)


REQUIREMENT = Struct(
    "a requirement",
    (
        Field("id", _NAME, "Its id, such as R001.", required=True),
        Field("description", Text(), "The criterion."),
        Field("check", Text(), "The criterion, or how to check it if there is a description."),
        Field("weight", Number(0, above=True), "Its weight.", default=1),
        Field(
            "scoring_type",
            OneOf(("binary", "graded", "scaled")),
            "Whether it is met or not (binary), or met in part.",
        ),
        Field("na_condition", Text(), "When it does not apply; it always applies if missing."),
    ),
    {"text": "description", "points": "weight", "na_when": "na_condition", "max_points": "weight"},
    either=("description", "check"),
)

PROTOCOL = Struct(
    "a rubric",
    (
        Field("requirements", ListOf(REQUIREMENT, some=True), "The requirements.", required=True),
        Field("pass_threshold", Number(0, 1), "The lowest weighted score that passes."),
        Field(
            "grading", MapOf(Anything()), "`pass_threshold`; a scale of grades in it is not used."
        ),
        Field("rubric", _NAME, "The rubric's name."),
        Field("name", _NAME, "The rubric's name."),
        Field("instructions", Text(), "Further instructions for the judge."),
    ),
)
"""A rubric as the judge protocol of ProjectScylla writes it: weighted requirements."""


def _of_protocol(node: Node, problems: Problems, name: str) -> Rubric | None:
    before = len(problems.found)
    given = PROTOCOL.read(node, "", problems)
    grading = given.get("grading") or {}
    mark = given.get("pass_threshold", grading.get("pass_threshold", PASS_MARK))
    if isinstance(mark, bool) or not isinstance(mark, int | float) or not 0 <= mark <= 1:
        problems.add(node.line_at("grading"), "pass_threshold must be a number from 0 to 1.")
    if len(problems.found) > before:
        return None
    categories = tuple(
        Category(one["id"], float(one.get("weight", 1.0)), (_required(one),))
        for one in given["requirements"]
    )
    _check_ids(categories, node, problems)
    if len(problems.found) > before:
        return None
    title = given.get("rubric", given.get("name", name))
    return Rubric(title, categories, float(mark), given.get("instructions"))


def _required(one: Mapping[str, Any]) -> Item:
    texts = [one[key].strip() for key in ("description", "check") if key in one]
    if one.get("scoring_type") == "binary":
        texts.append("It is met or not: nothing in between.")
    return Item(one["id"], " ".join(texts), 1.0, one.get("na_condition"))


def load_rubric(path: str | Path) -> Rubric:
    """Load a rubric from a file; raise DocumentError with every problem in it."""
    document = read_document(path)
    rubric = read_rubric(document.root, document.problems, Path(path).stem)
    document.problems.stop()
    assert rubric is not None
    return rubric


def read_rubric(node: Node, problems: Problems, name: str) -> Rubric | None:
    """Read a rubric; report its problems and return None if there are any."""
    if node.is_mapping and "requirements" in node.value:
        return _of_protocol(node, problems, name)
    before = len(problems.found)
    given = RUBRIC.read(node, "", problems)
    if not isinstance(given, dict):
        return None
    categories = tuple(
        Category(title, float(one.get("weight", 1.0)), _items(title, one["items"]))
        for title, one in given.get("categories", {}).items()
        if "items" in one
    )
    if not categories and len(problems.found) == before:
        problems.add(node.line_at("categories"), "a rubric needs at least one category.")
    _check_ids(categories, node, problems)
    if len(problems.found) > before:
        return None
    mark, said = given.get("pass_mark", PASS_MARK), given.get("instructions")
    return Rubric(given.get("rubric", name), categories, mark, said)


def _items(category: str, given: list[Any]) -> tuple[Item, ...]:
    items = []
    for number, one in enumerate(given, 1):
        table: Mapping[str, Any] = {"text": one} if isinstance(one, str) else one
        own = category if len(given) == 1 else f"{category}_{number}"
        text, points = table.get("text", "").strip(), float(table.get("points", 1.0))
        items.append(Item(table.get("id", own), text, points, table.get("na_when")))
    return tuple(items)


def _check_ids(categories: tuple[Category, ...], node: Node, problems: Problems) -> None:
    seen: dict[str, str] = {}
    for category in categories:
        for index, item in enumerate(category.items):
            line = node.line_at("categories", category.name, "items", index)
            if item.id in seen:
                what = f"the item {item.id!r} is already in {seen[item.id]!r}; change its 'id'."
                problems.add(line, what)
            elif len(item.id) > MAX_ID_LENGTH:
                problems.add(line, f"an id has at most {MAX_ID_LENGTH} characters.")
            seen.setdefault(item.id, category.name)


def _one(name: str, weight: float, text: str, na_when: str | None = None) -> Category:
    return Category(name, weight, (Item(name, text, 1.0, na_when),))


DEFAULT = Rubric(
    "default",
    (
        _one(
            "functional_correctness",
            2.0,
            "It does what the task asks, and what it says or computes is right.",
        ),
        _one("completeness", 1.5, "Every part of the task is dealt with; nothing is left open."),
        _one(
            "code_quality",
            1.0,
            "It is written with care: sound structure, right error handling, good style.",
            "the work contains no code",
        ),
        _one("simplicity", 1.0, "It is no more complicated than the task needs."),
        _one("lack_of_duplication", 0.5, "Nothing is said or done twice."),
        _one("clarity", 1.0, "A reader follows it at once: good names, order and wording."),
        _one(
            "documentation",
            0.5,
            "What a user or a later reader must know is written down, and true.",
            "the task calls for nothing that would need documentation",
        ),
        _one(
            "architectural_cleanliness",
            0.5,
            "Parts have one purpose each and depend on each other in one direction.",
            "the work is too small to have parts",
        ),
        _one("efficiency", 0.5, "It wastes no time, memory or words."),
        _one(
            "cleanup",
            1.0,
            "Nothing is left lying about: no debug output, dead code or stray files.",
            "the work leaves nothing behind beyond its answer",
        ),
    ),
)
"""The ten categories of the specification, for code and for prose."""


def read_judging(given: Mapping[str, Any], reader: SuiteReader) -> Judging | None:
    """Read the key `judge`; None if it is missing or has problems."""
    one = given.get("judge")
    if one is None:
        return None
    table: dict[str, Any] = {"models": [one]} if isinstance(one, str) else one
    root, problems = reader.root, reader.problems
    line = root.line_at("judge")
    keys = [key for key in ("models", "model") if key in table]
    if len(keys) != 1:
        if keys or not (root.get("judge", "models") or root.get("judge", "model")):
            problems.add(line, "judge needs 'models' (or 'model', for one).")
        return None
    models = table["models"] if keys == ["models"] else [table["model"]]
    judges = reader.subjects(models, "judge", keys[0])
    more = reader.subjects(table.get("more", []), "judge", "more")
    for judge in (*judges, *more):
        if judge.agent:
            problems.add(line, f"the judge {judge.name!r} is a command; a judge must be a model.")
    for twice in {s.name for s in judges} & {s.name for s in more}:
        problems.add(line, f"the judge {twice!r} is in 'models' and in 'more'.")
    rubric = _rubric(table.get("rubric"), reader)
    if rubric is None:
        return None
    if "pass_mark" in table:
        rubric = replace(rubric, pass_mark=table["pass_mark"])
    rules = {k: table[k] for k in ("consensus", "disagreement") if k in table}
    scores = table.get("rubric") is not None or "pass_mark" in table
    return Judging(judges, rubric, more, **rules, scores=scores)


def for_tasks(judging: Judging, tasks: Iterable[Task], scorers: Iterable[Scorer] = ()) -> Judging:
    """Decide whether attempts are scored by a rubric.

    Without a rubric, a judge of a suite with sentences or questions of scorers is asked only these.
    """
    names = {b.check.name for t in tasks if t.scenario for _, b in t.scenario.leaves()}
    asked = "judge" in names or any(scorer.question for scorer in scorers)
    scores = judging.scores or "judge_score" in names or not asked
    return replace(judging, scores=scores)


def _rubric(given: Any, reader: SuiteReader) -> Rubric | None:
    if given is None or given == DEFAULT.name:
        return DEFAULT
    if isinstance(given, Node):
        return read_rubric(given, reader.problems, "inline")
    try:
        if not note_file(f"read {reader.folder / given}", reader.folder / given):
            return DEFAULT
        document = read_document(reader.folder / given, problems=reader.problems)
        return read_rubric(document.root, document.problems, Path(given).stem)
    except InputError as error:
        line = reader.root.line_at("judge", "rubric")
        reader.problems.add(line, f"rubric: {'; '.join(error.problems)}")
        return None
