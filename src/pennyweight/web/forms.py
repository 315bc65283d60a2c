"""The requests and answers of the API, as its OpenAPI description shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from pennyweight.api.pages.run_list import RunRow
from pennyweight.api.review import MAX_QUEUE

Name = Annotated[str, StringConstraints(max_length=80, strip_whitespace=True)]
Long = Annotated[str, StringConstraints(max_length=20_000)]


class RequestForm(BaseModel):
    """A request. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class RunForm(RequestForm):
    """A suite, and how to run it: subjects, tiers, first tasks, attempts per task, a cost limit."""

    suite: Annotated[str, StringConstraints(max_length=80)]
    subjects: Annotated[list[Name], Field(max_length=100)] = []
    tiers: Annotated[list[Name], Field(max_length=100)] = []
    limit: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    runs: Annotated[int, Field(ge=1, le=10_000)] | None = None
    usd: Annotated[float, Field(gt=0, le=1e9)] | None = None


class RemarkForm(RequestForm):
    """A person's verdict or note about a record."""

    key: Annotated[str, StringConstraints(max_length=20_000)]
    verdict: Literal["right", "wrong", "unsure"] | None = None
    note: Long | None = None
    who: Name = ""
    draw: Literal["random", "disagreement"] | None = None


class LabelledForm(RequestForm):
    """A person's verdict on a record of a review queue; `record` is its name on the page.

    `state` is the mark of the run's state from which the page drew the queue.
    """

    record: Annotated[str, StringConstraints(pattern="^[0-9a-f]{16}$")]
    verdict: Literal["right", "wrong", "unsure"]
    draw: Literal["random", "disagreement"] = "random"
    size: Annotated[int, Field(ge=1, le=MAX_QUEUE)] = 50
    seed: Annotated[int, Field(ge=0, le=2**31)] = 0
    state: Annotated[str, StringConstraints(pattern="^[0-9a-f]{12}$")] | None = None
    note: Long | None = None
    who: Name


class AnswerForm(RequestForm):
    """A person's answer to a question of the suite (a `human` check) about a record.

    `key` is the key of the record, or its name on the page of the queue.
    """

    key: Annotated[str, StringConstraints(max_length=20_000)]
    mark: Annotated[str, StringConstraints(max_length=200)]
    holds: bool
    note: Long | None = None
    who: Name


class TagForm(RequestForm):
    """A note about a run, or its tags: `tags` replaces all, `add` and `remove` change some."""

    tags: Annotated[list[Name], Field(max_length=20)] | None = None
    add: Annotated[list[Name], Field(max_length=20)] = []
    remove: Annotated[list[Name], Field(max_length=20)] = []
    note: Long | None = None
    who: Name = ""


class LabelForm(RequestForm):
    """A title for a run, or whether lists leave it out; what is null stays as it is."""

    title: Name | None = None
    archived: bool | None = None


class VerdictForm(RequestForm):
    """A policy by its id, and the side of a run to decide on.

    A policy that compares requires a baseline: `run:ID` for a run, `kept:NAME` for a saved one.
    """

    policy: Annotated[str, StringConstraints(max_length=80)]
    subject: Annotated[str, StringConstraints(max_length=2_000)] | None = None
    tier: Annotated[str, StringConstraints(max_length=2_000)] | None = None
    baseline: Annotated[str, StringConstraints(max_length=300)] | None = None


@dataclass(frozen=True, slots=True)
class RunAnswer(RunRow):
    """A run with its headline metric and its worst verdict.

    `decided` is false if the run changed after that verdict; `verdicts` lists all of them.
    `problem` says why the metrics cannot be computed.
    """

    verdict: Literal["pass", "fail", "inconclusive"] | None = None
    policy: str | None = None
    side: str | None = None
    decided: bool | None = None


class DamagedAnswer(BaseModel):
    """A run that cannot be read, and why. `pennyweight rm` deletes it."""

    id: str
    problem: str


class RunsAnswer(BaseModel):
    """All runs, the newest first. The metrics of the runs in `waiting` are being computed."""

    runs: list[RunAnswer]
    waiting: list[str]
    damaged: list[DamagedAnswer]


class RecordsAnswer(BaseModel):
    """A page of records. Pass `after` or `before` to get the next or the previous page."""

    records: list[dict[str, Any]]
    after: str | None
    before: str | None


class RecordAnswer(BaseModel):
    """One record in full, with its measures, checks, judgments and remarks."""

    record: dict[str, Any]
    measures: dict[str, Any]
    checks: list[dict[str, Any]]
    judgments: list[dict[str, Any]]
    scores: list[dict[str, Any]]
    remarks: list[dict[str, Any]]


class SuiteAnswer(BaseModel):
    """A suite that can be run."""

    id: str
    name: str
    uploaded: bool


class GridRowAnswer(BaseModel):
    """A task, its name for display, and a cell for each side that tried it.

    A cell is the mean result, the number of attempts with one, and the number of errors.
    """

    task: str
    name: str
    category: str | None
    cells: list[list[float | None] | None]


class GridAnswer(BaseModel):
    """Tasks by sides, and how many tasks there are."""

    sides: list[str]
    tasks: int
    rows: list[GridRowAnswer]


class ProviderAnswer(BaseModel):
    """A provider of models, and whether its key is set. The key itself is never shown."""

    name: str
    key_env: str
    ready: bool


class StartedAnswer(BaseModel):
    """The run that was started, stopped, resumed or deleted."""

    run: str


class UploadAnswer(BaseModel):
    """The id of the uploaded suite."""

    suite: str


class SessionAnswer(BaseModel):
    """The rights of this client, and the value of the header X-Pennyweight-Csrf."""

    right: str
    csrf: str


class ErrorAnswer(BaseModel):
    """What is wrong: a text, or a list of problems."""

    detail: Any


class UntrustedAnswer(BaseModel):
    """What a suite from the store would do; send `trust` to allow exactly this."""

    detail: str
    trust: str


class PlanAnswer(BaseModel):
    """The plan of a run: attempts, tokens and cost."""

    model_config = ConfigDict(extra="allow")
    attempts: int
    cost_usd: float | None
    cost_usd_at_least: float
    warnings: list[str]
    unsound: list[str]
    """What is wrong with the suite, as far as a look at some tasks shows."""
    subjects_named: list[str]
    tiers_named: list[str]
