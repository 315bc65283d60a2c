"""Keep the records of logs and files as a run in the store."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pennyweight import __version__
from pennyweight.api.sources import Given, open_store, resolve, runs_of
from pennyweight.errors import InputError, UsageError
from pennyweight.record import COLUMNS, KEY_IN_RUN, STORED, AttemptKey
from pennyweight.sources.conversion import LINE, ColumnMapping, RecordConverter
from pennyweight.sources.discovery import file_sources
from pennyweight.sources.loader import FILE, SKIP_HINT, load
from pennyweight.sources.log_source import LogSource
from pennyweight.sources.logs.registry import format_of
from pennyweight.sources.peek import Peek
from pennyweight.sources.source import Source
from pennyweight.store.store import RECORD_COLUMNS, Row, RunSettings, Store, StoredRun, now
from pennyweight.stored_runs.imported import steps_of
from pennyweight.text.safe import storable_value

if TYPE_CHECKING:
    from collections.abc import Sequence

_SUITES, _STEM = frozenset((".yaml", ".yml")), 60
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_TYPES = {column.name: column.type for column in STORED}
_NOT_KEPT = {*RECORD_COLUMNS, LINE, FILE, "start_time", "end_time", "messages"}


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """What was imported."""

    run_id: str
    records: int
    errors: int
    left_out: int
    notes: tuple[str, ...]


def import_logs(
    source: Given,
    name: str | None = None,
    *,
    map: Mapping[str, str] | None = None,  # noqa: A002
    scorer: str | None = None,
    filter: str | None = None,  # noqa: A002
    skip_bad: bool = False,
    store: str | Store | None = None,
) -> ImportedRun:
    """Keep the records of logs, or of any files, as one run, with their steps and checks.

    `name` becomes the id of the run. `scorer` and `filter` choose among the scores of a log.
    """
    opened = open_store(store)
    run_id = run_name(name, opened)
    sources = resolve(source, opened, scorer=scorer, filter=filter)
    if runs_of(sources):
        raise UsageError("A run is in a store already; 'pennyweight export' writes it to a file.")
    mapping = ColumnMapping.of(map or {})
    converter = RecordConverter(mapping, [c.name for c in COLUMNS], (), everything=True)
    run = imported_run(run_id, sources)
    keeper = RunKeeper(opened, run)
    opened.add_run(run)
    try:
        loaded = load(sources, converter, lambda frame: frame, keeper.take)
        if loaded.problem_count and not skip_bad:
            hint = SKIP_HINT if keeper.records else ""
            raise InputError(loaded.problems, loaded.problem_count, hint)
        if not keeper.records:
            raise InputError(["There are no records to import."])
        opened.set_run(run_id, **keeper.finished())
    except BaseException:
        opened.remove(run_id)
        raise
    notes = tuple(note for one in sources for note in one.notes())
    return ImportedRun(run_id, keeper.records, keeper.errors, loaded.bad_records, notes)


def import_once(
    paths: Iterable[Path], store: Store
) -> tuple[list[Path], dict[str, ImportedRun | None]]:
    """Keep each log among the paths as a run; return the other paths, and the runs.

    A log that was kept in this way before is not read again unless it changed: None.
    """
    others: list[Path] = []
    made: dict[str, ImportedRun | None] = {}
    known = {run.id for run in store.runs()}
    for path in paths:
        files = _log_files(path)
        if not files:
            others.append(path)
            continue
        stamp = [(str(f.resolve()), f.stat().st_size, f.stat().st_mtime_ns) for f in files]
        stem = re.sub(r"[^A-Za-z0-9_-]+", "-", path.resolve().stem).strip("-_")[:_STEM] or "log"
        name = f"{stem}-{hashlib.sha256(repr(stamp).encode()).hexdigest()[:8]}"
        made[name] = None if name in known else import_logs(str(path), name, store=store)
    return others, made


def _log_files(path: Path) -> list[Path]:
    """Return the files of the logs at a path; none for a folder of suites."""
    if path.is_file():
        suite = path.suffix.lower() in _SUITES and format_of(Peek.of(path)) is None
        return [] if suite else [path]
    try:
        logs = [one for one in file_sources(path) if isinstance(one, LogSource)]
    except InputError:  # an empty folder, say
        return []
    files = [file for log in logs for file in log.files]
    written = (one for one in path.rglob("*") if one.suffix.lower() in _SUITES)
    return files if set(written) <= set(files) else []


def run_name(name: str | None, store: Store) -> str:
    """Return the id of a new run: the name if it is a good one that is free, else the time."""
    if name is None:
        return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    if not is_run_name(name):
        raise UsageError(
            f"--as {name}: a name has up to 80 letters, digits, dots, dashes and underscores."
        )
    if any(run.id == name for run in store.runs()):
        raise UsageError(f"--as {name}: there is a run of this name; 'pennyweight rm' deletes it.")
    return name


def is_run_name(name: str) -> bool:
    """Whether a run may have this name."""
    return _NAME.fullmatch(name) is not None and name != "latest"


def imported_run(run_id: str, sources: Sequence[Source]) -> StoredRun:
    """Return the run that the records of sources become."""
    names = [source.name for source in sources]
    tools = sorted({one.format.name for one in sources if isinstance(one, LogSource)})
    settings: RunSettings = {"pennyweight": __version__, "log": {"tools": tools, "files": names}}
    return StoredRun(
        id=run_id, suite=", ".join(tools or _titles(names)) or "records",
        path=names[0] if names else "", text="", data_hash="", status="running", attempts=0,
        created=now(), ended=None, settings=settings,
    )  # fmt: skip


def _titles(files: Iterable[str]) -> list[str]:
    """Return the names of files as titles: without folders and endings, the first three.

    >>> _titles(["out/mmlu.jsonl.gz", "out/gsm8k.csv"])
    ['mmlu', 'gsm8k']
    """
    named = (re.split(r"[/\\]", file)[-1] for file in files)
    return list(dict.fromkeys(name.partition(".")[0] or name for name in named))[:3]


@dataclass(slots=True)
class RunKeeper:
    """Writes records to the store as they are read."""

    store: Store
    run: StoredRun
    records: int = 0
    errors: int = 0
    seen: dict[tuple[str, str, str], set[int]] = field(default_factory=dict)
    """The attempts of each subject, tier and task."""
    subjects: dict[str, None] = field(default_factory=dict)
    tiers: dict[str, None] = field(default_factory=dict)
    suites: dict[str, None] = field(default_factory=dict)
    claimed: set[AttemptKey] = field(default_factory=set)
    """The attempts that records have before they are written."""

    @classmethod
    def resumed(cls, store: Store, run: StoredRun) -> RunKeeper:
        """Return what writes further records to a run."""
        made = cls(store, run)
        for key, (_, status) in store.attempts(run.id).items():
            made.records += 1
            made.errors += status == "error"
            made.seen.setdefault((key.subject, key.tier, key.task_id), set()).add(key.attempt)
            made.subjects.setdefault(key.subject)
            made.tiers.setdefault(key.tier)
        return made

    def claim(self, row: dict[str, Any], known: Sequence[AttemptKey] = ()) -> AttemptKey:
        """Number a record: as the next attempt, or as the one that it replaces."""
        if known:
            key = known[0]
        else:
            subject, tier = str(row.get("subject") or "unknown"), str(row.get("tier") or "T0")
            side = AttemptKey(self.run.id, subject, tier, str(row["task_id"]), 0)
            made = {one.attempt for one in self.claimed if one._replace(attempt=0) == side}
            made |= self.seen.get(side[1:4], set())
            key = side._replace(attempt=max(made, default=0) + 1)
        self.claimed.add(key)
        row |= {name: value for name, value in key._asdict().items() if name != "run"}
        return key

    def take(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Write a chunk; nothing of it stays in memory."""
        self.store.write([self._row(row) for row in frame.iter_rows(named=True)], ())
        return frame.clear()

    def finished(self) -> dict[str, Any]:
        """Return what changes in the run when all is written."""
        settings: RunSettings = {
            **self.run.settings,
            "subjects": list(self.subjects),
            "tiers": list(self.tiers),
            "tasks": len({key[2] for key in self.seen}),
            "runs": max(map(len, self.seen.values())),
        }
        suite = ", ".join(list(self.suites)[:3]) or self.run.suite
        return {"status": "done", "attempts": self.records, "ended": now(), "suite": suite,
                "settings": settings}  # fmt: skip

    def _row(self, row: dict[str, Any]) -> Row:
        self.records += 1
        self.errors += row["status"] == "error"
        asked, steps = steps_of(_json(row.get("messages")))
        kept = {name: row.get(name) for name in RECORD_COLUMNS}
        kept |= self._key(row)
        kept |= {
            "status": row["status"] or "ok",
            "started": row.get("start_time"),
            "ended": row.get("end_time"),
            "messages": asked,
            "work": {"turns": steps} if steps else row.get("work"),
            "extra": {n: v for n, v in row.items() if v is not None and n not in _NOT_KEPT} or None,
        }
        kept["fingerprint"] = _hash(kept[name] for name in (*KEY_IN_RUN, "input", "response"))
        return tuple(_stored(name, kept[name]) for name in RECORD_COLUMNS)

    def _key(self, row: Mapping[str, Any]) -> dict[str, Any]:
        side = (row["subject"] or "unknown", row["tier"] or "T0")
        task = row["task_id"] or f"record-{self.records}"
        made = self.seen.setdefault((*side, task), set())
        attempt = row["attempt"] or 1
        if (key := AttemptKey(self.run.id, *side, task, attempt)) in self.claimed:
            self.claimed.discard(key)
            self.records -= attempt in made
        elif attempt in made:  # in another log
            attempt = max(made) + 1
        made.add(attempt)
        self.subjects.setdefault(side[0])
        self.tiers.setdefault(side[1])
        if row.get("suite"):
            self.suites.setdefault(str(row["suite"]))
        return AttemptKey(self.run.id, *side, task, attempt)._asdict()


def _hash(values: Iterable[Any]) -> str:
    text = "\0".join(map(str, values)).encode("utf-8", "replace")
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def _json(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return None


def _stored(name: str, value: Any) -> Any:
    """Return a cell as the store's table holds it."""
    if value is None:
        return None
    match _TYPES[name]:
        case "string":
            held = storable_value(value)
            return held if isinstance(held, str) else json.dumps(held, ensure_ascii=False)
        case "boolean":
            return value if isinstance(value, bool) else None
        case "integer":
            return int(value) if isinstance(value, int | float) else None
    return float(value) if isinstance(value, int | float) else None
