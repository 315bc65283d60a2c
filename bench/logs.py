"""Logs of other tools: speed relative to the tools' own readers, and memory for large ones.

Speed is by CPU time, which others on the machine disturb least: reading is one thread's work.
`python -m bench.readers` installs the tools; without one its row is left out, and a line says so.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import log_files
from bench.measure import PENNYWEIGHT, Result, spend
from bench.readers import PINNED, interpreter

_GIGABYTE = 10**9
_TIMED = """
import sys, time
from pathlib import Path
{imports}
path = Path(sys.argv[1])
start = time.process_time()
{read}
print(time.process_time() - start)
"""


@dataclass(frozen=True)
class Reader:
    """A tool that reads its own logs, in Python."""

    name: str
    write: Callable[[Path, int], None]
    records: int
    imports: str
    read: str
    ending: str = ".json"

    def seconds(self, path: Path) -> float | None:
        """Return how long the tool takes to read a log; None if it is not installed."""
        python = interpreter(self.name)
        if python is None:
            return None
        code = _TIMED.format(imports=self.imports, read=self.read)
        command = [str(python), "-c", code, str(path)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return float(done.stdout.split()[-1])


READERS = (
    Reader(
        "inspect-ai", log_files.inspect_eval, 4_000,
        "from inspect_ai.log import read_eval_log", "read_eval_log(str(path))", ".eval",
    ),
    Reader(
        "pydantic-evals", log_files.pydantic_report, 20_000,
        "from pydantic_evals.reporting import EvaluationReportAdapter",
        "EvaluationReportAdapter.validate_json(path.read_bytes())",
    ),
    Reader(
        "deepeval", log_files.deepeval_run, 20_000,
        "from deepeval.test_run.test_run import TestRun", "TestRun.load(path.open())",
    ),
)  # fmt: skip


def run() -> Iterator[Result]:
    """Measure all."""
    with tempfile.TemporaryDirectory(prefix="pennyweight-bench-") as folder:
        yield from _speed(Path(folder))
        yield from _own_readers(Path(folder))
        yield from _memory(Path(folder))


def _score(path: Path) -> list[str]:
    return [*PENNYWEIGHT, "score", str(path), "--metric", "pass_rate", "--format", "json"]


def _per_second(path: Path, records: int, small: Path) -> float:
    """Return how many records are read and scored in a second of CPU time, without starting."""
    start, whole = (min(spend(_score(one)).cpu for _ in range(3)) for one in (small, path))
    return records / max(1e-6, whole - start)


def _speed(folder: Path) -> Iterator[Result]:
    path, small = folder / "large.eval", folder / "small.eval"
    log_files.inspect_eval(path, 100_000)
    log_files.inspect_eval(small, 10)
    rate = _per_second(path, 100_000, small)
    yield Result("logs, Inspect AI .eval, samples a second", rate, 25_000, "", True)
    path.unlink()
    path, small = folder / "large.jsonl", folder / "small.jsonl"
    log_files.otel_traces(path, 20_000)
    log_files.otel_traces(small, 10)
    rate = 4 * _per_second(path, 20_000, small)
    yield Result("logs, OpenTelemetry, spans a second", rate, 20_000, "", True)
    path.unlink()


def _own_readers(folder: Path) -> Iterator[Result]:
    """Compare with the tools' own readers: only reading, without starting, on the same file."""
    for reader in READERS:
        path, small = (folder / f"{reader.name}-{n}{reader.ending}" for n in (reader.records, 10))
        reader.write(path, reader.records)
        reader.write(small, 10)
        theirs = reader.seconds(path)
        if theirs is None:
            print(f"{reader.name} {PINNED[reader.name]} is not installed: no row for it.")
            continue
        ours = reader.records / _per_second(path, reader.records, small)
        rates = [f"{reader.records / one:,.0f}" for one in (theirs, ours)]
        print(f"{reader.name}: {rates[0]} records a second by its own reader, {rates[1]} by ours")
        yield Result(f"logs, speed relative to {reader.name}", theirs / ours, 10, " ×", True)


def _memory(folder: Path) -> Iterator[Result]:
    """Read logs that are larger than what may be held."""
    tried: tuple[tuple[str, str, Callable[[Path], None]], ...] = (
        ("one sample of 500 MB", "one.eval",
         lambda path: log_files.inspect_large_sample(path, _GIGABYTE // 2)),
        ("an .eval of 1 GB", "large.eval",
         lambda path: log_files.inspect_eval(path, 200_000, noise=4_400)),
        ("promptfoo JSONL of 3 GB", "large.jsonl",
         lambda path: log_files.promptfoo_lines(path, 3 * _GIGABYTE)),
    )  # fmt: skip
    for what, name, write in tried:
        path = folder / name
        write(path)
        spent = spend(_score(path))
        size = path.stat().st_size
        print(f"{what}, {size / 1e6:,.0f} MB on disk: {spent.seconds:.1f} s")
        path.unlink()
        yield Result(f"logs, memory for {what}", spent.mebibytes, 768, " MiB")


def main() -> None:
    """Print the results as JSON."""
    print(json.dumps([str(one) for one in run()], ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main()
