"""The tables of a store. One schema serves SQLite and PostgreSQL."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    event,
)
from sqlalchemy.types import UserDefinedType

from pennyweight.record import KEY, STORED
from pennyweight.record import Column as Declared

METADATA = MetaData()

INDEX_ORDER = ("run", "task_id", "subject", "tier", "attempt")
"""The key columns as the primary keys order them.

Code uses the order of `AttemptKey`. The index has the task first, so that the attempts at one task
are adjacent: they are read together, and pages of records follow the index.
"""

_TYPES: dict[str, Any] = {
    "string": Text,
    "integer": BigInteger,
    "number": Double,
    "boolean": Boolean,
}


class _Lexemes(UserDefinedType[str]):
    """PostgreSQL's tsvector. SQLAlchemy's own type loads its whole dialect, which is slow."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """Return the type in SQL."""
        return "TSVECTOR"


def _column(declared: Declared) -> Column[Any]:
    narrow = declared.type == "integer" and declared.bits == 32
    type_ = Integer if narrow else _TYPES[declared.type]
    return Column(declared.name, type_, nullable=declared.nullable)


def _required(type_: Any, *names: str) -> list[Column[Any]]:
    return [Column(name, type_, nullable=False) for name in names]


def _optional(type_: Any, *names: str) -> list[Column[Any]]:
    return [Column(name, type_) for name in names]


def _key() -> list[Column[Any]]:
    return [_column(declared) for declared in STORED if declared.name in KEY]


META = Table("pennyweight_meta", METADATA, Column("version", Integer, nullable=False))

RUN = Table(
    "pennyweight_run",
    METADATA,
    Column("id", Text, primary_key=True),
    *_required(Text, "suite", "path", "text", "data_hash", "status"),
    Column("attempts", BigInteger, nullable=False),
    Column("created", Double, nullable=False),
    Column("ended", Double),
    Column("settings", Text, nullable=False),
    Column("owner", Text),
    Column("beat", Double),
)
"""`owner` and `beat` are the lease: the process that makes a run, and its last heartbeat."""

RECORD = Table(
    "pennyweight_record", METADATA, *map(_column, STORED), PrimaryKeyConstraint(*INDEX_ORDER)
)

ASIDE = Table(
    "pennyweight_aside",
    METADATA,
    *map(_column, STORED),
    PrimaryKeyConstraint(*INDEX_ORDER, "fingerprint"),
)
"""Records that a changed suite no longer asks for. They were paid for and may return."""

JUDGMENT = Table(
    "pennyweight_judgment",
    METADATA,
    *_key(),
    *_required(Text, "judge", "fingerprint", "status"),
    Column("error", Text),
    Column("score", Double),
    Column("passed", Boolean),
    *_optional(Double, "confidence", "claimed_score"),
    Column("claimed_passed", Boolean),
    *_optional(Text, "items", "reply"),
    Column("tries", Integer),
    *_optional(BigInteger, "prompt_tokens", "completion_tokens"),
    *_optional(Double, "cost_usd", "latency_ms"),
    Column("at", Double, nullable=False),
    PrimaryKeyConstraint(*INDEX_ORDER, "judge", "fingerprint"),
)
"""A judge's judgment of an attempt, item by item. Each rubric has a judgment of its own."""

CALL = Table(
    "pennyweight_call",
    METADATA,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    *_required(Text, "run", "kind", "subject", "tier", "task_id"),
    Column("attempt", Integer, nullable=False),
    Column("model", Text),
    Column("status", Text, nullable=False),
    *_optional(BigInteger, "prompt_tokens", "completion_tokens"),
    *_optional(Double, "cost_usd", "latency_ms"),
    Column("at", Double, nullable=False),
    Column("held_usd", Double),
    Column("held_tokens", BigInteger),
    Index("pennyweight_call_run", "run"),
    Index("pennyweight_call_newest", "run", "id").ddl_if(dialect="postgresql"),
    sqlite_autoincrement=True,
)
"""The ledger: a row for each call, whether or not its reply was usable."""

BATCH = Table(
    "pennyweight_batch",
    METADATA,
    Column("id", Text, primary_key=True),
    *_required(Text, "run", "kind", "subject", "state"),
    Column("handle", Text),
    *_required(BigInteger, "requests", "done"),
    *_required(Double, "held_usd", "at"),
    Column("held_tokens", BigInteger, nullable=False),
    Column("problem", Text),
    Index("pennyweight_batch_run", "run"),
)
"""A batch at a provider. Its `id` is also its name there, and `handle` the provider's id of it.

`kind` and `subject` say who asks: the attempts of a subject, or a judge. `state` is `preparing`,
`ready`, `submitting`, `out`, `ended` or `dropped`; `at` is when it was submitted.
"""

REQUEST = Table(
    "pennyweight_request",
    METADATA,
    *_key(),
    *_required(Text, "id", "batch", "state"),
    Column("attempts", Integer, nullable=False),
    Column("held_usd", Double),
    Column("held_tokens", BigInteger),
    *_optional(Text, "error_kind", "error", "body"),
    PrimaryKeyConstraint("run", "id"),
    Index("pennyweight_request_batch", "batch"),
)
"""A request in a batch, by the id that it has there, and the provider's reply as JSON.

`state` is `out`, `answered`, `failed` (the next batch has it again), `refused` or `told`;
`attempts` counts the batches that it was in.
"""

MEASURED = Table(
    "pennyweight_measured",
    METADATA,
    *_key(),
    *_optional(Text, "status", "category", "capability", "answer"),
    *_optional(Boolean, "correct", "passed", "truncated", "self_correcting"),
    Column("prob_correct", Double),
    *_optional(BigInteger, "cot_tokens", "step_count"),
    Column("ra_ratio", Double),
    *_optional(BigInteger, "prompt_tokens", "completion_tokens", "total_tokens"),
    *_optional(Double, "latency_ms", "cost_usd", "duration_seconds", "impl_rate", "scenario_score"),
    Column("violations", BigInteger),
    Column("composite_score", Double),
    Column("failed", Text),
    PrimaryKeyConstraint(*INDEX_ORDER),
    sqlite_with_rowid=False,
)
"""The measures of records, cached for filters; `failed` names checks and items of the rubric."""

DIGEST = Table(
    "pennyweight_digest",
    METADATA,
    Column("run", Text, primary_key=True),
    Column("stamp", Text, nullable=False),
    Column("metric", Text),
    *_optional(Double, "value", "low", "high"),
    *_required(BigInteger, "records", "errors"),
    Column("cost_usd", Double),
    Column("data", Text, nullable=False),
    Column("sides", Text),
)
"""The digest of a run, cached for pages; `value` is the headline of the best of its `sides`."""

GRID = Table(
    "pennyweight_grid",
    METADATA,
    *_required(Text, "run", "sides", "task_id"),
    Column("category", Text),
    *_optional(Double, "mean", "agreement"),
    *_required(Boolean, "differs", "wrong", "flaky"),
    Column("cells", Text, nullable=False),
    Column("made", Double, nullable=False),
    PrimaryKeyConstraint("run", "sides", "task_id"),
    Index("pennyweight_grid_mean", "run", "sides", "mean", "task_id"),
    Index("pennyweight_grid_agreement", "run", "sides", "agreement", "task_id"),
    Index("pennyweight_grid_category", "run", "sides", "category", "task_id"),
)
"""The tasks of a run with the result of each side, cached for the grid.

`sides` names the columns that tell the sides apart. `agreement` is minus the standard deviation of
the sides' results: 0 where all sides agree.
"""

LABEL = Table(
    "pennyweight_label",
    METADATA,
    Column("run", Text, primary_key=True),
    Column("title", Text),
    Column("archived", Boolean, nullable=False),
)
"""The title that people gave a run, and whether lists leave it out."""

DECISION = Table(
    "pennyweight_decision",
    METADATA,
    Column("run", Text, primary_key=True),
    Column("policy", Text, primary_key=True),
    Column("side", Text, primary_key=True),
    *_required(Text, "verdict", "stamp"),
    Column("at", Double, nullable=False),
)
"""The latest verdict of a policy on a side of a run, with the stamp of the run's state."""

SCENARIO = Table(
    "pennyweight_scenario",
    METADATA,
    *_required(Text, "run", "task_id", "scenario"),
    PrimaryKeyConstraint("run", "task_id"),
)
"""The scenarios: what the attempts at each task are checked for."""

VERDICT = Table(
    "pennyweight_verdict",
    METADATA,
    *_key(),
    *_required(Text, "mark", "who", "said_of"),
    *_optional(Boolean, "holds", "error"),
    *_optional(Text, "why", "evidence"),
    Column("at", Double, nullable=False),
    PrimaryKeyConstraint(*INDEX_ORDER, "mark", "who"),
    Index("pennyweight_verdict_newest", "run", "at"),
)
"""Verdicts about behaviours by code, a judge or a person, which no record contains."""

SEARCH = Table(
    "pennyweight_search",
    METADATA,
    Column("place", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("run", Text, nullable=False),
    Column("stamp", Text),
    Column("at", Double, nullable=False),
    Index("pennyweight_search_run", "run"),
    sqlite_autoincrement=True,
)
"""The full-text indexes of runs. `stamp` is the state of the run; null until the index is ready."""

WORDS = Table(
    "pennyweight_words",
    METADATA,
    Column("place", BigInteger, nullable=False),
    Column("n", BigInteger, nullable=False),
    *_key(),
    Column("words", _Lexemes().with_variant(Text, "sqlite")),
    PrimaryKeyConstraint("place", "n"),
)
"""The number of each record in an index, and its words in PostgreSQL; SQLite has FTS5 tables."""


def _index_words(_: Table, connection: Connection, **__: Any) -> None:
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(
            f"CREATE INDEX pennyweight_words_gin ON {WORDS.name} USING gin (words)"
        )


event.listen(WORDS, "after_create", _index_words)

SCORE = Table(
    "pennyweight_score",
    METADATA,
    *_key(),
    *_required(Text, "scorer", "mark", "request", "given"),
    Column("error", Text),
    PrimaryKeyConstraint(*INDEX_ORDER, "scorer"),
)
"""What a scorer gave an attempt: scores by name, as JSON, or the error that it raised.

`mark` is a hash of the scorer and of what it read; `request` is the fingerprint of the record.
"""

REMARK = Table(
    "pennyweight_remark",
    METADATA,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("run", Text, nullable=False),
    *_optional(Text, "task_id", "subject", "tier"),
    Column("attempt", Integer),
    *_optional(Text, "verdict", "note", "tags"),
    Column("who", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("draw", Text),
    Index("pennyweight_remark_run", "run"),
    Index("pennyweight_remark_record", *INDEX_ORDER),
    sqlite_autoincrement=True,
)
"""Remarks of people about a record, or about a whole run if no task is named.

`draw` says how a review queue chose the record; it is null where a person did.
"""

SHARE = Table(
    "pennyweight_share",
    METADATA,
    Column("run", Text, primary_key=True),
    *_required(Text, "plan", "owner"),
    Column("began", Double, nullable=False),
)
"""The runs that workers make together: a hash of the plan, who put it up, and when."""

QUEUE = Table(
    "pennyweight_queue",
    METADATA,
    Column("run", Text, primary_key=True),
    Column("subject", Text, primary_key=True),
    *_required(BigInteger, "next", "total"),
)
"""The attempts of a subject that no worker has taken yet: those from `next` on."""

PORTION = Table(
    "pennyweight_portion",
    METADATA,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    *_required(Text, "run", "subject"),
    *_required(BigInteger, "first", "last"),
    Column("worker", Text),
    Index("pennyweight_portion_run", "run"),
    sqlite_autoincrement=True,
)
"""Attempts that a worker has taken, or has given back (`worker` is null)."""

TURN = Table(
    "pennyweight_turn",
    METADATA,
    Column("run", Text, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("next", Double, nullable=False),
)
"""When the next request, or token, of an account may be sent by the workers of a run."""

WORKER = Table(
    "pennyweight_worker",
    METADATA,
    Column("id", Text, primary_key=True),
    *_required(Text, "run", "owner"),
    Column("beat", Double, nullable=False),
    Column("places", Integer, nullable=False),
    Index("pennyweight_worker_run", "run"),
)
"""The workers of a run, each with its last sign of life and its share of the concurrency."""
