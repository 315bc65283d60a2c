"""OpenAI Evals: the events of one eval for each subject and tier, in lines of JSON."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pennyweight.exports.export_format import ExportedRun, ExportFormat, RecordRow
from pennyweight.exports.values import asked, dumped, file_name, iso, side_of

_NUMBERS = ("latency_ms", "cost_usd", "judge_cost_usd", "impl_rate", "prob_correct")


@dataclass(slots=True)
class _Events:
    """The events of one subject in one tier."""

    run: ExportedRun
    side: tuple[str, str]
    file: IO[bytes]
    events: int = 0
    decided: int = 0
    passes: int = 0

    @property
    def identity(self) -> str:
        """The id of the eval. Tiers have ids of their own: their samples have the same names."""
        return file_name(self.run.id, *self.side)

    def begin(self) -> None:
        """Write what the eval is."""
        spec = {
            "completion_fns": [self.side[0]],
            "eval_name": self.run.suite,
            "base_eval": self.run.suite,
            "split": self.side[1],
            "run_config": {"completion_fns": [self.side[0]], "tier": self.side[1]},
            "created_by": "pennyweight",
            "run_id": self.identity,
            "created_at": iso(self.run.created),
        }
        self.file.write(dumped({"spec": spec}) + b"\n")

    def add(self, row: RecordRow) -> None:
        """Write the events of one attempt."""
        self._event(row, "sampling", _sampling(row))
        if row["status"] == "error":
            about = {"type": row.get("error_kind"), "message": row.get("error") or "error"}
            self._event(row, "error", about)
        elif row.get("passed") is not None:
            self.decided += 1
            self.passes += row["passed"]
            target = row.get("target")
            match = {"correct": row["passed"], "expected": target, "picked": row.get("answer")}
            self._event(row, "match", match)
        given = {name: row.get(name) for name in _NUMBERS}
        numbers = {name: value for name, value in given.items() if value is not None}
        if row["status"] != "ok":
            numbers["status"] = row["status"]
        if numbers:
            self._event(row, "metrics", numbers)

    def finish(self) -> None:
        """Write the report."""
        report = {"accuracy": self.passes / self.decided} if self.decided else {}
        self.file.write(dumped({"final_report": report}) + b"\n")

    def _event(self, row: RecordRow, kind: str, data: Any) -> None:
        if data is None:
            return
        again = f"#{row['attempt']}" if row["attempt"] > 1 else ""
        event = {
            "run_id": self.identity,
            "event_id": self.events,
            "sample_id": f"{row['task_id']}{again}",
            "type": kind,
            "data": data,
            "created_by": "",
            "created_at": iso(row.get("ended")),
        }
        self.events += 1
        self.file.write(dumped(event) + b"\n")


def write(folder: Path, run: ExportedRun, rows: Iterator[RecordRow]) -> None:
    """Write a file for each subject and tier."""
    made: dict[tuple[str, str], _Events] = {}
    with ExitStack() as files:
        for row in rows:
            side = side_of(row)
            if side not in made:
                path = folder / f"{file_name(*side)}.jsonl"
                made[side] = _Events(run, side, files.enter_context(path.open("wb")))
                made[side].begin()
            made[side].add(row)
        for one in made.values():
            one.finish()


def _sampling(row: RecordRow) -> dict[str, Any] | None:
    if row.get("response") is None:
        return None
    sent = [{"role": one.get("role"), "content": one.get("content")} for one in asked(row)]
    names = ("prompt_tokens", "completion_tokens")
    usage = {name: row[name] for name in names if row.get(name) is not None}
    if len(usage) == len(names):
        usage["total_tokens"] = sum(usage.values())
    model = row.get("model") or row["subject"]
    return {"prompt": sent, "sampled": [row["response"]], "model": model, "usage": usage}


FORMAT = ExportFormat(
    "openai-evals",
    "OpenAI Evals",
    write,
    lost="steps and tool calls, reasoning, checks, cached tokens; a repeat is a sample of its own, "
    "named `TASK#2`; cost, latency and `impl_rate` are in `metrics` events",
)
