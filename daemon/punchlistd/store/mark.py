"""The high-water mark: how far the log had come, kept outside it.

A log that was cut short, or put back to an older state, looks healthy from within. So after each commit its position is
noted in a small file beside it: two slots written in turn, each with a checksum, so that a torn write leaves the
other. It is not flushed: it may lag behind the log, and only a log behind its mark has lost something.
"""

import contextlib
import os
import struct
import zlib

import msgspec

_SLOT = 64
_FIELDS = struct.Struct("<8sQI16s")
_MAGIC = b"plmark1\n"
ANY_SUM = 0
"""Stands for the checksum of a row that is just being rewritten."""


class Position(msgspec.Struct, frozen=True):
    """Where the log was: its epoch, the last event, and the checksum of the row that holds it."""

    epoch: str
    seq: int
    sum: int


class Mark:
    """The file of the mark. It belongs to the database thread."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._slot = 0

    def read(self) -> Position | None:
        """The furthest position noted, None where there is none."""
        found = [slot for slot in map(self._read_slot, (0, 1)) if slot]
        newest = max(found, key=lambda slot: slot[0], default=None)
        if newest is None:
            return None
        self._slot = newest[0]
        return newest[1]

    def write(self, epoch: str, seq: int, total: int) -> None:
        """Note a position. Nothing waits for the disk."""
        self._slot += 1
        fields = _FIELDS.pack(_MAGIC, seq, total, epoch.encode()) + struct.pack("<Q", self._slot)
        data = (fields + struct.pack("<I", zlib.crc32(fields))).ljust(_SLOT, b"\0")
        if os.pwrite(self._file, data, self._slot % 2 * _SLOT) != _SLOT:
            raise OSError("the high-water mark was written in part")

    def close(self) -> None:
        """Let go of the file."""
        if self._file >= 0:
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = -1

    def _read_slot(self, index: int) -> tuple[int, Position] | None:
        data = os.pread(self._file, _SLOT, index * _SLOT)
        used = _FIELDS.size + 8
        if len(data) != _SLOT or struct.unpack_from("<I", data, used)[0] != zlib.crc32(data[:used]):
            return None
        magic, seq, total, epoch = _FIELDS.unpack_from(data)
        if magic != _MAGIC:
            return None
        return struct.unpack_from("<Q", data, _FIELDS.size)[0], Position(epoch.rstrip(b"\0").decode(), seq, total)
