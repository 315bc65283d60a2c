"""The same records in every form in which Pennyweight reads them."""

import csv
import gzip
import io
import json
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
import pytest
import zstandard

Record = dict[str, Any]

COTS = (
    "1. Add.\n2. Check, “twice”; then\tdone.",
    "Actually,\r\nno — ça va? 你好 😀",
    'He said "four"\n',
)

RECORDS: list[Record] = [
    {
        "id": f"tâsk-{i // 2}",
        "attempt": i % 2 + 1,
        "model": "m1" if i % 3 else "m2",
        "target": "1,000" if i % 4 else "naïve; 😀",
        "prediction": "1e3" if i % 5 else None,
        "reasoning": COTS[i % 3] if i % 7 else None,
        "confidence": i / 40,
        "prompt_tokens": 10 * i,
        "output_tokens": 7 + i,
        "latency_ms": 100.5 + i,
        "passed": i % 3 == 0,
        "weighted_score": (i % 5) / 4,
        "cost": 0.25 * i,
        "status": "timeout" if i == 11 else "error" if i == 12 else None,
        "expected_behaviors": ["greets", "asks, twice", "ends"] if i % 2 else None,
        "observed_behaviors": ["greets"] if i % 2 else None,
        "shade": ("dark", "light", None)[i % 3],
    }
    for i in range(40)
]


def jsonl(records: Sequence[Record], end: str = "\n") -> bytes:
    return "".join(json.dumps(r, ensure_ascii=False) + end for r in records).encode()


def array(records: Sequence[Record]) -> bytes:
    return json.dumps(records).encode()


def pretty(records: Sequence[Record]) -> bytes:
    return json.dumps(records, indent=2, ensure_ascii=False).encode()


def separated(separator: str, **options: Any) -> Callable[[Sequence[Record]], bytes]:
    def write(records: Sequence[Record]) -> bytes:
        out = io.StringIO(newline="")
        names = list(dict.fromkeys(n for r in records for n in r))
        writer = csv.DictWriter(out, names, delimiter=separator, **options)
        writer.writeheader()
        writer.writerows({n: _cell(v) for n, v in r.items()} for r in records)
        return out.getvalue().encode()

    return write


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | bool) else value


def parquet(records: Sequence[Record]) -> bytes:
    out = io.BytesIO()
    pl.DataFrame(records, infer_schema_length=None).write_parquet(out, row_group_size=7)
    return out.getvalue()


FORMS: dict[str, tuple[str, Callable[[Sequence[Record]], bytes]]] = {
    "jsonl": (".jsonl", jsonl),
    "ndjson": (".ndjson", jsonl),
    "array": (".json", array),
    "pretty": (".json", pretty),
    "comma": (".csv", separated(",")),
    "lf": (".csv", separated(",", lineterminator="\n")),
    "all quoted": (".csv", separated(",", quoting=csv.QUOTE_ALL)),
    "semicolon": (".csv", separated(";")),
    "tab": (".tsv", separated("\t")),
    "parquet": (".parquet", parquet),
}
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": zstandard.compress,
}


def approximately(value: Any) -> Any:
    """Compare nested values, numbers but for the last digits."""
    if isinstance(value, dict):
        return {k: approximately(v) for k, v in value.items()}
    if isinstance(value, list):
        return [approximately(v) for v in value]
    return pytest.approx(value, rel=1e-9) if isinstance(value, float) else value
