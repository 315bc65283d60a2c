"""The requests and answers of the API, as its OpenAPI description shows them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Name = Annotated[str, StringConstraints(max_length=80, strip_whitespace=True)]
Long = Annotated[str, StringConstraints(max_length=20_000)]


class RequestForm(BaseModel):
    """A request. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class RunForm(RequestForm):
    """A suite, and how to run it: subjects, tiers, attempts per task, a cost limit."""

    suite: Annotated[str, StringConstraints(max_length=80)]
    subjects: Annotated[list[Name], Field(max_length=100)] = []
    tiers: Annotated[list[Name], Field(max_length=100)] = []
    runs: Annotated[int, Field(ge=1, le=10_000)] | None = None
    usd: Annotated[float, Field(gt=0, le=1e9)] | None = None


class RemarkForm(RequestForm):
    """A person's verdict or note about a record."""

    key: Annotated[str, StringConstraints(max_length=20_000)]
    verdict: Literal["right", "wrong", "unsure"] | None = None
    note: Long | None = None
    who: Name = ""


class TagForm(RequestForm):
    """A note about a run, or its tags: `tags` replaces all, `add` and `remove` change some."""

    tags: Annotated[list[Name], Field(max_length=20)] | None = None
    add: Annotated[list[Name], Field(max_length=20)] = []
    remove: Annotated[list[Name], Field(max_length=20)] = []
    note: Long | None = None
    who: Name = ""


class VerdictForm(RequestForm):
    """A policy by its id, and the side of a run to decide on.

    A policy that compares requires a baseline: `run:ID` for a run, `kept:NAME` for a saved one.
    """

    policy: Annotated[str, StringConstraints(max_length=80)]
    subject: Annotated[str, StringConstraints(max_length=2_000)] | None = None
    tier: Annotated[str, StringConstraints(max_length=2_000)] | None = None
    baseline: Annotated[str, StringConstraints(max_length=300)] | None = None


class VerdictAnswer(BaseModel):
    """The verdict of a policy on a side of a run; `decided` is false if the run changed since."""

    policy: str
    side: str
    verdict: Literal["pass", "fail", "inconclusive"]
    decided: bool


class RunAnswer(BaseModel):
    """A run with its headline metric and its worst verdict.

    `decided` is false if the run changed after that verdict; `verdicts` lists all of them.
    `problem` says why the metrics cannot be computed.
    """

    id: str
    suite: str
    status: str
    subjects: list[str]
    tiers: list[str]
    attempts: int
    created: float
    ended: float | None
    metric: str | None
    value: float | None
    low: float | None
    high: float | None
    records: int | None
    errors: int | None
    cost_usd: float | None
    tags: list[str]
    note: str | None
    verdict: Literal["pass", "fail", "inconclusive"] | None
    policy: str | None
    side: str | None
    decided: bool | None
    verdicts: list[VerdictAnswer]
    problem: str | None


class RunsAnswer(BaseModel):
    """All runs, the newest first. The metrics of the runs in `waiting` are being computed."""

    runs: list[RunAnswer]
    waiting: list[str]


class ProgressAnswer(BaseModel):
    """The progress of a run. `here`: this server runs it. `shown` changes with its metrics."""

    run: str
    status: str
    made: int
    attempts: int
    errors: int | None
    cost_usd: float | None
    here: bool
    digest: bool
    digest_done: float | None
    problem: str
    shown: str
    said: str
    took: float


class DigestAnswer(BaseModel):
    """The metrics of a run and the data of its charts; null while they are being computed."""

    current: bool
    problem: str
    digest: dict[str, Any] | None


class RecordsAnswer(BaseModel):
    """A page of records. Pass `after` or `before` to get the next or the previous page."""

    records: list[dict[str, Any]]
    after: str | None
    before: str | None


class CountAnswer(BaseModel):
    """The number of records that match a filter; `more` is true if there are more than `count`."""

    count: int
    more: bool


class RecordAnswer(BaseModel):
    """One record in full, with its measures, checks, judgments and remarks."""

    record: dict[str, Any]
    measures: dict[str, Any]
    checks: list[dict[str, Any]]
    judgments: list[dict[str, Any]]
    remarks: list[dict[str, Any]]


class SuiteAnswer(BaseModel):
    """A suite that can be run."""

    id: str
    name: str
    uploaded: bool


class ProviderAnswer(BaseModel):
    """A provider of models, and whether its key is set. The key itself is never shown."""

    name: str
    key_env: str
    ready: bool


class StartedAnswer(BaseModel):
    """The run that was started, stopped or resumed."""

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


class PlanAnswer(BaseModel):
    """The plan of a run: attempts, tokens and cost."""

    model_config = ConfigDict(extra="allow")
    attempts: int
    cost_usd: float | None
    cost_usd_at_least: float
    warnings: list[str]
    subjects_named: list[str]
    tiers_named: list[str]
