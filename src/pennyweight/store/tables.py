"""The tables of a store. One schema serves SQLite and PostgreSQL."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
)

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


def _column(declared: Declared) -> Column[Any]:
    narrow = declared.type == "integer" and declared.bits == 32
    type_ = Integer if narrow else _TYPES[declared.type]
    return Column(declared.name, type_, nullable=declared.nullable)


def _key() -> list[Column[Any]]:
    return [_column(declared) for declared in STORED if declared.name in KEY]


META = Table("pennyweight_meta", METADATA, Column("version", Integer, nullable=False))

RUN = Table(
    "pennyweight_run",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("suite", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("data_hash", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("attempts", BigInteger, nullable=False),
    Column("created", Double, nullable=False),
    Column("ended", Double),
    Column("settings", Text, nullable=False),
    Column("owner", Text),
    Column("beat", Double),
)
"""`owner` and `beat` are the lease: the process that makes a run, and its last heartbeat."""

RECORD = Table(
    "pennyweight_record",
    METADATA,
    *map(_column, STORED),
    PrimaryKeyConstraint(*INDEX_ORDER),
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
    Column("judge", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("error", Text),
    Column("score", Double),
    Column("passed", Boolean),
    Column("confidence", Double),
    Column("claimed_score", Double),
    Column("claimed_passed", Boolean),
    Column("items", Text),
    Column("reply", Text),
    Column("tries", Integer),
    Column("prompt_tokens", BigInteger),
    Column("completion_tokens", BigInteger),
    Column("cost_usd", Double),
    Column("latency_ms", Double),
    Column("at", Double, nullable=False),
    PrimaryKeyConstraint(*INDEX_ORDER, "judge", "fingerprint"),
)
"""A judge's judgment of an attempt, item by item. Each rubric has a judgment of its own."""

CALL = Table(
    "pennyweight_call",
    METADATA,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("run", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("tier", Text, nullable=False),
    Column("task_id", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("model", Text),
    Column("status", Text, nullable=False),
    Column("prompt_tokens", BigInteger),
    Column("completion_tokens", BigInteger),
    Column("cost_usd", Double),
    Column("latency_ms", Double),
    Column("at", Double, nullable=False),
    Column("held_usd", Double),
    Column("held_tokens", BigInteger),
    Index("pennyweight_call_run", "run"),
    Index("pennyweight_call_newest", "run", "id").ddl_if(dialect="postgresql"),
    sqlite_autoincrement=True,
)
"""The ledger: a row for each call, whether or not its reply was usable."""

MEASURED = Table(
    "pennyweight_measured",
    METADATA,
    *_key(),
    Column("status", Text),
    Column("category", Text),
    Column("capability", Text),
    Column("answer", Text),
    Column("correct", Boolean),
    Column("passed", Boolean),
    Column("truncated", Boolean),
    Column("self_correcting", Boolean),
    Column("prob_correct", Double),
    Column("cot_tokens", BigInteger),
    Column("step_count", BigInteger),
    Column("ra_ratio", Double),
    Column("prompt_tokens", BigInteger),
    Column("completion_tokens", BigInteger),
    Column("total_tokens", BigInteger),
    Column("latency_ms", Double),
    Column("cost_usd", Double),
    Column("duration_seconds", Double),
    Column("impl_rate", Double),
    Column("scenario_score", Double),
    Column("violations", BigInteger),
    Column("composite_score", Double),
    PrimaryKeyConstraint(*INDEX_ORDER),
    sqlite_with_rowid=False,
)
"""The measures of records, cached for filters."""

DIGEST = Table(
    "pennyweight_digest",
    METADATA,
    Column("run", Text, primary_key=True),
    Column("stamp", Text, nullable=False),
    Column("metric", Text),
    Column("value", Double),
    Column("low", Double),
    Column("high", Double),
    Column("records", BigInteger, nullable=False),
    Column("errors", BigInteger, nullable=False),
    Column("cost_usd", Double),
    Column("data", Text, nullable=False),
)
"""The digest of a run, cached for pages."""

DECISION = Table(
    "pennyweight_decision",
    METADATA,
    Column("run", Text, primary_key=True),
    Column("policy", Text, primary_key=True),
    Column("side", Text, primary_key=True),
    Column("verdict", Text, nullable=False),
    Column("stamp", Text, nullable=False),
    Column("at", Double, nullable=False),
)
"""The latest verdict of a policy on a side of a run, with the stamp of the run's state."""

SCENARIO = Table(
    "pennyweight_scenario",
    METADATA,
    Column("run", Text, nullable=False),
    Column("task_id", Text, nullable=False),
    Column("scenario", Text, nullable=False),
    PrimaryKeyConstraint("run", "task_id"),
)
"""The scenarios: what the attempts at each task are checked for."""

VERDICT = Table(
    "pennyweight_verdict",
    METADATA,
    *_key(),
    Column("mark", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("said_of", Text, nullable=False),
    Column("holds", Boolean),
    Column("error", Boolean),
    Column("why", Text),
    Column("evidence", Text),
    Column("at", Double, nullable=False),
    PrimaryKeyConstraint(*INDEX_ORDER, "mark", "who"),
    Index("pennyweight_verdict_newest", "run", "at"),
)
"""Verdicts about behaviours by code, a judge or a person, which no record contains."""

REMARK = Table(
    "pennyweight_remark",
    METADATA,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("run", Text, nullable=False),
    Column("task_id", Text),
    Column("subject", Text),
    Column("tier", Text),
    Column("attempt", Integer),
    Column("verdict", Text),
    Column("note", Text),
    Column("tags", Text),
    Column("who", Text, nullable=False),
    Column("at", Double, nullable=False),
    Index("pennyweight_remark_run", "run"),
    sqlite_autoincrement=True,
)
"""Remarks of people about a record, or about a whole run if no task is named."""
