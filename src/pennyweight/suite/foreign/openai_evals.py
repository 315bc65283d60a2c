"""OpenAI Evals: samples with ideal answers, and the registry that says how they are graded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pennyweight.errors import InputError
from pennyweight.schema.tree import Node, plain
from pennyweight.suite.foreign.data_rows import (
    Row,
    columns,
    first_row,
    json_lines,
    messages,
    placed_rows,
)
from pennyweight.suite.foreign.suite_format import (
    DEFAULT_JUDGE,
    ConvertedSuite,
    ForeignSuite,
    Place,
    SuiteFormat,
)
from pennyweight.suite.foreign.suite_text import suite_text

Behaviours = list[dict[str, Any]]
_ARGS = {"samples_jsonl", "eval_type", "modelgraded_spec", "ignore_case"}


def _recognise(root: Node | None, text: str, path: Path) -> bool:
    if root is not None and root.is_mapping:
        return any(
            below.is_mapping and below.get("class") is not None and below.get("args") is not None
            for _, below in root.items()
        )
    return {"input", "ideal"} <= first_row(text, path).keys()


def _ideals(row: Row) -> list[str]:
    given = row.get("ideal")
    several = given if isinstance(given, list) else [given]
    return [str(one) for one in several if one is not None and str(one) != ""]


def _match(row: Row, _: Mapping[str, Any]) -> Behaviours:
    return [{"starts_with": {"any": _ideals(row), "exact": True}}]


def _includes(row: Row, args: Mapping[str, Any]) -> Behaviours:
    case = {} if args.get("ignore_case") else {"case": True}
    return [{"contains": {"any": _ideals(row), **case}}]


def _criterion(row: Row, _: Mapping[str, Any]) -> Behaviours:
    return [{"judge": f"It meets this criterion: {row.get('criteria')}"}]


_CLASSES: dict[str, Callable[[Row, Mapping[str, Any]], Behaviours]] = {
    "Match": _match,
    "Includes": _includes,
    "closedqa": _criterion,
}
"""How replies are graded, by the class of an eval, or by the prompt of its grader."""
_LOST = {
    "FuzzyMatch": "a reply that is a part of the ideal answer counts there, and there is no such "
    "check",
    "fact": "its grader gives letters from A to E, and a judge here answers yes or no",
}
_GRADED = "Model-graded evals are sentences for our judge, who answers yes, no or cannot say."
_UNSAID = (
    "they do not say how replies are graded; --from {0}#Match says that a reply begins with an "
    "ideal answer, --from {0}#Includes that it has one in it"
)


def _convert(source: ForeignSuite) -> ConvertedSuite:
    if source.path.suffix.lower() in {".jsonl", ".json", ".csv"}:
        return _suite(source, source.path.stem, _kind_of_samples(source), {}, source.path)
    root = source.document().root
    if source.folder.resolve().name == "evals" and (source.folder / "../data").is_dir():
        source.home = source.path.resolve().parent.parent
        source.path = source.path.resolve()
    name, node = _chosen(source, root)
    place = source.place.at(root.key_line(name))
    kind = str(plain(node.get("class") or Node(""))).rpartition(":")[2]
    args: Any = plain(node.get("args") or Node({}))
    spec = args.get("modelgraded_spec") if isinstance(args, dict) else None
    kind = str(spec) if kind == "ModelBasedClassify" else kind
    if kind not in {*_CLASSES, *_LOST} or not isinstance(args, dict):
        known = ", ".join((*_CLASSES, *_LOST))
        what = f"the grader's prompt {kind}" if spec else f"the class {kind} is code, and it"
        raise InputError([f"{place}: {what} is not carried over."], hint=f"There are: {known}.")
    if kind in _LOST:
        source.miss(place, kind, _LOST[kind])
    for key in args.keys() - _ARGS:
        at = node.get("args")
        line = at.key_line(key) if at else 0
        source.miss(place.at(line), f"args: {key}", "it has no counterpart")
    path = _samples(source, str(args.get("samples_jsonl", "")), place)
    return _suite(source, name.split(".")[0], kind, args, path)


def _kind_of_samples(source: ForeignSuite) -> str | None:
    """Return the class by which samples are graded that no registry names."""
    known = ("Match", "Includes")
    part = source.options.part
    if part is None:
        source.miss(source.place, "samples", _UNSAID.format(source.path.name))
    elif part not in known:
        hint = f"There are: {', '.join(known)}."
        raise InputError([f"{source.path}: no class {part!r} is carried over."], hint=hint)
    return part


def _chosen(source: ForeignSuite, root: Node) -> tuple[str, Node]:
    """Return the eval to convert: the only one, or the one that is named."""
    found = {name: one for name, one in root.items() if one.is_mapping and one.get("class")}
    part = source.options.part
    if part:
        alias = root.get(part, "id")
        wanted = str(alias.value) if alias is not None else part
        named = [n for n in found if n in {part, wanted}]
        found = {n: found[n] for n in named}
    if len(found) == 1:
        return next(iter(found.items()))
    names = [n for n, one in root.items() if one.is_mapping and one.get("id")] or list(root.value)
    raise InputError(
        [f"{source.path}: {'no eval is called ' + repr(part) if part else 'several evals'}."],
        hint=f"Name one of them: --from {source.path}#{names[0]}. There are: {', '.join(names)}.",
    )


def _samples(source: ForeignSuite, name: str, place: Place) -> Path:
    """Find the samples: in the data folder of the registry, or next to the file."""
    below = name.rpartition("data/")[2]
    for one in (f"data/{name}", name, f"data/{below}"):
        path = (source.folder / one).resolve()
        if path.is_relative_to(source.folder.resolve()) and path.is_file():
            return path
    raise InputError([f"{place}: samples_jsonl: there is no file {name!r} in {source.folder}."])


def _suite(
    source: ForeignSuite, name: str, kind: str | None, args: Mapping[str, Any], path: Path
) -> ConvertedSuite:
    tasks: list[Row] = []
    for place, row in placed_rows(source, path):
        asked = messages(source, place, row.get("input"))
        if asked is None:
            source.miss(place, "a sample", "it has no input")
        elif not _ideals(row) and kind not in {"closedqa", None}:
            source.miss(place, "a sample", "it has no ideal answer")
        else:
            extra = {k: v for k, v in row.items() if k not in {"input", "ideal", "id"}}
            own = {"id": str(row.get("id") or len(tasks) + 1), "input": asked, **columns(extra)}
            tasks.append({**own, "expected_behaviors": _graded(kind, row, args)})
    if not tasks:
        raise source.refuse("no samples with an input and an ideal answer.")
    table: Row = {"suite": name, "subjects": source.subjects(), "settings": {"temperature": 0}}
    if kind == "closedqa":
        table["judge"] = DEFAULT_JUDGE
        source.note(_GRADED)
        source.note(f"No judge is named, so it is {DEFAULT_JUDGE}; choose another one.")
    table["tasks"] = "tasks.jsonl"
    files = {"suite.yaml": suite_text(source, table), "tasks.jsonl": json_lines(tasks)}
    return ConvertedSuite(files)


def _graded(kind: str | None, row: Row, args: Mapping[str, Any]) -> Behaviours:
    if kind in _CLASSES:
        return _CLASSES[kind](row, args)
    said = f"{kind or 'no class'}: {' / '.join(_ideals(row))}"
    return [{"undecided": " ".join(said.split())[:200]}]


FORMAT = SuiteFormat("openai_evals", "OpenAI Evals", _recognise, _convert)
