"""The tables of a store. One schema serves SQLite and PostgreSQL."""

from __future__ import annotations

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

METADATA = MetaData()

META = Table("assay_meta", METADATA, Column("version", Integer, nullable=False))

RUN = Table(
    "assay_run",
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
)

RECORD = Table(
    "assay_record",
    METADATA,
    Column("run", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("tier", Text, nullable=False),
    Column("task_id", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("error", Text),
    Column("error_kind", Text),
    Column("model", Text),
    Column("input", Text),
    Column("messages", Text),
    Column("target", Text),
    Column("category", Text),
    Column("capability", Text),
    Column("response", Text),
    Column("reasoning", Text),
    Column("tool_calls", Text),
    Column("logprobs", Text),
    Column("finish", Text),
    Column("truncated", Boolean),
    Column("refused", Boolean),
    Column("seed", BigInteger),
    Column("prompt_tokens", BigInteger),
    Column("completion_tokens", BigInteger),
    Column("cached_tokens", BigInteger),
    Column("reasoning_tokens", BigInteger),
    Column("latency_ms", Double),
    Column("wait_ms", Double),
    Column("tries", Integer),
    Column("cost_usd", Double),
    Column("input_price", Double),
    Column("output_price", Double),
    Column("duration_seconds", Double),
    Column("started", Double),
    Column("ended", Double),
    Column("pass_score", Double),
    Column("extra", Text),
    PrimaryKeyConstraint("run", "task_id", "subject", "tier", "attempt"),
)

CALL = Table(
    "assay_call",
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
    Index("assay_call_run", "run"),
    sqlite_autoincrement=True,
)
"""The ledger: a row for each call that was made, whether or not its answer was of use."""
