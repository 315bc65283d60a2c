"""Multiple-choice tasks: a target is an index, a letter or the text of a choice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from string import ascii_uppercase

from pennyweight.suite.values import Task

Reading = Callable[[str, Sequence[str]], int | None]


def _as_index(target: str, choices: Sequence[str]) -> int | None:
    """Read an index that counts from 0."""
    number = int(target) if target.isascii() and target.isdecimal() and len(target) < 4 else -1
    return number if 0 <= number < len(choices) else None


def _as_letter(target: str, choices: Sequence[str]) -> int | None:
    """Read a letter, such as B, (b) or B."""
    letter = target.strip("()[].: ").upper()
    known = ascii_uppercase[: len(choices)]
    return known.index(letter) if len(letter) == 1 and letter in known else None


def _as_text(target: str, choices: Sequence[str]) -> int | None:
    """Read the text of a choice, with its letter or without."""
    texts = [choice.strip().lower() for choice in choices]
    text = target.lower()
    if texts.count(text) == 1:
        return texts.index(text)
    written = [named(i, choice).lower() for i, choice in enumerate(texts)]
    return written.index(text) if text in written else None


READINGS: tuple[Reading, ...] = (_as_letter, _as_index, _as_text)


def named(index: int, choice: str) -> str:
    """Write a choice with its letter.

    >>> named(1, "Paris")
    'B. Paris'
    """
    return f"{ascii_uppercase[index]}. {choice}" if index < len(ascii_uppercase) else choice


def lettered(tasks: Sequence[Task]) -> tuple[tuple[Task, ...], list[str]]:
    """Write the targets of tasks with choices as letter and text; return what fits no choice too.

    A target can often be read in two ways: 1 is an index, and may be the text of a choice. The way
    that fits all tasks of a suite is meant.
    """
    chosen = [(task, listed) for task in tasks if (listed := choices_of(task)) and task.target]
    fitting = [
        reading
        for reading in READINGS
        if all(reading((task.target or "").strip(), listed) is not None for task, listed in chosen)
    ]
    made, wrong = {}, []
    for task, listed in chosen:
        target = (task.target or "").strip()
        found = {reading(target, listed) for reading in fitting or READINGS} - {None}
        if len(found) == 1:
            index = next(iter(found)) or 0
            made[task.id] = replace(task, target=named(index, listed[index].strip()))
        else:
            wrong.append(_mistake(task, listed, sorted(i for i in found if i is not None)))
    return tuple(made.get(task.id, task) for task in tasks), wrong


def _mistake(task: Task, choices: Sequence[str], found: Sequence[int]) -> str:
    target = f"the target {(task.target or '')[:60]!r} of task {task.id!r}"
    if found:
        both = " or ".join(repr(named(i, choices[i])[:60]) for i in found)
        return f"{target} may mean {both}. Write the letter and the text, as here."
    last = len(choices) - 1
    return (
        f"{target} is none of its {len(choices)} choices. Write an index from 0 to {last}, a "
        f"letter from A to {ascii_uppercase[min(last, 25)]}, or the text of a choice."
    )


def choice_of(target: str, choices: Sequence[str]) -> int | None:
    """Return which choice a target is: by its text, its letter, or its index.

    >>> choice_of("B. Oslo", ["Paris", "Oslo"]), choice_of("b", ["Paris", "Oslo"])
    (1, 1)
    """
    found = (reading(target.strip(), choices) for reading in (_as_text, _as_letter, _as_index))
    return next((index for index in found if index is not None), None)


def choices_of(task: Task) -> tuple[str, ...]:
    """Return the choices of a task; a mapping of letters to texts in its order."""
    given = task.extra.get("choices")
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            return ()
    return tuple(_texts(given))


def _texts(given: object) -> Iterator[str]:
    values = given.values() if isinstance(given, dict) else given
    for value in values if isinstance(values, list | tuple | type({}.values())) else ():
        yield value if isinstance(value, str) else json.dumps(value)
