"""The high-water mark: the position of the log's head, stored outside the log.

A log that was truncated or restored to an older state looks consistent. To detect this, each commit writes its position
to a small file next to the log. The file has two slots, which are written alternately and have a checksum each, so that
a torn write damages only one of them. It is never flushed, so it may lag behind the log. A log that is behind its mark
has lost events.

A twin of the mark is kept next to the socket, outside the data directory, because restoring that whole directory would
also restore its mark. The twin is written with each update of the index and on close. A reboot removes the twin.
"""

import os
import struct
import zlib

import msgspec

from punchlistd.store.file.files import FULL

_SLOT = 64
_FIELDS = struct.Struct("<8sQQI16s")
_MAGIC = b"plmark1\n"
ANY_SUM = 0
"""Placeholder that matches any checksum, used while the row is being rewritten."""


class Position(msgspec.Struct, frozen=True):
    """A position of the log's head: epoch, last event, and the checksum of the row that contains it."""

    epoch: str
    seq: int
    sum: int


def read_position(path: str) -> Position | None:
    """Return the newest position in a mark's file, or None."""
    try:
        with open(path, "rb") as file:
            newest = _decode_newest(file.read(2 * _SLOT))
    except OSError:
        return None
    return newest[1] if newest else None


def _decode_newest(slots: bytes) -> tuple[int, Position] | None:
    decoded = [slot for slot in (_decode(slots[:_SLOT]), _decode(slots[_SLOT:])) if slot]
    return max(decoded, key=lambda slot: slot[0], default=None)


def _decode(data: bytes) -> tuple[int, Position] | None:
    """Return the sequence number and the position in a slot, or None if it is empty or torn."""
    if len(data) != _SLOT or struct.unpack_from("<I", data, _FIELDS.size)[0] != zlib.crc32(data[: _FIELDS.size]):
        return None
    magic, count, seq, total, epoch = _FIELDS.unpack_from(data)
    return (count, Position(epoch.rstrip(b"\0").decode(), seq, total)) if magic == _MAGIC else None


class HighWaterMark:
    """The file that contains the mark. Only the database thread uses it."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._count = 0

    def read(self) -> Position | None:
        newest = _decode_newest(os.pread(self._file, 2 * _SLOT, 0))
        if newest is None:
            return None
        self._count = newest[0]
        return newest[1]

    def write(self, epoch: str, seq: int, total: int) -> None:
        """Write a position without flushing. Does nothing on a full disk or after `close`."""
        if self._file < 0:
            return
        self._count += 1
        fields = _FIELDS.pack(_MAGIC, self._count, seq, total, epoch.encode())
        data = (fields + struct.pack("<I", zlib.crc32(fields))).ljust(_SLOT, b"\0")
        try:
            if os.pwrite(self._file, data, self._count % 2 * _SLOT) != _SLOT:
                raise OSError("the high-water mark was only partly written")
        except OSError as error:
            if error.errno not in FULL:
                raise

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def open_twin(path: str | None) -> HighWaterMark | None:
    try:
        return None if path is None else HighWaterMark(path)
    except OSError:
        return None
