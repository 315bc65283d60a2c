"""Multiple-choice tasks: where their choices are, and which of them a target means."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import Any

from pennyweight.suite.values import Task

CHOICES = "choices"
_COLUMNS = (CHOICES, "options", "answerchoices", "answeroptions", "endings", "alternatives",
            "possibleanswers", "multiplechoices", "candidates")  # fmt: skip
"""Columns that hold all choices, without blanks, signs and case."""
_ONE_COLUMN = re.compile(r"(option|opt|op|choice|ending|alternative|answer|sol)?([a-j]|[0-9])")
"""A column that holds one of the choices: `A`, `option_b`, `choice1`."""
_LETTERS_ONLY = frozenset({"", "op", "answer"})
"""What goes before a letter but not before a number."""
_SEPARATORS = ("\n", "|", ";")


@dataclass(frozen=True, slots=True)
class Choices:
    """The texts of choices, and their own labels if they have some."""

    texts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


Reading = Callable[[str, Choices], int | None]


def _as_label(target: str, choices: Choices) -> int | None:
    """Read the label of a choice, such as 3 where the choices are labelled 1 to 4."""
    labels = [label.lower() for label in choices.labels]
    return labels.index(target.lower()) if labels.count(target.lower()) == 1 else None


def _as_index(target: str, choices: Choices) -> int | None:
    """Read an index that counts from 0."""
    number = int(target) if target.isascii() and target.isdecimal() and len(target) < 4 else -1
    return number if 0 <= number < len(choices.texts) else None


def _as_letter(target: str, choices: Choices) -> int | None:
    """Read a letter, such as B, (b) or B."""
    letter = target.strip("()[].: ").upper()
    known = ascii_uppercase[: len(choices.texts)]
    return known.index(letter) if len(letter) == 1 and letter in known else None


def _as_text(target: str, choices: Choices) -> int | None:
    """Read the text of a choice, with its letter or without."""
    texts = [choice.strip().lower() for choice in choices.texts]
    text = target.lower()
    if texts.count(text) == 1:
        return texts.index(text)
    written = [named(i, choice).lower() for i, choice in enumerate(texts)]
    return written.index(text) if text in written else None


READINGS: tuple[Reading, ...] = (_as_letter, _as_index, _as_text)
LABELLED: tuple[Reading, ...] = (_as_label, _as_text)


def named(index: int, choice: str) -> str:
    """Write a choice with its letter.

    >>> named(1, "Paris")
    'B. Paris'
    """
    return f"{ascii_uppercase[index]}. {choice}" if index < len(ascii_uppercase) else choice


def listed(given: Any) -> str:
    r"""Write choices one below the other, each with its letter; a filter of templates.

    >>> listed(["Rome", "Paris"])
    'A. Rome\nB. Paris'
    """
    texts = read_choices(given).texts
    return "\n".join(named(i, text.strip()) for i, text in enumerate(texts))


def choices_of(task: Task) -> tuple[str, ...]:
    """Return the choices of a task; nothing if it has none that can be read."""
    return read_choices(task.extra.get(CHOICES)).texts


def lettered(tasks: Sequence[Task]) -> tuple[tuple[Task, ...], list[tuple[str, str]]]:
    """Write the targets of tasks with choices as letter and text; also return what fits no choice.

    That is the id of each such task and a message. A target can often be read in two ways: 1 is an
    index, and may be the text of a choice. The way that fits all tasks of a suite is meant.
    """
    read = [(task, read_choices(task.extra.get(CHOICES))) for task in tasks if task.target]
    chosen = [(task, choices) for task, choices in read if choices.texts]
    readings = LABELLED if all(c.labels for _, c in chosen) else READINGS
    fitting = [
        reading
        for reading in readings
        if all(
            reading((task.target or "").strip(), choices) is not None for task, choices in chosen
        )
    ]
    made, wrong = {}, []
    for task, choices in chosen:
        target = (task.target or "").strip()
        found = {reading(target, choices) for reading in fitting or readings} - {None}
        if len(found) == 1:
            index = next(iter(found)) or 0
            made[task.id] = replace(task, target=named(index, choices.texts[index].strip()))
        else:
            fits = sorted(i for i in found if i is not None)
            wrong.append((task.id, _mistake(task, choices, fits)))
    return tuple(made.get(task.id, task) for task in tasks), wrong


def _mistake(task: Task, choices: Choices, found: Sequence[int]) -> str:
    target = f"the target {(task.target or '')[:60]!r} of task {task.id!r}"
    if found:
        both = " or ".join(repr(named(i, choices.texts[i])[:60]) for i in found)
        return f"{target} may mean {both}. Write the letter and the text, as here."
    last = len(choices.texts) - 1
    way = f"an index from 0 to {last}, a letter from A to {ascii_uppercase[min(last, 25)]}"
    if choices.labels:
        way = f"one of the labels {', '.join(choices.labels)}"
    return (
        f"{target} is none of its {len(choices.texts)} choices. Write {way}, or the text of a "
        "choice."
    )


def choice_of(target: str, choices: Sequence[str]) -> int | None:
    """Return which choice a target is: by its text, its letter, or its index.

    >>> choice_of("B. Oslo", ["Paris", "Oslo"]), choice_of("b", ["Paris", "Oslo"])
    (1, 1)
    """
    readings = (_as_text, _as_letter, _as_index)
    found = (reading(target.strip(), Choices(tuple(choices))) for reading in readings)
    return next((index for index in found if index is not None), None)


def read_choices(given: Any) -> Choices:
    """Read choices: a list, a mapping of labels to texts, or either as text.

    >>> read_choices('["Rome", "Paris"]').texts, read_choices("Rome | Paris").texts
    (('Rome', 'Paris'), ('Rome', 'Paris'))
    >>> read_choices({"text": ["Rome", "Paris"], "label": ["1", "2"]})
    Choices(texts=('Rome', 'Paris'), labels=('1', '2'))
    """
    value = _parsed(given) if isinstance(given, str) else given
    if isinstance(value, Mapping):
        texts, labels = value.get("text"), value.get("label")
        if not isinstance(texts, list) or not isinstance(labels, list):
            labels, texts = list(value), list(value.values())
        return Choices(tuple(map(_text, texts)), tuple(map(_text, labels[: len(texts)])))
    return Choices(tuple(map(_text, value)) if _is_list(value) else ())


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _parsed(text: str) -> Any:
    """Read a cell of a table: JSON, a list as Python writes it, or texts with a separator."""
    text = text.strip()
    if text.startswith(("[", "{")):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return ()
        joined = text.count("'") + text.count('"') > 2 and _is_list(value) and len(value) == 1
        return () if joined else value  # as numpy writes ['a' 'b'], which Python reads as one text
    for separator in _SEPARATORS:
        if len(parts := [part.strip() for part in text.split(separator) if part.strip()]) > 1:
            return parts
    return ()


def choice_columns(keys: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that hold the choices of a task: one with all, or one for each.

    >>> choice_columns(["question", "A", "B", "C", "D", "answer"]), choice_columns(["options"])
    (('A', 'B', 'C', 'D'), ('options',))
    >>> choice_columns(["question", "a", "b", "c", "answer"])
    ()
    """
    bare = {re.sub(r"[\s_.()-]", "", key).lower(): key for key in reversed(keys)}
    for name in _COLUMNS:
        if name in bare:
            return (bare[name],)
    several: dict[str, dict[str, str]] = {}
    for name, key in bare.items():
        if one := _ONE_COLUMN.fullmatch(name):
            several.setdefault(one[1] or "", {})[one[2]] = key
    for prefix, columns in several.items():
        for first, least in (("a", 2), ("0", 2), ("1", 2)):
            if prefix == "":  # a, b and c are often numbers of a question
                least = 3 if all(map(str.isupper, columns.values())) else 4  # noqa: PLW2901
            if first.isdigit() and prefix in _LETTERS_ONLY:
                continue
            places = range(ord(first), ord(first) + 10)
            found = [columns[chr(c)] for c in _run(places, columns)]
            if len(found) >= least:
                return tuple(found)
    return ()


def _run(places: Sequence[int], columns: Mapping[str, str]) -> list[int]:
    """Return the places that have a column, up to the first that has none."""
    found: list[int] = []
    for place in places:
        if chr(place) not in columns:
            break
        found.append(place)
    return found


def gathered(row: Mapping[str, Any], columns: Sequence[str]) -> Any:
    """Return the choices of a task from the columns that hold them; None if there are none."""
    if len(columns) == 1:
        value = row.get(columns[0])
        return value if read_choices(value).texts else None
    texts = [_text(row[name]) for name in columns if row.get(name) not in (None, "")]
    return texts if len(texts) > 1 else None
