"""The members of a ZIP file, decompressed with Zstandard too, and distrusted.

Nothing is written to a disk, so the names of members are only names. Of members with the same name
the last one counts. A member yields no more bytes than the archive declares.
"""

from __future__ import annotations

import struct
import threading
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pennyweight.errors import InputError

ZSTANDARD = 93
MAX_MEMBER = 64 << 20
"""The most bytes of one member that are decompressed at once."""
_STEP = 1 << 20
_OF_THREAD = threading.local()
_LOCAL = b"PK\x03\x04"
_SLACK = 96
"""Bytes for the extra field and a name that is not ASCII, read along with a member."""


class MemberError(ValueError):
    """A member cannot be read; the text says why."""


@dataclass(frozen=True, slots=True)
class ZipMembers:
    """The directory of a ZIP file."""

    path: Path
    members: dict[str, zipfile.ZipInfo]

    @classmethod
    def of(cls, path: Path) -> ZipMembers:
        """Read the directory."""
        try:
            with zipfile.ZipFile(path) as archive:
                return cls(path, {info.filename: info for info in archive.infolist()})
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise InputError([f"{path}: cut off or damaged: {error}."]) from error
        except OSError as error:
            raise InputError([f"{path}: cannot be read: {error.strerror or error}."]) from error

    def read(self, name: str) -> bytes:
        """Read one member."""
        with self.path.open("rb") as file:
            return decompressed(file, self.members[name])


def decompressed(file: IO[bytes], info: zipfile.ZipInfo) -> bytes:
    """Read one member of an open file; MemberError if it is damaged or too large."""
    if info.file_size > MAX_MEMBER:
        raise MemberError(f"larger than {MAX_MEMBER >> 20} MB")
    data = _compressed(file, info)
    try:
        made = _whole(data, info)
    except (zlib.error, EOFError, _zstandard().ZstdError) as error:
        raise MemberError(f"damaged: {error}") from error
    if len(made) != info.file_size:
        raise MemberError(f"damaged: {len(made):,} bytes where {info.file_size:,} are declared")
    if zlib.crc32(made) != info.CRC:
        raise MemberError("damaged: the checksum differs")
    return made


def pieces(file: IO[bytes], info: zipfile.ZipInfo) -> Iterator[bytes]:
    """Decompress a member piece by piece, at most as many bytes as are declared."""
    data, left = _compressed(file, info), info.file_size
    try:
        for piece in _stream(data, info):
            yield piece[:left]
            left -= len(piece)
            if left <= 0:
                break
    except (zlib.error, EOFError, _zstandard().ZstdError) as error:
        raise MemberError(f"damaged: {error}") from error
    if left:
        raise MemberError("damaged: its size is not the declared one")


def _compressed(file: IO[bytes], info: zipfile.ZipInfo) -> bytes:
    if info.flag_bits & 1:
        raise MemberError("encrypted")
    file.seek(info.header_offset)
    data = file.read(30 + len(info.orig_filename) + _SLACK + info.compress_size)
    if not data.startswith(_LOCAL) or len(data) < 30:
        raise MemberError("damaged: it is not where the archive says")
    named, extra = struct.unpack("<HH", data[26:30])
    start = 30 + named + extra
    if start + info.compress_size > len(data):
        data += file.read(start + info.compress_size - len(data))
    found = data[start : start + info.compress_size]
    if len(found) < info.compress_size:
        raise MemberError("cut off")
    return found


def _whole(data: bytes, info: zipfile.ZipInfo) -> bytes:
    if info.compress_type == ZSTANDARD and info.file_size:
        made: bytes = _decompressor().decompress(data, max_output_size=info.file_size)
        if len(made) == info.file_size:
            return made
    parts, size = [], 0
    for part in _stream(data, info):
        parts.append(part)
        size += len(part)
        if size > info.file_size:
            raise MemberError("damaged: larger than declared")
    return b"".join(parts)


def _stream(data: bytes, info: zipfile.ZipInfo) -> Iterator[bytes]:
    if info.compress_type == zipfile.ZIP_STORED:
        yield data
    elif info.compress_type == zipfile.ZIP_DEFLATED:
        inflate = zlib.decompressobj(-15)
        while data and not inflate.eof:
            yield inflate.decompress(data, _STEP)
            data = inflate.unconsumed_tail
        if not inflate.eof:
            yield inflate.flush()
    elif info.compress_type == ZSTANDARD:
        reader = _zstandard().ZstdDecompressor().stream_reader(data, read_across_frames=True)
        while piece := reader.read(_STEP):
            yield piece
    else:
        raise MemberError(f"compressed by a method that is not known ({info.compress_type})")


def _decompressor() -> Any:
    """Return the decompressor of this thread: making one takes longer than using it."""
    own = vars(_OF_THREAD)
    return own.get("zstandard") or own.setdefault("zstandard", _zstandard().ZstdDecompressor())


def _zstandard() -> Any:
    import zstandard  # noqa: PLC0415

    return zstandard
