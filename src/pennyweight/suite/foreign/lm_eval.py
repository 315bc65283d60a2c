"""lm-evaluation-harness: a task in YAML, whose prompt and target are templates over a data set."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pennyweight.errors import InputError, UsageError
from pennyweight.metrics.scores import name_problem
from pennyweight.schema.tree import Node, plain
from pennyweight.suite.foreign.data_rows import placed_rows
from pennyweight.suite.foreign.regular_expressions import from_python
from pennyweight.suite.foreign.suite_format import (
    ConvertedSuite,
    ForeignSuite,
    NotCarriedError,
    Place,
    SuiteFormat,
    csv_rows,
    read_text,
)
from pennyweight.suite.foreign.suite_text import suite_text
from pennyweight.suite.task_rows import listed_choices
from pennyweight.suite.templates import TemplateError, render, variables_of

Row = dict[str, Any]
MAX_INCLUDES = 10
_LOCAL = {"json", "csv", "parquet", "text"}
_WHOLE = {"regex": "(?s).+"}
_ALONE = re.compile(r"\{\{-?\s*(\w+)\s*-?\}\}")
_LETTERED = (
    "lm-eval compares how likely a model finds each choice; a suite asks for the letter of one, "
    "which is a different measurement"
)
_CODE = "it is Python code, and code is not run"
INVALID = "[invalid]"
"""What the harness writes for a reply in which a pattern finds nothing."""
_FLAGS = {"ignore_case": "case", "ignore_punctuation": "punctuation", "ignore_numbers": "digits"}
_SILENT = set(
    """task task_alias tag group include metadata dataset_path dataset_name dataset_kwargs
    test_split validation_split training_split fewshot_split fewshot_config num_fewshot output_type
    doc_to_text doc_to_target doc_to_choice generation_kwargs filter_list metric_list repeats
    description target_delimiter fewshot_delimiter should_decontaminate
    doc_to_decontamination_query trust_remote_code custom_dataset process_results
    unsafe_code""".split()  # noqa: SIM905
)
CHOICES = """\
{{ input }}
{% for choice in choices %}{{ "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[loop.index0] }}. {{ choice }}
{% endfor %}Answer with the letter of the right choice.
"""


def _recognise(root: Node | None, _: str, __: Path) -> bool:
    if root is None or not root.is_mapping or root.get("task") is None:
        return False
    known = (
        "doc_to_text",
        "doc_to_target",
        "dataset_path",
        "output_type",
        "include",
        "metric_list",
    )
    return any(root.get(key) is not None for key in known)


@dataclass(slots=True)
class TaskTable:
    """The keys of a task with their places, those of included files filled in."""

    values: dict[str, Any] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    code: set[str] = field(default_factory=set)
    """The keys whose values are functions."""
    coded: set[Place] = field(default_factory=set)
    """The places of values that have functions in them."""

    def get(self, key: str) -> Any:
        """Return a value; None if it is missing or code."""
        return None if key in self.code else self.values.get(key)


def _table(source: ForeignSuite, path: Path, depth: int = 0) -> TaskTable:
    document = source.document(path)
    root, own = document.root, Place(source.name_of(path))
    made = TaskTable()
    include = root.get("include") if root.is_mapping else None
    names = [one.value for one in include.elements()] if include and include.is_list else []
    names = [include.value] if include is not None and include.is_scalar else names
    for name in names:
        found = source.find(str(name), own.at(root.key_line("include")), "include")
        if found and depth < MAX_INCLUDES:
            below = _table(source, found, depth + 1)
            made.values |= below.values
            made.places |= below.places
            made.code |= below.code
            made.coded |= below.coded
    tagged = {one.line for one in document.problems.found if "'!function'" in one.message}
    for key, node in root.items() if root.is_mapping else ():
        made.values[key], made.places[key] = plain(node), own.at(root.key_line(key))
        made.code.discard(key)
        made.places = {k: v for k, v in made.places.items() if not k.startswith(f"{key}[")}
        coded = any(line in tagged for line in _lines(node))
        for at, one in enumerate(node.elements() if node.is_list else ()):
            place = made.places[f"{key}[{at}]"] = own.at(one.line)
            if any(line in tagged for line in _lines(one)):
                made.coded.add(place)
        if node.is_scalar and node.line in tagged:
            made.code.add(key)
        elif coded and key not in {"metric_list", "filter_list"}:
            source.miss(made.places[key], key, _CODE)
    return made


def _lines(node: Node) -> Iterator[int]:
    if node.is_scalar:
        yield node.line
    for below in node.elements() if node.is_list else ():
        yield from _lines(below)
    for _, below in node.items() if node.is_mapping else ():
        yield from _lines(below)


def _convert(source: ForeignSuite) -> ConvertedSuite:
    table = _table(source, source.path)
    if not isinstance(table.values.get("task"), str):
        raise InputError(
            [f"{source.path}: a group of tasks."], hint="Convert each of its tasks by itself."
        )
    kind = table.get("output_type") or "generate_until"
    if kind not in {"generate_until", "multiple_choice"}:
        raise InputError(
            [f"{source.path}: output_type {kind} measures the likelihood of a text."],
            hint="Suites measure replies; 'pennyweight score' reads the log of such a task.",
        )
    for key in sorted(table.values.keys() - _SILENT):
        why = _CODE if key in table.code else "it has no counterpart"
        source.miss(table.places[key], key, why)
    for key in (
        "doc_to_text",
        "doc_to_target",
        *(["doc_to_choice"] if kind != "generate_until" else []),
    ):
        if key in table.code or table.values.get(key) is None:
            why = _CODE if key in table.code else "it is missing"
            raise InputError([f"{table.places.get(key, source.place)}: {key}: {why}."])
        if isinstance(table.values[key], str):
            _check_template(table.places[key], key, table.values[key])
    made: Row = {"suite": table.values["task"], "subjects": source.subjects()}
    rows, tasks = _data(source, table)
    make, columns = _fields(source, table, kind, rows)
    tasks |= {"columns": columns} if columns else {}
    made["tasks"] = tasks | ({"make": make} if make else {})
    made |= _texts(source, table, kind, rows)
    made |= _answers(source, table, kind, lists=_may_be_lists(table, make, columns, rows))
    made["settings"] = _settings(source, table, kind)
    if isinstance(table.get("repeats"), int) and table.values["repeats"] > 1:
        made["runs"] = table.values["repeats"]
        source.note("Every one of the repeats is scored; lm-eval scores what its filter picks.")
    files = {"suite.yaml": suite_text(source, made)}
    if rows is not None:
        lines = (json.dumps(row, ensure_ascii=False, default=str) for row in rows)
        files["tasks.jsonl"] = "\n".join(lines) + "\n"
    return ConvertedSuite(files)


def _fields(
    source: ForeignSuite, table: TaskTable, kind: str, rows: list[Row] | None
) -> tuple[Row, Row]:
    """Return the columns that are made from templates, and those that only have another name."""
    make: Row = {}
    columns: Row = {}
    names = {"input": "doc_to_text", "target": "doc_to_target"}
    if kind == "multiple_choice":
        names["choices"] = "doc_to_choice"
        place = table.places.get("output_type", source.place)
        source.miss(place, "output_type multiple_choice", _LETTERED)
    for name, key in names.items():
        value = table.values[key]
        alone = _ALONE.fullmatch(value) if isinstance(value, str) else None
        value = alone[1] if alone else value
        if isinstance(value, list):
            make[name] = json.dumps(value, ensure_ascii=False)
        elif isinstance(value, str) and re.fullmatch(r"\w+", value) and not value.isdigit():
            if name == "target" and rows is None and not alone and kind == "generate_until":
                make[name] = _COLUMN.replace("NAME", value)
            elif name == "choices" or value in {"input", "target"}:
                make |= {} if value == name else {name: "{{ " + value + " }}"}
            else:
                columns[name] = value
        else:
            make[name] = str(value)
    return make, columns


_COLUMN = "{{ [NAME] | tojson if NAME is string else NAME }}"
"""The target in a column of the hub: a text is one target also if it looks like a list."""


def _may_be_lists(table: TaskTable, make: Row, columns: Row, rows: list[Row] | None) -> bool:
    """Whether a target may be a list of several: the harness reads lists that templates write."""
    written = make.get("target")
    if rows is None:
        return written is None or written.startswith("{")
    name = columns.get("target", "target")
    if written is None and any(isinstance(row.get(name), list) for row in rows):
        return True
    template = str(table.values["doc_to_target"])
    if "{" not in template:
        return False
    try:
        return any(render(template, row).lstrip().startswith("[") for row in rows)
    except TemplateError:
        return True


def _check_template(place: Place, key: str, text: str) -> None:
    try:
        variables_of(text)
    except TemplateError as error:
        raise InputError([f"{place}: {key}: {error}"]) from None


def _data(source: ForeignSuite, table: TaskTable) -> tuple[list[Row] | None, Row]:
    """Return the rows of a local data set, or None, and where the tasks are."""
    path = table.get("dataset_path")
    kwargs = table.get("dataset_kwargs") or {}
    split = next(
        (
            table.get(k)
            for k in ("test_split", "validation_split", "training_split")
            if table.get(k)
        ),
        "test",
    )
    if path in _LOCAL or (isinstance(kwargs, dict) and kwargs.get("data_files")):
        return _local(source, table, split), {"from": "tasks.jsonl"}
    if not isinstance(path, str):
        raise InputError([f"{source.path}: it names no data set (dataset_path)."])
    config = table.get("dataset_name")
    named = {"config": config} if isinstance(config, str) else {}
    source.note(f"The data set is hf:{path}: it is loaded from the hub, with the extra datasets.")
    return None, {"from": f"hf:{path}", **named, "split": split}


def _local(source: ForeignSuite, table: TaskTable, split: str) -> list[Row]:
    place = table.places.get("dataset_kwargs", source.place)
    rows = list(_split(source, table, split))
    if not rows:
        listed = "; ".join(str(one) for one in source.missing if one.place == place)
        raise InputError([f"{place}: no rows of the split {split!r} can be read. {listed}".strip()])
    return rows


def _split(source: ForeignSuite, table: TaskTable, split: Any) -> Iterator[Row]:
    kwargs, place = (
        table.get("dataset_kwargs") or {},
        table.places.get("dataset_kwargs", source.place),
    )
    files = kwargs.get("data_files") if isinstance(kwargs, dict) else None
    chosen = files.get(split) if isinstance(files, dict) else files
    for name in chosen if isinstance(chosen, list) else [chosen]:
        if not isinstance(name, str):
            continue
        if "://" in name:
            source.miss(place, f"data {name}", "nothing is fetched; save it as a file")
            continue
        path = source.find(name, place, "data")
        if path is None:
            continue
        ending, text = path.suffix.lower(), read_text(path)
        if ending == ".csv":
            yield from (dict(row) for _, row in csv_rows(text))
        elif ending == ".json" and text.lstrip().startswith("["):
            try:
                listed = json.loads(text)
            except (ValueError, RecursionError) as error:
                source.miss(place, f"data {name}", f"it is not valid JSON: {error}")
                continue
            yield from (row for row in listed if isinstance(row, dict))
        elif ending in {".jsonl", ".json"}:
            yield from (row for _, row in placed_rows(source, path))
        else:
            source.miss(place, f"data {name}", "it is neither JSON nor CSV")


def _texts(source: ForeignSuite, table: TaskTable, kind: str, rows: list[Row] | None) -> Row:
    made: Row = {"prompt": CHOICES} if kind == "multiple_choice" else {}
    description = table.get("description")
    if isinstance(description, str) and description.strip():
        made["system"] = description.strip()
        source.note("The description is the system text, as with --apply_chat_template.")
    examples = list(_examples(source, table, rows))
    if examples:
        made["examples"] = examples
        source.note("Worked examples are earlier turns, as with --fewshot_as_multiturn.")
    return made


def _examples(source: ForeignSuite, table: TaskTable, rows: list[Row] | None) -> Iterator[Row]:
    config = table.get("fewshot_config") or {}
    samples = config.get("samples") if isinstance(config, dict) else None
    wanted = table.get("num_fewshot")
    count = wanted if isinstance(wanted, int) else len(samples) if isinstance(samples, list) else 0
    place = table.places.get("num_fewshot", table.places.get("fewshot_config", source.place))
    if not count:
        return
    if not isinstance(samples, list):
        split = table.get("fewshot_split") or table.get("training_split")
        samples = list(_split(source, table, split)) if rows is not None and split else []
        if not samples:
            why = "the examples come from a data set of the hub; write some under fewshot_config"
            source.miss(place, f"num_fewshot {count}", why)
            return
        source.note("Worked examples are the first of their split; lm-eval draws them at random.")
    for row in [one for one in samples if isinstance(one, dict)][:count]:
        values = {}
        for name, key in (("input", "doc_to_text"), ("output", "doc_to_target")):
            text = str(table.values[key])
            try:
                written = row[text] if text in row else listed_choices(render(text, row))
                several = isinstance(written, list) and written
                values[name] = str(written[0] if several and name == "output" else written)
            except TemplateError as error:
                source.miss(place, "a worked example", str(error).rstrip("."))
        if len(values) == 2:
            yield values


@dataclass(frozen=True, slots=True)
class ForeignFilter:
    """How one filter of the harness reads an answer: by a rule, and what is ignored in it."""

    name: str
    answer: Any
    ignore: tuple[str, ...] = ()


def _answers(source: ForeignSuite, table: TaskTable, kind: str, *, lists: bool) -> Row:
    """Return how answers are found and compared; `match: none` if that cannot be the same."""
    if kind == "multiple_choice":
        return {"answer": {"choice": "A-Z"}, "match": "choice"}
    rule = _exact_match(source, table)
    readings = _readings(source, table)
    if rule is None or not readings:
        return {"answer": "reply", "match": "none"}
    first, *others = (
        {"answer": one.answer, "match": _match(rule, one.ignore, lists=lists)} for one in readings
    )
    scorers = [
        {_score_name(reading.name): given}
        for reading, given in zip(readings[1:], others, strict=True)
    ]
    for reading in readings[1:]:
        source.note(
            f"The filter {readings[0].name} decides; {reading.name} is the score "
            f"{_score_name(reading.name)}."
        )
    return {**first, **({"scorers": scorers} if scorers else {})}


def _score_name(name: str) -> str:
    """Return the name of a filter as that of a score.

    >>> _score_name("flexible-extract"), _score_name("accuracy")
    ('flexible_extract', 'filter_accuracy')
    """
    made = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower()
    return f"filter_{made}" if name_problem(made) else made


def _match(rule: Row, ignore: Sequence[str], *, lists: bool) -> Any:
    ignored = [*ignore, *rule.get("ignore", ())]
    made: Row = {**({"ignore": ignored} if ignored else {}), **rule}
    if ignored:
        made["ignore"] = ignored
    verbatim = {"verbatim": made} if made else "verbatim"
    return {"any_of": {"match": verbatim}} if lists else verbatim


def _readings(source: ForeignSuite, table: TaskTable) -> list[ForeignFilter]:
    """Return how each filter reads an answer; those that cannot be carried over are listed."""
    filters = table.get("filter_list")
    if not filters:
        return [ForeignFilter("none", "reply")]
    place = table.places.get("filter_list", source.place)
    made: list[ForeignFilter] = []
    for at, given in enumerate(filters if isinstance(filters, list) else [filters]):
        own = table.places.get(f"filter_list[{at}]", place)
        name = str(given.get("name", at + 1)) if isinstance(given, Mapping) else str(at + 1)
        try:
            made.append(_reading(name, given))
        except NotCarriedError as error:
            source.miss(own, f"filter {name}", str(error))
    return made


def _reading(name: str, given: Any) -> ForeignFilter:
    steps = given.get("filter") if isinstance(given, Mapping) else None
    if not isinstance(steps, list):
        raise NotCarriedError("it has no steps")
    answer: Any = "reply"
    ignore: tuple[str, ...] = ()
    for step in steps:
        function = step.get("function") if isinstance(step, Mapping) else None
        if function == "regex" and answer == "reply" and not ignore:
            answer = _regex(step)
        elif function == "remove_whitespace":
            ignore = (r"^\s+",)  # of an answer that a pattern found, there is none
        elif function != "take_first":
            raise NotCarriedError(f"the step {function} has no counterpart")
    return ForeignFilter(name, answer, ignore if answer == "reply" else ())


def _regex(step: Mapping[str, Any]) -> Row:
    for key in step.keys() - {"function", "regex_pattern", "group_select", "fallback"}:
        raise NotCarriedError(f"{key} of its pattern has no counterpart")
    if step.get("fallback", INVALID) != INVALID:
        raise NotCarriedError(f"without a match it answers {step['fallback']!r}")
    group = step.get("group_select", 0)
    if group not in {0, -1}:
        raise NotCarriedError("only the first or the last match of a pattern can be taken")
    pattern = str(step.get("regex_pattern", r"#### (\-?[0-9\.\,]+)"))
    return {"regex" if group == 0 else "last_regex": _pattern(pattern)}


def _pattern(pattern: str) -> str:
    try:
        return from_python(pattern)
    except UsageError as error:
        raise NotCarriedError(str(error).rstrip(".")) from None


def _exact_match(source: ForeignSuite, table: TaskTable) -> Row | None:
    """Return what the metric exact_match ignores; None if something else decides."""
    if "process_results" in table.values:
        place = table.places["process_results"]
        source.miss(place, "process_results", f"it scores replies, and {_CODE}")
        return None
    if table.values.get("doc_to_choice") is not None:
        what = "the target is an index of choices that are not shown"
        source.miss(table.places["doc_to_choice"], "doc_to_choice", what)
        return None
    given = table.values.get("metric_list")
    if given is None:
        return {}
    place = table.places["metric_list"]
    found: Row | None = None
    for at, one in enumerate(given if isinstance(given, list) else [given]):
        own = table.places.get(f"metric_list[{at}]", place)
        name = one.get("metric") if isinstance(one, Mapping) else one
        if name != "exact_match" or found is not None or own in table.coded:
            why = _CODE if own in table.coded else "a suite computes no such metric of the harness"
            source.miss(own, f"metric {name}", why)
            continue
        try:
            found = _ignored(one)
        except NotCarriedError as error:
            source.miss(own, "metric exact_match", str(error))
    return found


def _ignored(metric: Mapping[str, Any]) -> Row:
    made: Row = {}
    for key, value in metric.items():
        if key in _FLAGS:
            made |= {_FLAGS[key]: False} if value else {}
        elif key == "regexes_to_ignore":
            made |= {"ignore": [_pattern(str(one)) for one in value or ()]} if value else {}
        elif key == "aggregation" and value not in {"mean", "nanmean"}:
            raise NotCarriedError(f"its aggregation is {value}")
        elif key not in {"metric", "aggregation", "higher_is_better", "hf_evaluate"}:
            raise NotCarriedError(f"{key} has no counterpart")
    return made


def _settings(source: ForeignSuite, table: TaskTable, kind: str) -> Row:
    given = table.get("generation_kwargs") or {}
    place = table.places.get("generation_kwargs", source.place)
    made: Row = {"temperature": 0, "max_tokens": 256}
    if kind == "generate_until":
        made["stop"] = [table.values.get("fewshot_delimiter", "\n\n")]
    for key, value in given.items() if isinstance(given, Mapping) else ():
        if key == "until":
            made["stop"] = value
        elif key in {"max_gen_toks", "max_tokens", "max_new_tokens"}:
            made["max_tokens"] = value
        elif key in {"temperature", "top_p", "top_k"}:
            made[key] = value
        elif key != "do_sample":
            source.miss(place, f"generation_kwargs: {key}", "there is no such setting")
    return made


FORMAT = SuiteFormat("lm_eval", "lm-evaluation-harness", _recognise, _convert)
