"""Suites that nobody wrote: a file of tasks, or a single question, and the models to ask.

Where tasks have targets, the prompt asks for a last line `ANSWER: …`, and the rule that decides
replies follows from the targets. Nothing is ever right because it occurs somewhere in a reply.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import polars as pl

from pennyweight.errors import InputError, UsageError
from pennyweight.schema.documents import Document, read_document
from pennyweight.schema.kinds import listed
from pennyweight.schema.problems import DocumentError, Problems
from pennyweight.sources.files import format_of
from pennyweight.suite.choices import CHOICES, choices_of, lettered
from pennyweight.suite.task_rows import HUB, TaskSource, read_rows
from pennyweight.suite.tasks import TaskReader
from pennyweight.suite.values import LoadedSuite, Task
from pennyweight.text.extraction import KINDS as ANSWERS
from pennyweight.text.extraction import AnswerRule
from pennyweight.text.format import plural
from pennyweight.text.matching import KINDS as MATCHES
from pennyweight.text.matching import MatchRule, are_numbers, targets

QUESTION = "<prompt>"
"""The path of a suite that is a single question; no file has it."""
MARKER = "ANSWER:"
DOCUMENTS = frozenset({".yaml", ".yml", ".json"})
"""Endings of suites, and of files of tasks if they hold a list."""
COLUMNS, MAKE = "tasks.columns.", "tasks.make."
"""Where an option says which column of a file is which field of its tasks."""
MAX_LABELS = 12
"""The most different targets that are labels."""
MAX_LABEL_LENGTH = 40
LONG_TEXT = 5
"""Words of a text that is hardly ever repeated word by word."""
_MAX_NAMED = 5
_START = '{"suite": '
_KEYS = frozenset({"suite", "tasks", "prompt", "answer", "match"})
_PAIRS = ({"yes", "no"}, {"true", "false"}, {"y", "n"}, {"t", "f"})
"""Targets that are labels even if a file has each of them once."""
_PLACES = ("/", "./", "../", "~", HUB, "http://", "https://")

Kind = Literal["choices", "letters", "numbers", "labels", "texts"]


@dataclass(frozen=True, slots=True)
class TargetRule:
    """How replies are compared with targets, as follows from the targets."""

    kind: Kind
    match: Any
    """The rule, as a suite writes it."""


def is_implied(text: str) -> bool:
    """Whether the text of a suite is one that was made here."""
    if not text.startswith(_START) or "\n" in text:
        return False
    try:
        return set(json.loads(text)) <= _KEYS
    except ValueError:
        return False


def question_suite(question: str) -> tuple[str, str]:
    """Return the path and the text of a suite that asks one question."""
    task = {"id": "prompt", "input": question}
    return QUESTION, _written({"suite": "prompt", "tasks": [task]})


def open_document(
    path: str | Path, text: str | None, *, models: bool, changes: Mapping[str, Any]
) -> Document:
    """Read a suite, or make one for a file of tasks or a question if `models` were named.

    `changes` are the values that an option puts in the place of the suite's.
    """
    if text is not None:
        return read_document(path, text)
    place = Path(path)
    if is_table(place) and place.is_file():
        return read_document(path, _text_of_table(path, changes, models=models))
    if not _exists(place):
        if models and isinstance(path, str) and _is_question(path):
            return read_document(*question_suite(path))
        what, *advice = _missing(str(path), models=models)
        raise DocumentError([what], hint=" ".join(advice))
    if place.is_dir():
        inside = next((place / n for n in ("suite.yaml", "suite.yml") if (place / n).is_file()), "")
        named = f"its suite: {inside}" if inside else "a suite, or a file of tasks"
        raise UsageError(f"{path} is a folder. Name {named}")
    document = read_document(path)
    if models and document.root.is_list:
        document = read_document(path, _text_of_table(path, changes, models=models))
    return document


def is_table(path: Path) -> bool:
    """Whether a path is that of a file of tasks, by its ending."""
    return path.suffix.lower() not in DOCUMENTS and format_of(path) is not None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a question that is too long for a name, or has a NUL
        return False


def _is_file_name(text: str) -> bool:
    place = Path(text)
    return "\n" not in text and (place.suffix.lower() in DOCUMENTS or format_of(place) is not None)


def _is_question(text: str) -> bool:
    """Whether a text that names no file is a question: it has a space, and is no path."""
    words = text.strip()
    return any(map(str.isspace, words)) and not (words.startswith(_PLACES) or _is_file_name(words))


def _missing(name: str, *, models: bool) -> list[str]:
    """Say that something is no file, what was probably meant, and what can be run."""
    if _is_question(name):
        return [f"{name[:60]!r}: to ask a model this question, name it: -m PROVIDER/NAME."]
    if name.startswith(HUB):
        words = [f"{name} is a data set, not a suite. Write 'tasks: {name}' in a suite."]
    elif name.startswith(("http://", "https://")):
        words = [f"{name} is an address. Download the file, and name that."]
    else:
        words = [f"{name}: no such file or folder.", *_similar(Path(name))]
    words.append("Run a suite ('pennyweight init' writes a first one) or a file of tasks.")
    if models and not _is_file_name(name):
        words.append(f"To ask a model this text: --ask {shlex.quote(name)}")
    return words


def _similar(path: Path) -> list[str]:
    """Suggest a file of a similar name."""
    known: dict[str, Path] = {}
    with suppress(OSError, ValueError):
        for file in islice(path.parent.iterdir(), 1_000):
            if _is_file_name(file.name):
                known |= {file.name: file, file.name.split(".")[0]: file}
    near = get_close_matches(path.name, known, n=1)
    return [f"Did you mean {known[near[0]]}?"] if near else []


def _text_of_table(path: str | Path, changes: Mapping[str, Any], *, models: bool) -> str:
    """Return the text of a suite for a file of tasks: its prompt and rules suit the targets."""
    name = Path(path).name
    if not models:
        raise UsageError(
            f"{path} is a file of tasks, not a suite. Name the models to ask: "
            f"pennyweight run {path} -m PROVIDER/NAME"
        )
    keys: dict[str, Any] = {"suite": name.split(".")[0], "tasks": name}
    tasks = _scanned(Path(path), changes)
    scored = [(place, task) for place, task in tasks if task.target is not None]
    rule = None
    if scored and "match" not in changes:
        rule = target_rule([task for _, task in scored])
        if "answer" not in changes:
            _refuse(str(path), scored, rule)
        keys["match"] = rule.match
    if scored and "answer" not in changes:
        keys["answer"] = {"marker": MARKER}
    match = rule.match if rule else changes.get("match", "exact")
    answer = AnswerRule.parse(changes.get("answer", {"marker": MARKER})) if scored else None
    prompt = _prompt([task for _, task in tasks], answer, MatchRule.parse(match))
    if prompt != "{{ input }}" and not {"prompt", "messages"} & changes.keys():
        keys["prompt"] = prompt
    return _written(keys)


def _written(keys: Mapping[str, Any]) -> str:
    return json.dumps(keys, ensure_ascii=False)


def _scanned(path: Path, changes: Mapping[str, Any]) -> list[tuple[int, Task]]:
    """Read the tasks of a file; what is wrong with them is reported when the suite is read."""
    columns, make = (
        {key.removeprefix(start): str(one) for key, one in changes.items() if key.startswith(start)}
        for start in (COLUMNS, MAKE)
    )
    source = TaskSource(path.name, path.parent, make=make or None)
    try:
        problems, rows = read_rows(source, Problems(), {})
        return list(TaskReader(rows, problems, columns=columns).tasks())
    except (InputError, OSError, EOFError):
        return []


def target_rule(tasks: Sequence[Task]) -> TargetRule:
    """Return the rule that suits the targets of tasks.

    >>> target_rule([Task("a", "", "4"), Task("b", "", "$5")])
    TargetRule(kind='numbers', match='numeric')
    >>> target_rule([Task("a", "", "Yes"), Task("b", "", "no")])
    TargetRule(kind='labels', match={'label': ['no', 'yes']})
    """
    if any(choices_of(task) for task in tasks):
        return TargetRule("choices", "choice")
    texts = [(task.target or "").strip() for task in tasks]
    words = [text.lower() for text in texts]
    labels = dict(zip(words, texts, strict=True))
    for pair in _PAIRS:
        if labels.keys() <= pair:
            return TargetRule("labels", {"label": sorted(pair)})
    numbers = are_numbers(pl.Series(texts, dtype=pl.String))
    if numbers.all():
        return TargetRule("numbers", "numeric")
    if all(len(low.strip("().")) == 1 and "a" <= low.strip("().") <= "z" for low in words):
        return TargetRule("letters", "choice")
    repeated = all(words.count(low) > 1 for low in labels) if len(labels) <= MAX_LABELS else False
    short = all(len(low) <= MAX_LABEL_LENGTH and "\n" not in low for low in labels)
    if repeated and short and len(labels) > 1 and not numbers.any():
        return TargetRule("labels", {"label": sorted(labels.values(), key=str.lower)})
    return TargetRule("texts", "numeric" if numbers.any() else "exact")


def _refuse(path: str, scored: Sequence[tuple[int, Task]], rule: TargetRule) -> None:
    """Raise InputError for targets that no line `ANSWER: …` can be equal to."""
    problems = []
    for place, task in scored:
        if task.extra.get(CHOICES) and not choices_of(task):
            shown = f"the choices of task {task.id!r} ({str(task.extra[CHOICES])[:60]})"
            problems.append(f"{path}, line {place}: {shown} cannot be read as a list.")
    if rule.kind == "choices":
        places = {task.id: place for place, task in scored}
        _, wrong = lettered([task for _, task in scored])
        problems += [f"{path}, line {places[id_]}: {what}" for id_, what in wrong]
    else:
        for place, task in scored:
            if what := _not_one_line(task.target or ""):
                problems.append(f"{path}, line {place}: the target of task {task.id!r} {what}")
    if problems:
        raise InputError(problems[:_MAX_NAMED], len(problems))


def _not_one_line(target: str) -> str:
    if len(targets(target)) > 1:
        return (
            "is a list. --match any_of accepts each of its items, --match exact only the whole "
            "list."
        )
    if target.startswith("{"):
        with suppress(ValueError):
            if isinstance(json.loads(target), dict):
                return "is a mapping. --map target=COLUMN names another column."
    if "####" in target:
        return (
            "is a worked solution. To compare what follows '####': --set tasks.make.target="
            "\"{{ answer.split('####')[-1] | trim }}\""
        )
    if "\n" in target.strip():
        return (
            "has several lines, but an answer is one line. --map target=COLUMN names another "
            "column, --match and --answer other rules; a suite can ask a judge."
        )
    return ""


def _prompt(tasks: Sequence[Task], answer: AnswerRule | None, match: MatchRule) -> str:
    """Return a template that shows everything a question needs, and asks for the answer's line."""
    parts = [
        _part("context", "{{ context }}\n\n", [task.context is not None for task in tasks]),
        "{{ input }}",
        _part("choices", "\n\n{{ choices | lettered }}", [bool(choices_of(t)) for t in tasks]),
    ]
    if answer is not None and answer.kind == "marker":
        what = "the answer, as short as possible"
        if match.kind == "numeric" and all(_is_number(task) for task in tasks):
            what = "a number"
        elif match.kind == "label" and match.labels:
            what = f"one of these words: {', '.join(match.labels)}"
        elif match.kind == "choice":
            what = "the letter of the right choice"
        begins = f"Finish with one line that begins with {answer.value.strip()}"
        parts.append(f"\n\n{begins} and then has only {what}.")
    return "".join(parts)


def _part(name: str, template: str, has: Sequence[bool]) -> str:
    if all(has) and has:
        return template
    test = "context is not none" if name == "context" else f"{name} is defined"
    return f"{{% if {test} %}}{template}{{% endif %}}" if any(has) else ""


def _is_number(task: Task) -> bool:
    return task.target is None or bool(are_numbers(pl.Series([task.target]))[0])


@dataclass(frozen=True, slots=True)
class ImpliedTasks:
    """How many tasks of a suite that nobody wrote have a target, before a run takes some."""

    tasks: int
    targets: int
    texts: int
    """Targets that are no numbers."""
    long: int
    """Targets that are hardly ever repeated word by word."""
    have_choices: bool

    @classmethod
    def of(cls, tasks: Sequence[Task]) -> ImpliedTasks:
        """Count the targets."""
        texts = [task.target for task in tasks if task.target is not None]
        numbers = int(are_numbers(pl.Series(texts, dtype=pl.String)).sum())
        long = sum(len(text.split()) > LONG_TEXT for text in texts)
        choices = any(choices_of(task) for task in tasks)
        return cls(len(tasks), len(texts), len(texts) - numbers, long, choices)


def rule_words(suite: LoadedSuite) -> list[str]:
    """Describe how replies of an implied suite are scored."""
    counted = suite.implied
    if counted is None or suite.path == QUESTION:
        return []
    if not counted.targets:
        columns = dict.fromkeys(name for task in suite.tasks for name in task.extra)
        has = f" Other columns: {', '.join(columns)}." if columns else ""
        return [
            f"No column of {suite.path} is a target, so nothing is scored.{has} "
            "--map target=COLUMN names one."
        ]
    changed = suite.narrowing.changes if suite.narrowing else {}
    since = "" if "match" in changed else f" (from {plural(counted.targets, 'target')})"
    notes = [
        f"Answers: {_answer_words(suite.answer)}, {_match_words(suite.match, counted)}{since}. "
        "Change with --match, --answer."
    ]
    if counted.targets < counted.tasks:
        missing = counted.tasks - counted.targets
        verb = "has" if missing == 1 else "have"
        notes.append(
            f"{missing:,} of {plural(counted.tasks, 'task')} {verb} no target: not scored."
        )
    if counted.long and suite.match.kind == "exact":
        verb = "has" if counted.long == 1 else "have"
        notes.append(
            f"{plural(counted.long, 'target')} {verb} more than {LONG_TEXT} words: a right answer "
            "in other words counts as wrong. A suite can ask a judge."
        )
    return notes


def _answer_words(rule: AnswerRule) -> str:
    if rule.kind == "marker":
        return f'the text after "{rule.value}"'
    return ANSWERS[rule.kind] + (f" ({rule.value})" if rule.value else "")


def _match_words(match: MatchRule, counted: ImpliedTasks) -> str:
    texts = "texts; case and outer spaces do not count"
    if match.kind == "numeric" and not (match.absolute or match.relative):
        rest = ", or as text where a target is no number" if counted.texts else ""
        return f"compared as numbers{rest}"
    if match.kind == "label" and match.labels:
        return f"compared as whole words with {listed(match.labels, 'and')}"
    if match.kind == "choice":
        has = counted.have_choices
        return "compared as choices, by letter or text" if has else "compared as letters"
    return f"compared as {texts}" if match.kind == "exact" else f"right if {MATCHES[match.kind]}"
