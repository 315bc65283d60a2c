"""Tables in object stores, read by Polars: Parquet and JSONL at addresses such as `s3://bucket/table`.

Only what a person names is read: no record, suite or file can name an address.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from glob import has_magic
from pathlib import Path, PurePath

import polars as pl

from pennyweight.errors import InputError
from pennyweight.sources.chunks import ROWS, Chunk, Rows
from pennyweight.sources.files import COMPRESSED, MAX_LINE, Format, format_of
from pennyweight.sources.object_access import HINT, access, without_secrets
from pennyweight.sources.parsing import Names, Parsed, parse_json_lines
from pennyweight.sources.partitions import (
    PartitionColumns,
    partition_columns,
    table_root,
    with_partition_columns,
)
from pennyweight.sources.source import Source

OBJECT_STORES = ("s3://", "gs://", "gcs://", "az://", "abfs://", "abfss://")
_ENDINGS: tuple[tuple[str, Format], ...] = (
    *((".parquet", "parquet"), (".jsonl", "jsonl"), (".ndjson", "jsonl")),
)
_PATH = "\0path"


def object_sources(address: str) -> list[Source]:
    """Return the objects at an address, which may be a folder or a pattern."""
    address = address.replace("gcs://", "gs://", 1)
    store, _, path = address.partition("://")
    if not path.strip("/") or path.startswith("/"):
        raise InputError([f"{address}: no bucket is named; write {store}://BUCKET/TABLE."])
    root, single = table_root(address), format_of_object(address)
    if single and not has_magic(address):
        return [_object(address, address, single, root)]
    if single:
        found = _listed(address, single, address)
    elif has_magic(address):
        raise InputError([f"{address}: the pattern must end in .parquet, .jsonl or .ndjson."])
    else:
        inside = f"{address.rstrip('/')}/**/*"
        found = sorted(
            one for ending, form in _ENDINGS for one in _listed(f"{inside}{ending}", form, address)
        )
    if not found:
        raise InputError([f"{address}: there are no Parquet or JSONL files."])
    made = [_object(one, address, format_of_object(one) or "jsonl", root) for one in found]
    return [replace(one, may_be_empty=len(made) > 1) for one in made]


def format_of_object(address: str) -> Format | None:
    """Return the format of an object by its name; None for a folder."""
    path = Path(address)
    found = format_of(path)
    if (found and found not in {"parquet", "jsonl"}) or path.suffix in COMPRESSED:
        raise InputError(
            [f"{address}: from object stores, Parquet and uncompressed JSONL are read."]
        )
    return found


@dataclass(frozen=True, slots=True)
class ObjectSource(Source):
    """The records of one object."""

    address: str
    format: Format
    origin: str = ""
    columns: PartitionColumns = ()
    may_be_empty: bool = False

    @property
    def name(self) -> str:
        """The address."""
        return self.address

    def chunks(self, names: Names) -> Iterator[Chunk]:
        """Read the object once, from its beginning to its end."""
        read = self._table(names) if self.format == "parquet" else self._lines()
        for chunk in read:
            yield with_partition_columns(chunk, self.columns)

    def _table(self, names: Names) -> Iterator[Chunk]:
        with _readable(self.name):
            frame = pl.scan_parquet(
                self.name, glob=False, hive_partitioning=False, **access(self.name)
            )
            present = frame.collect_schema().names()
            columns = present if names.all else [n for n in present if n in names]
            columns = columns or present[:1]  # so that the records are counted
            first = 1
            for batch in frame.select(columns).collect_batches(
                chunk_size=ROWS, maintain_order=True
            ):
                numbers = range(first, first + batch.height)
                rows = Rows(self.name, batch.lazy(), numbers)
                first = numbers.stop
                yield partial(_whole, rows, frozenset(present))

    def _lines(self) -> Iterator[Chunk]:
        with _readable(self.name):
            first = 1
            lines = pl.scan_lines(self.name, name="line", glob=False, **access(self.name))
            for batch in lines.collect_batches(chunk_size=ROWS, maintain_order=True):
                if (batch["line"].str.len_bytes().max() or 0) >= MAX_LINE:  # type: ignore[operator]
                    raise InputError([f"{self.name}: a line is longer than {MAX_LINE >> 20} MB."])
                data = "\n".join(batch["line"].to_list()).removeprefix("\ufeff").encode()
                numbers = range(first, first + batch.height)
                first = numbers.stop
                if data and not data.isspace():
                    yield partial(parse_json_lines, self.name, data, numbers)


def _whole(rows: Rows, present: frozenset[str], names: Names) -> Parsed:
    """Parse rows of which only the needed columns were read."""
    return replace(rows(names), present=present)


def _object(address: str, origin: str, form: Format, root: PurePath) -> ObjectSource:
    return ObjectSource(address, form, origin, partition_columns(address, root))


def _listed(pattern: str, form: Format, named: str) -> list[str]:
    """List the objects that match a pattern and have records.

    Polars lists them; of Parquet it reads the footers for that, of JSONL the objects.
    """
    with _readable(named):
        given = access(named)
        if form == "parquet":
            frame = pl.scan_parquet(
                pattern, include_file_paths=_PATH, hive_partitioning=False,
                schema={}, missing_columns="insert", extra_columns="ignore",
                **given,
            )  # fmt: skip
        else:
            frame = pl.scan_lines(pattern, include_file_paths=_PATH, **given)
        paths = frame.select(pl.col(_PATH).unique()).collect()[_PATH].drop_nulls()
    known = (one for one in paths if not _is_set_aside(one, pattern))
    return sorted(known)


def _is_set_aside(address: str, pattern: str) -> bool:
    """Whether an object is hidden, or in a folder such as `_temporary`, as with files."""
    named = len(table_root(pattern).parts)
    *folders, name = PurePath(address).parts[named:]
    return name.startswith(".") or any(folder[0] in "._" for folder in folders)


@contextmanager
def _readable(address: str) -> Iterator[None]:
    """Turn every error of Polars on an object into InputError, without what is secret."""
    try:
        yield
    except FileNotFoundError as error:
        raise InputError([f"{address}: no such object, or no such bucket."]) from error
    except TimeoutError as error:
        raise InputError([f"{address}: the store does not answer."], hint=HINT) from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = without_secrets(str(error).partition("\n")[0].partition(" (path: ")[0])
        raise InputError(
            [f"{address}: cannot be read: {reason.rstrip('.')}."], hint=HINT
        ) from error
