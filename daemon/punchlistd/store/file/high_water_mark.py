"""The high-water mark: how far the log had come, kept outside it.

A log that was cut short, or put back to an older state, looks healthy from within. So after each commit its position is
noted in a small file beside it: two slots written in turn, each with a checksum, so that a torn write leaves the
other. It is not flushed: it may lag behind the log, and only a log behind its mark has lost something.

A twin of the mark stands beside the socket, outside the data directory, which somebody may put back as a whole, mark
and all. It is written at each pass of the index and at the end, and goes with a reboot.
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
"""Stands for the checksum of a row that is just being rewritten."""


class Position(msgspec.Struct, frozen=True):
    """Where the log was: its epoch, the last event, and the checksum of the row that holds it."""

    epoch: str
    seq: int
    sum: int


def read_position(path: str) -> Position | None:
    """The furthest position noted in a file, None where there is none."""
    try:
        with open(path, "rb") as file:
            newest = _newest(file.read(2 * _SLOT))
    except OSError:
        return None
    return newest[1] if newest else None


def _newest(slots: bytes) -> tuple[int, Position] | None:
    found = [slot for slot in (_decode(slots[:_SLOT]), _decode(slots[_SLOT:])) if slot]
    return max(found, key=lambda slot: slot[0], default=None)


def _decode(data: bytes) -> tuple[int, Position] | None:
    """How many positions were noted so far, and the one in this slot."""
    if len(data) != _SLOT or struct.unpack_from("<I", data, _FIELDS.size)[0] != zlib.crc32(data[: _FIELDS.size]):
        return None
    magic, count, seq, total, epoch = _FIELDS.unpack_from(data)
    return (count, Position(epoch.rstrip(b"\0").decode(), seq, total)) if magic == _MAGIC else None


class HighWaterMark:
    """The file of the mark. It belongs to the database thread."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._count = 0

    def read(self) -> Position | None:
        newest = _newest(os.pread(self._file, 2 * _SLOT, 0))
        if newest is None:
            return None
        self._count = newest[0]
        return newest[1]

    def write(self, epoch: str, seq: int, total: int) -> None:
        """Note a position. Nothing waits for the disk; without room on it the mark lags behind, and once closed too."""
        if self._file < 0:
            return
        self._count += 1
        fields = _FIELDS.pack(_MAGIC, self._count, seq, total, epoch.encode())
        data = (fields + struct.pack("<I", zlib.crc32(fields))).ljust(_SLOT, b"\0")
        try:
            if os.pwrite(self._file, data, self._count % 2 * _SLOT) != _SLOT:
                raise OSError("the high-water mark was written in part")
        except OSError as error:
            if error.errno not in FULL:
                raise

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def twin_of(path: str | None) -> HighWaterMark | None:
    try:
        return None if path is None else HighWaterMark(path)
    except OSError:
        return None
