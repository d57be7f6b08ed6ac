"""Text search in one list, or in all lists that the caller may see.

The full-text index is updated only by searches: each search first indexes the lists that have changed. Matches are
looked up in the lists themselves, so a stale index never returns deleted tasks or tasks of other users.
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
from punchlistd.store.search import Match, SearchIndex, Words, discard

logger = logging.getLogger(__name__)

T = TypeVar("T")

_PAGE = 1_000
_TRIES = 3
_FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})
"""SQLite errors for a file that can't be written: no space or no permission."""


class _Summary(msgspec.Struct):
    conversation: str
    version: int


_encode = msgspec.json.Encoder().encode
_decode_summary = msgspec.json.Decoder(_Summary).decode


class Search:
    """The search index of this daemon.

    Args:
        path: The index's file.
        log_path: The log's file.
        refresh: Updates the store's summaries of lists.
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
        """Serializes searches. The holder may wait for the writer, so the writer must never wait for this lock."""
        self._file = anyio.Lock(fast_acquire=True)
        """Serializes the threads that use the index. The holder must not wait for anything else."""

    def stay_in_memory(self) -> None:
        """Keep the index in memory, for a read-only daemon."""
        self._path = ":memory:"

    async def answer(self, caller: Caller, params: TaskSearch) -> Outcome:
        """Return the matches, best first. In a damaged list, only the part before the damage is searched."""
        async with self._turn:
            for _ in range(_TRIES):
                with suppress(Again):
                    return await self._answer(caller, params)
        raise OSError("the search index can't be built, not even in memory")

    async def _answer(self, caller: Caller, params: TaskSearch) -> Outcome:
        name: str | None = None
        if params.conversation is None:
            versions = await self._list_versions(caller.user)
        else:
            loaded = await self._access.durable(caller.user, params.conversation)
            if isinstance(loaded, Rejection):
                return loaded
            name = loaded.state.conversation
            versions = {name: loaded.state.version}
        index, indexed = await self._in_thread(lambda index: (index, index.indexed_versions()))
        damaged = await self._update_index(index, indexed, versions, caller.user)
        matches = await self._in_thread(lambda index: index.find(params.query, name), index)
        visible, total = await self._select(caller, params, matches)
        rows = [match.row for match, *_ in visible]
        texts = await self._in_thread(lambda index: index.excerpts(params.query, rows), index)
        hits = tuple(
            Hit(conversation=match.conversation, title=loaded.state.title, task=task, excerpt=texts.get(match.row, ""))
            for match, loaded, task in visible
        )
        return _encode(TaskSearchResult(hits=hits, total=total, damaged=tuple(damaged)))

    async def _list_versions(self, user: str | None) -> dict[str, int]:
        await self._conversations.use_index(self._refresh)
        versions: dict[str, int] = {}
        cursor: str | None = None
        while True:
            rows, cursor = await self._conversations.use_index(
                lambda at=cursor: self._log.list(user=user, limit=_PAGE, cursor=at)
            )
            versions |= {summary.conversation: summary.version for summary in map(_decode_summary, rows)}
            if cursor is None:
                return versions

    async def _update_index(
        self, index: SearchIndex, indexed: dict[str, tuple[int, int]], versions: dict[str, int], user: str | None
    ) -> list[str]:
        """Index the changes to these lists, given their indexed versions and positions. Return the damaged lists."""
        damaged: list[str] = []
        for name, version in versions.items():
            loaded = self._conversations.loaded.get(name)
            before = indexed.get(name)
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
                # The list may have been deleted while waiting for the lock. If so, don't index its text.
                if not loaded.dirty:
                    await anyio.to_thread.run_sync(self._run, _build_update(loaded, since), index)
                    return

    async def _select(
        self, caller: Caller, params: TaskSearch, matches: Iterable[Match]
    ) -> tuple[list[tuple[Match, LoadedConversation, Task]], int]:
        """Return the first matches that exist, are visible and have the requested status, and their total number."""
        statuses = (params.status,) if isinstance(params.status, str) else params.status
        lists: dict[str, LoadedConversation | Rejection] = {}
        selected: list[tuple[Match, LoadedConversation, Task]] = []
        total = 0
        for match in matches:
            if match.conversation not in lists:
                lists[match.conversation] = await self._access.durable(caller.user, match.conversation)
            loaded = lists[match.conversation]
            task = None if isinstance(loaded, Rejection) else loaded.state.tasks.get(match.task)
            if isinstance(loaded, Rejection) or task is None or (statuses is not None and task.status not in statuses):
                continue
            total += 1
            if len(selected) < params.limit:
                selected.append((match, loaded, loaded.add_claim_details([task])[0]))
        return selected, total

    async def forget(self, name: str) -> None:
        """Remove an erased list's text from the file. The writer waits until this returns."""
        async with self._file:
            if self._index is None:  # the index is not open yet; the next search rebuilds it
                await anyio.to_thread.run_sync(discard, self._path)
                return
            with suppress(Again):  # an index that is rebuilt later doesn't contain the list
                await anyio.to_thread.run_sync(self._run, _build_removal(name), None)

    async def close(self) -> None:
        """Close the index, and keep its file for the next daemon."""
        async with self._file:
            if self._index is not None:
                await anyio.to_thread.run_sync(self._index.close)
                self._index = None

    async def _in_thread(self, act: Callable[[SearchIndex], T], index: SearchIndex | None = None) -> T:
        """Run `act` on the index in a thread. If `index` is given, it must still be the current index.

        Raises:
            Again: The index was replaced or can't be used. The next use rebuilds it, in memory if there is no space.
        """
        async with self._file:
            return await anyio.to_thread.run_sync(self._run, act, index)

    def _run(self, act: Callable[[SearchIndex], T], expected: SearchIndex | None) -> T:
        try:
            if self._index is None:
                self._index = SearchIndex(self._path if self._has_room else ":memory:", self._identity)
            if expected not in (None, self._index):
                raise Again
            return act(self._index)
        except (sqlite3.Error, OSError) as error:
            logger.error("%s: %s; the search index is rebuilt", self._path, error)
            self._has_room = not (isinstance(error, OSError) or getattr(error, "sqlite_errorcode", 0) & 0xFF in _FULL)
            if self._index is not None:
                self._index.abandon()
                self._index = None
            discard(self._path)
            raise Again from error

    @property
    def _identity(self) -> str:
        """Identifier of the log's file. It changes if a backup is restored in its place."""
        return (
            f"{self._log.epoch}:{os.stat(self._log_path).st_ino}" if os.path.exists(self._log_path) else self._log.epoch
        )


class Again(Exception):
    """The index is being rebuilt, and the search has to start again."""


def _build_update(loaded: LoadedConversation, since: int | None) -> Callable[[SearchIndex], None]:
    """Return the index update for a list that is indexed up to `since`."""
    state = loaded.state
    changes = None if since is None else state.since(since)
    changed, gone = (list(state.tasks), None) if changes is None else changes
    words = [_words(state.tasks[task]) for task in changed]
    name, version, seq = state.conversation, state.version, loaded.seq
    return lambda index: index.update(name, version, seq, words, gone)


def _build_removal(name: str) -> Callable[[SearchIndex], None]:
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
