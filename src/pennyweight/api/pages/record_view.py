"""One record as pages show it: its texts rendered, and where its links lead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pennyweight.api.pages.attempt_matrix import AttemptMatrix
from pennyweight.api.pages.records import CheckView, RecordDetail, RecordJudgment, RecordScore
from pennyweight.api.pages.run_sides import is_own
from pennyweight.record import Decider, decided_by
from pennyweight.render.transcript import record as texts
from pennyweight.render.transcript import trajectory
from pennyweight.render.transcript.code import new_page
from pennyweight.render.transcript.folds import Folded
from pennyweight.render.transcript.steps import with_wrong_steps
from pennyweight.store.remarks import Remark
from pennyweight.stored_runs.imported import extra_of

PARTS = ("input", "messages", "response", "reasoning", "target", "error", "tool_calls", "work")
"""The texts of a record that can be read in full."""
MAX_OWN = 120
"""Characters of a value of the user's own that is shown."""
MAX_LONG = 20_000
"""Characters from which the complete text of a part is linked."""


@dataclass(frozen=True, slots=True)
class RecordView:
    """What the template of a record shows."""

    row: Mapping[str, Any]
    own: Mapping[str, Any]
    """Short values of columns of the user's own, such as those of the tasks."""
    measures: Mapping[str, Any]
    raw: bool
    turns: Sequence[texts.PromptTurn]
    reply: Folded
    thought: Folded
    rule: str
    steps: Sequence[Any]
    step_count: int
    work: texts.AgentWork | None
    judgments: tuple[RecordJudgment, ...]
    scores: tuple[RecordScore, ...]
    checks: tuple[CheckView, ...]
    remarks: tuple[Remark, ...]
    attempts: AttemptMatrix | None

    @property
    def decided_by(self) -> Decider | None:
        """What decided the record."""
        judged = [one.row["score"] for one in self.judgments] if self.judgments else None
        return decided_by(
            {
                **self.row,
                "judge_scores": judged,
                "judge_passed": extra_of(self.row.get("extra")).get("judge_passed"),
                "checks": self.checks,
                "correct": self.measures["correct"],
            }
        )


@dataclass(frozen=True, slots=True)
class RecordLinks:
    """Where the links of a record lead; an empty one is not shown."""

    key: str = ""
    task: str = ""
    """All replies to the task, side by side."""
    raw: str = ""
    """The same record with its texts as they are, or rendered."""
    steps: str = ""
    """A single step in full."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """The complete texts of the parts that are cut."""


def record_view(
    detail: RecordDetail,
    attempts: AttemptMatrix | None,
    *,
    raw: bool = False,
    fetched: bool = False,
) -> RecordView:
    """Render the texts of a record, as Markdown or as they are; most steps can be `fetched`."""
    new_page()
    row, reply = detail.row, detail.row["response"] or ""
    answer = detail.measures["answer"]
    thought = texts.shown_thought(detail.measures, reply, row["reasoning"])
    apart = thought is not None and thought == (detail.measures["cot"] or "").strip()
    marked = texts.marked_reply(reply, answer, detail.rule, detail.evidence_spans)
    pieces = texts.shortened(marked, texts.REPLY_BYTES)
    thoughts = texts.shortened([(thought or "", "")], texts.THOUGHT_BYTES)
    steps = trajectory.trajectory(row)
    return RecordView(
        row=row,
        own=own_values(row.get("extra")),
        measures=detail.measures,
        raw=raw,
        turns=texts.prompt_turns(row["messages"], row["input"], raw=raw),
        reply=texts.shown_text(
            pieces if apart else texts.with_corrections(with_wrong_steps(pieces)),
            texts.REPLY_BYTES,
            raw=raw,
        ),
        thought=texts.shown_text(
            texts.with_corrections(with_wrong_steps(thoughts)), texts.THOUGHT_BYTES, raw=raw
        ),
        rule=texts.rule_in_words(detail.rule),
        steps=trajectory.shown_steps(steps, fetched=fetched),
        step_count=len(steps),
        work=texts.agent_work(row),
        judgments=detail.judgments,
        scores=detail.scores,
        checks=detail.checks,
        remarks=detail.remarks,
        attempts=attempts,
    )


def own_values(extra: str | None) -> dict[str, Any]:
    """Return the short values of a record in columns of the user's own.

    >>> own_values('{"difficulty": "hard", "answer": "7", "steps": [1]}')
    {'difficulty': 'hard'}
    """
    return {
        name: value
        for name, value in extra_of(extra).items()
        if is_own(name) and isinstance(value, str | int | float) and 0 < len(str(value)) <= MAX_OWN
    }


def cut_parts(row: Mapping[str, Any]) -> list[str]:
    """Name the parts of a record that its page may not show in full."""
    return [name for name in PARTS if row.get(name) and len(str(row[name])) > MAX_LONG]
