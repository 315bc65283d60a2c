"""lm-evaluation-harness: a task in YAML, whose prompt and target are templates over a data set."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pennyweight.errors import InputError, UsageError
from pennyweight.schema.tree import Node, plain
from pennyweight.suite.foreign.suite_format import (
    ConvertedSuite,
    ForeignSuite,
    Place,
    SuiteFormat,
    csv_rows,
    json_rows,
    read_text,
)
from pennyweight.suite.foreign.suite_text import suite_text
from pennyweight.suite.templates import TemplateError, render, variables_of
from pennyweight.text.rules import check_regex

Row = dict[str, Any]
MAX_INCLUDES = 10
_LOCAL = {"json", "csv", "parquet", "text"}
_WHOLE = {"regex": "(?s).+"}
_ALONE = re.compile(r"\{\{-?\s*(\w+)\s*-?\}\}")
_LETTERED = (
    "A multiple-choice task is asked as a question with lettered choices. lm-eval compares how "
    "likely a model finds each choice: a different measurement."
)
_CODE = "it is Python code, and code is not run"
_LOSSY = {"regex", "take_first", "strip", "remove_whitespace"}
_NUMBERS = {",", r"\$", r"\.$", "(?s).*#### ", "$", r"\.", " "}
"""Patterns that lm-eval ignores in answers, and that numbers here do not depend on."""
_SILENT = set(
    """task task_alias tag group include metadata dataset_path dataset_name dataset_kwargs
    test_split validation_split training_split fewshot_split fewshot_config num_fewshot output_type
    doc_to_text doc_to_target doc_to_choice generation_kwargs filter_list metric_list repeats
    description target_delimiter fewshot_delimiter should_decontaminate
    doc_to_decontamination_query trust_remote_code custom_dataset""".split()  # noqa: SIM905
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
    tagged = {one.line for one in document.problems.found if "'!function'" in one.message}
    for key, node in root.items() if root.is_mapping else ():
        made.values[key], made.places[key] = plain(node), own.at(root.key_line(key))
        made.code.discard(key)
        for at, one in enumerate(node.elements() if node.is_list else ()):
            made.places[f"{key}[{at}]"] = own.at(one.line)
        if node.is_scalar and node.line in tagged:
            made.code.add(key)
        elif any(line in tagged for line in _lines(node)):
            source.leave(made.places[key], key, _CODE)
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
        source.leave(table.places[key], key, why)
    for key in (
        "doc_to_text",
        "doc_to_target",
        *(["doc_to_choice"] if kind != "generate_until" else []),
    ):
        if key in table.code or table.values.get(key) is None:
            why = _CODE if key in table.code else "it is missing"
            raise InputError([f"{table.places.get(key, source.place)}: {key}: {why}."])
    made: Row = {"suite": table.values["task"], "subjects": source.subjects([])}
    make, columns = _fields(source, table, kind)
    rows, tasks = _data(source, table)
    tasks |= {"columns": columns} if columns else {}
    made["tasks"] = tasks | ({"make": make} if make else {})
    made |= _texts(source, table, kind, rows)
    made |= _answers(source, table, kind)
    made["settings"] = _settings(source, table)
    if isinstance(table.get("repeats"), int) and table.values["repeats"] > 1:
        made["runs"] = table.values["repeats"]
        source.note("Every one of the repeats is scored; lm-eval scores what its filter picks.")
    files = {"suite.yaml": suite_text(source, made)}
    if rows is not None:
        lines = (json.dumps(row, ensure_ascii=False, default=str) for row in rows)
        files["tasks.jsonl"] = "\n".join(lines) + "\n"
    return ConvertedSuite(files)


def _fields(source: ForeignSuite, table: TaskTable, kind: str) -> tuple[Row, Row]:
    """Return the columns that are made from templates, and those that only have another name."""
    make: Row = {}
    columns: Row = {}
    names = {"input": "doc_to_text", "target": "doc_to_target"}
    if kind == "multiple_choice":
        names["choices"] = "doc_to_choice"
        source.note(_LETTERED)
    for name, key in names.items():
        value = table.values[key]
        alone = _ALONE.fullmatch(value) if isinstance(value, str) else None
        value = alone[1] if alone else value
        if isinstance(value, list):
            make[name] = json.dumps(value, ensure_ascii=False)
        elif isinstance(value, str) and re.fullmatch(r"\w+", value) and not value.isdigit():
            if name == "choices" or value in {"input", "target"}:
                make |= {} if value == name else {name: "{{ " + value + " }}"}
            else:
                columns[name] = value
        else:
            make[name] = str(value)
            _check_template(table.places[key], key, str(value))
    return make, columns


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
        listed = "; ".join(str(one) for one in source.left if one.place == place)
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
            source.leave(place, f"data {name}", "nothing is fetched; save it as a file")
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
                source.leave(place, f"data {name}", f"it is not valid JSON: {error}")
                continue
            yield from (row for row in listed if isinstance(row, dict))
        elif ending in {".jsonl", ".json"}:
            yield from (row for _, row in json_rows(text) if isinstance(row, dict))
        else:
            source.leave(place, f"data {name}", "it is neither JSON nor CSV")


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
            why = "the examples come from a data set; write some under examples"
            source.leave(place, f"num_fewshot {count}", why)
            return
        source.note("Worked examples are the first of their split; lm-eval draws them at random.")
    for row in [one for one in samples if isinstance(one, dict)][:count]:
        values = {}
        for name, key in (("input", "doc_to_text"), ("output", "doc_to_target")):
            text = str(table.values[key])
            try:
                values[name] = str(row[text]) if text in row else render(text, row)
            except TemplateError as error:
                source.leave(place, "a worked example", str(error).rstrip("."))
        if len(values) == 2:
            yield values


def _answers(source: ForeignSuite, table: TaskTable, kind: str) -> Row:
    if kind == "multiple_choice":
        return {"answer": {"choice": "A-Z"}, "match": "choice"}
    filters = table.get("filter_list")
    place = table.places.get("filter_list", source.place)
    answer: Row = _WHOLE
    if isinstance(filters, list) and filters:
        names = [str(one.get("name")) for one in filters if isinstance(one, Mapping)]
        for at, name in enumerate(names[1:], 1):
            why = f"a suite has one rule for answers; {names[0]} is used"
            source.leave(table.places.get(f"filter_list[{at}]", place), f"filter {name}", why)
        answer = _filter(source, filters[0], table.places.get("filter_list[0]", place))
    return {"answer": answer, "match": _match(source, table)}


def _filter(source: ForeignSuite, given: Any, place: Place) -> Row:
    steps = given.get("filter", []) if isinstance(given, Mapping) else []
    made: Row = _WHOLE
    for step in steps if isinstance(steps, list) else []:
        name = step.get("function") if isinstance(step, Mapping) else None
        if name == "regex":
            pattern = str(step.get("regex_pattern", r"#### (\-?[0-9\.\,]+)"))
            group = step.get("group_select", 0)
            try:
                check_regex(pattern)
            except UsageError as error:
                source.leave(place, f"filter {name}", str(error).rstrip("."))
                continue
            if group in {0, -1}:
                made = {"regex" if group == 0 else "last_regex": pattern}
            else:
                source.leave(place, "group_select", "only the first or the last match can be used")
        elif name not in _LOSSY:
            source.leave(place, f"filter {name}", "there is no such step")
    return made


def _match(source: ForeignSuite, table: TaskTable) -> str:
    metrics = table.get("metric_list")
    place = table.places.get("metric_list", source.place)
    found = (
        [one for one in metrics if isinstance(one, Mapping)] if isinstance(metrics, list) else []
    )
    exact = next((one for one in found if one.get("metric") == "exact_match"), None)
    for at, one in enumerate(found):
        if one is not exact:
            why = "answers are compared with targets; scorers of yours can compute it"
            source.leave(
                table.places.get(f"metric_list[{at}]", place), f"metric {one.get('metric')}", why
            )
    if exact is None:
        return "exact"
    ignored = exact.get("regexes_to_ignore") or []
    if ignored and set(map(str, ignored)) <= _NUMBERS:
        source.note("Answers are compared as numbers, in place of the patterns that are ignored.")
        return "numeric"
    if ignored:
        source.leave(place, "regexes_to_ignore", "texts are compared as they are")
    if exact.get("ignore_punctuation"):
        source.leave(place, "ignore_punctuation", "punctuation counts; see the scorer exact_match")
    if exact.get("ignore_case"):
        source.note("Answers are compared without case; 1,000 and 1000 are the same, too.")
        return "exact"
    return "text"


def _settings(source: ForeignSuite, table: TaskTable) -> Row:
    given = table.get("generation_kwargs") or {}
    place = table.places.get("generation_kwargs", source.place)
    made: Row = {"temperature": 0, "max_tokens": 256}
    for key, value in given.items() if isinstance(given, Mapping) else ():
        if key == "until":
            made["stop"] = value
        elif key in {"max_gen_toks", "max_tokens", "max_new_tokens"}:
            made["max_tokens"] = value
        elif key in {"temperature", "top_p", "top_k"}:
            made[key] = value
        elif key != "do_sample":
            source.leave(place, f"generation_kwargs: {key}", "there is no such setting")
    return made


FORMAT = SuiteFormat("lm_eval", "lm-evaluation-harness", _recognise, _convert)
