"""Text search over one list and over all that the caller may see.

The full-text index follows the lists only when somebody searches: then what has changed since is brought up to date,
list by list. What is found is looked up in the lists themselves, so that an index which lags behind shows nothing that
is not there, and nobody sees another's.
"""

import logging
import os
import sqlite3
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import TypeVar

import anyio
import anyio.to_thread
import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.params import TaskSearch
from punchlist_schemas.results import Hit, TaskSearchResult
from punchlist_schemas.things import Task
from punchlistd.engine.calls import Caller
from punchlistd.engine.lists.access import Access
from punchlistd.engine.lists.conversations import Conversations
from punchlistd.engine.lists.loaded import LoadedConversation
from punchlistd.engine.replies import Outcome
from punchlistd.store.port import EventLog
from punchlistd.store.search import Found, SearchIndex, Words, discard

logger = logging.getLogger(__name__)

T = TypeVar("T")

_PAGE = 1_000
_TRIES = 3
_FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})
"""What says that there is no room for the file, or no leave to write it."""


class _Listed(msgspec.Struct):
    conversation: str
    version: int


_encode = msgspec.json.Encoder().encode
_decode_listed = msgspec.json.Decoder(_Listed).decode


class Search:
    """The index of this daemon.

    Args:
        path: Where it is kept; the log's own file is `log_path`.
        log_path: The log.
        log: Which lists there are.
        conversations: The lists in use.
        access: Leads names to lists.
        refresh: Brings the store's summaries up to date.
    """

    def __init__(
        self,
        path: str,
        log_path: str,
        log: EventLog,
        conversations: Conversations,
        access: Access,
        refresh: Callable[[], Awaitable[None]],
    ) -> None:
        self._refresh = refresh
        self._path = path
        self._log_path = log_path
        self._log = log
        self._conversations = conversations
        self._access = access
        self._index: SearchIndex | None = None
        self._has_room = True
        self._turn = anyio.Lock()
        """Of one search after the other. Whoever has it may wait for the writer, who must never wait for it."""
        self._file = anyio.Lock(fast_acquire=True)
        """Of one thread in the index. Whoever has it waits for nothing else."""

    def stay_in_memory(self) -> None:
        """Write no file: the daemon only reads."""
        self._path = ":memory:"

    async def answer(self, caller: Caller, params: TaskSearch) -> Outcome:
        """What is found, the best first; of a list that is damaged, only what was before the damage."""
        async with self._turn:
            for _ in range(_TRIES):
                with suppress(Again):
                    return await self._answer(caller, params)
        raise OSError("the search index can't be kept, not even in memory")

    async def _answer(self, caller: Caller, params: TaskSearch) -> Outcome:
        name: str | None = None
        if params.conversation is None:
            versions = await self._listed(caller.user)
        else:
            loaded = await self._access.durable(caller.user, params.conversation)
            if isinstance(loaded, Rejection):
                return loaded
            name = loaded.state.conversation
            versions = {name: loaded.state.version}
        index, known = await self._in_thread(lambda index: (index, index.known()))
        damaged = await self._bring_up(index, known, versions, caller.user)
        found = await self._in_thread(lambda index: index.find(params.query, name), index)
        hits, total = await self._hits(caller, params, found)
        rows = [each.row for each, *_ in hits]
        texts = await self._in_thread(lambda index: index.excerpts(params.query, rows), index)
        shown = tuple(
            Hit(conversation=each.conversation, title=loaded.state.title, task=task, excerpt=texts.get(each.row, ""))
            for each, loaded, task in hits
        )
        return _encode(TaskSearchResult(hits=shown, total=total, damaged=tuple(damaged)))

    async def _listed(self, user: str | None) -> dict[str, int]:
        await self._conversations.use_index(self._refresh)
        found: dict[str, int] = {}
        cursor: str | None = None
        while True:
            rows, cursor = await self._conversations.use_index(
                lambda at=cursor: self._log.list(user=user, limit=_PAGE, cursor=at)
            )
            found |= {listed.conversation: listed.version for listed in map(_decode_listed, rows)}
            if cursor is None:
                return found

    async def _bring_up(
        self, index: SearchIndex, known: dict[str, tuple[int, int]], versions: dict[str, int], user: str | None
    ) -> list[str]:
        """Index what has changed in these lists since they were `known`; the names of those that are damaged."""
        damaged: list[str] = []
        for name, version in versions.items():
            loaded = self._conversations.loaded.get(name)
            before = known.get(name)
            if before is not None and before[0] == version and (loaded is None or loaded.damage is None):
                continue
            loaded = await self._access.durable(user, name)
            if isinstance(loaded, Rejection):
                continue
            if loaded.damage is not None:
                damaged.append(name)
            if before is None or before[0] != loaded.state.version:
                await self._index_list(index, user, name, None if before is None else before[1])
        return damaged

    async def _index_list(self, index: SearchIndex, user: str | None, name: str, since: int | None) -> None:
        while not isinstance(loaded := await self._access.durable(user, name), Rejection):
            async with self._file:
                if not loaded.dirty:  # it may have been deleted while the file was waited for: its words stay away
                    await anyio.to_thread.run_sync(self._acted, _update(loaded, since), index)
                    return

    async def _hits(
        self, caller: Caller, params: TaskSearch, found: Iterable[Found]
    ) -> tuple[list[tuple[Found, LoadedConversation, Task]], int]:
        """Those that are there, may be seen, and have the status that is asked for; and how many there are in all."""
        wanted = (params.status,) if isinstance(params.status, str) else params.status
        lists: dict[str, LoadedConversation | Rejection] = {}
        hits: list[tuple[Found, LoadedConversation, Task]] = []
        total = 0
        for each in found:
            if each.conversation not in lists:
                lists[each.conversation] = await self._access.durable(caller.user, each.conversation)
            loaded = lists[each.conversation]
            task = None if isinstance(loaded, Rejection) else loaded.state.tasks.get(each.task)
            if isinstance(loaded, Rejection) or task is None or (wanted is not None and task.status not in wanted):
                continue
            total += 1
            if len(hits) < params.limit:
                hits.append((each, loaded, loaded.add_claim_details([task])[0]))
        return hits, total

    async def forget(self, name: str) -> None:
        """A list is erased: none of its words stays in the file. The writer waits for this."""
        async with self._file:
            if self._index is None:  # nobody has searched yet: the next one makes it again
                await anyio.to_thread.run_sync(discard, self._path)
                return
            with suppress(Again):  # of a new index nothing has to be taken out
                await anyio.to_thread.run_sync(self._acted, _forgotten(name), None)

    async def close(self) -> None:
        """Leave the index for the next daemon."""
        async with self._file:
            if self._index is not None:
                await anyio.to_thread.run_sync(self._index.close)
                self._index = None

    async def _in_thread(self, act: Callable[[SearchIndex], T], index: SearchIndex | None = None) -> T:
        """Do something with the index, which must still be `index` if one is given.

        Raises:
            Again: It is not, or it can't be read; it is made anew with the next use, in memory if there is no room.
        """
        async with self._file:
            return await anyio.to_thread.run_sync(self._acted, act, index)

    def _acted(self, act: Callable[[SearchIndex], T], expected: SearchIndex | None) -> T:
        try:
            if self._index is None:
                self._index = SearchIndex(self._path if self._has_room else ":memory:", self._identity)
            if expected not in (None, self._index):
                raise Again
            return act(self._index)
        except (sqlite3.Error, OSError) as error:
            logger.error("%s: %s; the search index is made again", self._path, error)
            self._has_room = not (isinstance(error, OSError) or getattr(error, "sqlite_errorcode", 0) & 0xFF in _FULL)
            if self._index is not None:
                self._index.abandon()
                self._index = None
            discard(self._path)
            raise Again from error

    @property
    def _identity(self) -> str:
        """What tells this log's file from all others, a backup of it that was put in its place included."""
        return (
            f"{self._log.epoch}:{os.stat(self._log_path).st_ino}" if os.path.exists(self._log_path) else self._log.epoch
        )


class Again(Exception):
    """The index is made again: the search has to begin anew."""


def _update(loaded: LoadedConversation, since: int | None) -> Callable[[SearchIndex], None]:
    """What brings the index of a list up to date that was indexed up to `since`."""
    state = loaded.state
    changes = None if since is None else state.since(since)
    changed, gone = (list(state.tasks), None) if changes is None else changes
    words = [_words(state.tasks[task]) for task in changed]
    name, version, seq = state.conversation, state.version, loaded.seq
    return lambda index: index.update(name, version, seq, words, gone)


def _forgotten(name: str) -> Callable[[SearchIndex], None]:
    return lambda index: index.forget([name])


def _words(task: Task) -> Words:
    return Words(
        task=task.id,
        title=task.title,
        labels=" ".join(task.labels),
        description=task.description,
        notes="\n".join(note.text for note in task.notes),
        result="\n".join(filter(None, (task.result_summary, task.fail_reason))),
    )
