"""The names under which columns of the record are understood in foreign files."""

from __future__ import annotations

from pennyweight.record import COLUMNS

ALIASES = {column.name: column.aliases for column in COLUMNS if column.aliases}
