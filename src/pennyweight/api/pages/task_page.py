"""All replies to one task as pages show them, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pennyweight.api.pages import records
from pennyweight.api.pages.attempt_matrix import (
    AttemptMatrix,
    Href,
    attempt_matrix,
    key_of,
    letter_of,
)
from pennyweight.api.pages.task_attempts import MAX_CHARACTERS, MAX_REPLIES, TaskAttempts
from pennyweight.record import AttemptKey
from pennyweight.render.transcript.code import new_page
from pennyweight.render.transcript.record import PromptTurn, prompt_turns
from pennyweight.render.transcript.replies import reply_parts
from pennyweight.store.store import Store


@dataclass(frozen=True, slots=True)
class TaskView:
    """What the template of a task shows: what was asked, the matrix, the distinct replies."""

    key: AttemptKey
    row: Mapping[str, Any]
    turns: Sequence[PromptTurn]
    found: TaskAttempts
    attempts: AttemptMatrix
    letter_of: Callable[[int], str] = letter_of
    reply_parts: Callable[..., Any] = reply_parts
    max_characters: int = MAX_CHARACTERS
    max_replies: int = MAX_REPLIES

    def key_of(self, row: Mapping[str, Any]) -> AttemptKey:
        """Return the key of an attempt at this task."""
        return key_of(self.key.run, row)


def task_view(store: Store, key: AttemptKey, found: TaskAttempts, href: Href) -> TaskView:
    """Show the replies to a task, compared with that of one attempt."""
    new_page()
    row = records.row(store, key)
    letters = {
        key_of(key.run, one): letter_of(reply.number)
        for reply in found.replies
        for one in reply.attempts
    }
    return TaskView(
        key=key,
        row=row,
        turns=prompt_turns(None, row["input"], raw=False),
        found=found,
        attempts=attempt_matrix(found, key, href, letters),
    )
