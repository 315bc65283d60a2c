"""What the API takes and gives, as its description has it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Name = Annotated[str, StringConstraints(max_length=80, strip_whitespace=True)]
Long = Annotated[str, StringConstraints(max_length=20_000)]


class Form(BaseModel):
    """What is taken: nothing unknown."""

    model_config = ConfigDict(extra="forbid")


class RunForm(Form):
    """A suite as it is to be run."""

    suite: Annotated[str, StringConstraints(max_length=80)]
    subjects: Annotated[list[Name], Field(max_length=100)] = []
    tiers: Annotated[list[Name], Field(max_length=100)] = []
    runs: Annotated[int, Field(ge=1, le=10_000)] | None = None
    usd: Annotated[float, Field(gt=0, le=1e9)] | None = None


class RemarkForm(Form):
    """What a person says about a record."""

    key: Annotated[str, StringConstraints(max_length=20_000)]
    verdict: Literal["right", "wrong", "unsure"] | None = None
    note: Long | None = None
    who: Name = ""


class TagForm(Form):
    """What a person says about a run: all tags anew, or which come and which go, or a note."""

    tags: Annotated[list[Name], Field(max_length=20)] | None = None
    add: Annotated[list[Name], Field(max_length=20)] = []
    remove: Annotated[list[Name], Field(max_length=20)] = []
    note: Long | None = None
    who: Name = ""


class VerdictForm(Form):
    """A policy, by its id, and the side of a run that it is to decide on.

    A policy that compares needs a baseline: `run:ID`, or `kept:NAME`.
    """

    policy: Annotated[str, StringConstraints(max_length=80)]
    subject: Annotated[str, StringConstraints(max_length=2_000)] | None = None
    tier: Annotated[str, StringConstraints(max_length=2_000)] | None = None
    baseline: Annotated[str, StringConstraints(max_length=300)] | None = None


class Decision(BaseModel):
    """What a policy said about a side of a run; not `decided` where the run went on since."""

    policy: str
    side: str
    verdict: Literal["pass", "fail", "inconclusive"]
    decided: bool


class ListedRun(BaseModel):
    """A run with the metric that stands for it, and the worst verdict that gates gave.

    `decided` is false where the run went on after that verdict; `verdicts` are all of them.
    `problem` says why there are no metrics.
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
    verdicts: list[Decision]
    problem: str | None


class Runs(BaseModel):
    """The runs, the newest first; `waiting` are being computed."""

    runs: list[ListedRun]
    waiting: list[str]


class Progress(BaseModel):
    """How far a run is; `shown` changes with the metrics that there are of it."""

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


class Digest(BaseModel):
    """The scores of a run and the numbers behind its charts; null while they are computed."""

    current: bool
    problem: str
    digest: dict[str, Any] | None


class Records(BaseModel):
    """A page of records; `after` and `before` lead to the next and the last one."""

    records: list[dict[str, Any]]
    after: str | None
    before: str | None


class Count(BaseModel):
    """How many records a filter finds; `more` if there are more than that."""

    count: int
    more: bool


class Record(BaseModel):
    """One record in full."""

    record: dict[str, Any]
    measures: dict[str, Any]
    checks: list[dict[str, Any]]
    judgments: list[dict[str, Any]]
    remarks: list[dict[str, Any]]


class Suite(BaseModel):
    """A suite that can be run."""

    id: str
    name: str
    uploaded: bool


class Provider(BaseModel):
    """Who serves models, and whether its key is there; the key itself is never told."""

    name: str
    key_env: str
    ready: bool


class Started(BaseModel):
    """The run that was begun."""

    run: str


class Uploaded(BaseModel):
    """The suite that was kept."""

    suite: str


class Session(BaseModel):
    """What this client may do, and what its changes must bring along."""

    right: str
    csrf: str


class Problem(BaseModel):
    """What was wrong."""

    detail: Any


class Plan(BaseModel):
    """What a run would take."""

    model_config = ConfigDict(extra="allow")
    attempts: int
    cost_usd: float | None
    cost_usd_at_least: float
    warnings: list[str]
    subjects_named: list[str]
    tiers_named: list[str]
