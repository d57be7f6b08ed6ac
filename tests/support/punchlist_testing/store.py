"""Writes sealed events to a log without the engine."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import msgspec

from punchlistd.store.file.schema import connect
from punchlistd.store.port import Damaged, EventLog, Sealed, Side, Snapshot
from punchlistd.store.record import holds_tombstone, is_tombstone, seal
from punchlistd.store.sqlite import SqliteLog

CLEARED = {"type": "ListCleared"}
DELETED = {"type": "ConversationDeleted"}


def said(text: str) -> dict[str, Any]:
    """Return an event that contains the text."""
    return {"type": "MessageAppended", "message": "m", "role": "user", "content": text}


class OpenedLog(SqliteLog):
    """A SQLite log with access to its internals."""

    @property
    def damage(self) -> list[Damaged]:
        """Return the damaged events detected since the log was opened, ordered by position."""
        return [error for _, error in sorted(self._operations.damage.events.items())]

    @property
    def failed(self) -> str:
        return self._operations.failed

    @property
    def reserve_held(self) -> bool:
        return self._operations.reserve.held

    async def watch(self, *paths: str) -> None:
        """Watch these files for changes by other programs.

        Raises:
            FileNotFoundError: One of the files doesn't exist.
        """
        await self._run(self._operations.watch, paths)

    async def checkpoint(self) -> None:
        await self._run(self._operations.checkpoint)


class Scribe:
    """Seals events with the right versions and checksums, and appends them to a log."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.versions: dict[str, int] = {}
        self.checks: dict[str, str] = {}
        self.lines: list[bytes] = []

    def group(
        self, conversation: str, *events: dict[str, Any], key: str = "", after: int | None = None
    ) -> list[Sealed]:
        """Return the sealed events of one call, to be appended at the head of the log or after the position `after`."""
        entries: list[Sealed] = []
        seq = self.log.head if after is None else after
        for number, event in enumerate(events, 1):
            version = self.versions.get(conversation, 0) + 1
            wire = msgspec.json.encode(
                {
                    "seq": seq + number,
                    "conversation": conversation,
                    "version": version,
                    "at": 1_700_000_000_000,
                    "actor": "scribe",
                    "event": event,
                }
            )
            side = Side(key=key if number == 1 else "", remaining=len(events) - number)
            line, check = seal(self.checks.get(conversation, ""), wire, side)
            self.versions[conversation], self.checks[conversation] = version, check
            entries.append(Sealed(conversation, version, line, side.key, event == DELETED))
            assert holds_tombstone(line) == is_tombstone(wire) == (event == DELETED)
        return entries

    async def write(self, conversation: str, *events: dict[str, Any], key: str = "") -> None:
        await self.append(self.group(conversation, *events, key=key))

    async def write_batch(self, *calls: tuple[str, Sequence[dict[str, Any]]]) -> None:
        """Append several calls in one commit."""
        batch: list[Sealed] = []
        for conversation, events in calls:
            batch += self.group(conversation, *events, after=self.log.head + len(batch))
        await self.append(batch)

    async def append(self, entries: Sequence[Sealed]) -> None:
        await self.log.append(entries)
        self.lines += [entry.line for entry in entries]

    def snapshot(self, conversation: str, state: bytes | None = b"state", **members: Any) -> Snapshot:
        """Return a snapshot of a conversation at its current version."""
        title = members.pop("title", conversation)
        summary = msgspec.json.encode({"conversation": conversation, "title": title, **members.pop("about", {})})
        version, check = self.versions.get(conversation, 0), self.checks.get(conversation, "")
        return Snapshot(conversation, version, self.log.head, check, state, summary, **members)


async def damaged_log(data_dir: Path, spoiled: Sequence[int] = (3,), event: dict[str, Any] | None = None) -> None:
    """Create a log with four events, of `b`, `a`, `a` and `b`, and damage those at the positions `spoiled`.

    `event` replaces the first two events.
    """
    await anyio.Path(data_dir).mkdir(mode=0o700)
    path = str(data_dir / "log.db")
    log = await SqliteLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    for number, conversation in enumerate(("b", "a", "a", "b")):
        await scribe.write(conversation, event if event and number < 2 else said("as it was"))
    await log.close()
    with closing(connect(path, "rw")) as connection:
        for seq in spoiled:
            connection.execute(
                "UPDATE log SET body = CAST(replace(body, 'as it was', 'as it is') AS BLOB) WHERE seq = ?", (seq,)
            ).close()
