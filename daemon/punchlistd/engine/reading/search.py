"""Search by words or filters in one list, or in all lists that the caller may see.

The full-text index is updated only by searches for words: each first indexes the lists that have changed. Matches are
looked up in the lists themselves, so a stale index never returns deleted tasks or tasks of other users.
"""

import logging
import os
import re
import sqlite3
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import suppress
from typing import TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.params import TaskSearch
from punchlist_schemas.results import Hit, TaskSearchResult
from punchlist_schemas.things import Counts, Task
from punchlistd.engine.calls import Caller
from punchlistd.engine.lists.access import Access
from punchlistd.engine.lists.conversations import Conversations
from punchlistd.engine.lists.loaded import LoadedConversation
from punchlistd.engine.reading.state_queries import SORTS, build_filter
from punchlistd.engine.reading.summaries import Summaries, Summary, summary_of
from punchlistd.engine.replies import Outcome
from punchlistd.store.port import EventLog
from punchlistd.store.search import Match, SearchIndex, Words, discard, find_id

logger = logging.getLogger(__name__)

T = TypeVar("T")

_TRIES = 3
_FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})
"""SQLite errors for a file that can't be written: no space or no permission."""


_CURSOR = re.compile(r"[1-9][0-9]{0,8}")
"""A cursor is the number of matches on earlier pages."""

Found = tuple[Match, LoadedConversation, Task]


_encode = msgspec.json.Encoder().encode


class Search:
    """The search index of this daemon.

    Args:
        path: The index's file.
        log_path: The log's file.
        summaries: The summaries of all lists.
    """

    def __init__(
        self,
        path: str,
        log_path: str,
        log: EventLog,
        conversations: Conversations,
        access: Access,
        summaries: Summaries,
    ) -> None:
        self._summaries = summaries
        self._path = path
        self._log_path = log_path
        self._log = log
        self._conversations = conversations
        self._access = access
        self._index: SearchIndex | None = None
        self._has_room = True
        self._turn = anyio.Lock()
        """Serializes searches for words. The holder may wait for the writer, so the writer must never wait for it."""
        self._file = anyio.Lock(fast_acquire=True)
        """Serializes the threads that use the index. The holder must not wait for anything else."""

    def stay_in_memory(self) -> None:
        """Keep the index in memory, for a read-only daemon."""
        self._path = ":memory:"

    async def answer(self, caller: Caller, params: TaskSearch) -> Outcome:
        """Return a page of the matches. In a damaged list, only the part before the damage is searched."""
        if not params.query.strip() and build_filter(params) is None:
            text = "Pass words in query, or a filter: status, owner, label, ready, waits_for or due_before."
            return Rejection("invalid_params", text, {"field": "query"})
        if params.cursor is not None and not _CURSOR.fullmatch(params.cursor):
            text = "Unknown cursor: pass next_cursor of the previous page, or leave it out."
            return Rejection("invalid_params", text, {"field": "cursor"})
        if not params.query.strip():
            return await self._answer(caller, params)
        async with self._turn:
            for _ in range(_TRIES):
                with suppress(Again):
                    return await self._answer(caller, params)
        raise OSError("the search index can't be built, not even in memory")

    async def _answer(self, caller: Caller, params: TaskSearch) -> Outcome:
        name: str | None = None
        if params.conversation is None:
            summaries = await self._summaries.list(caller.user)
        else:
            loaded = await self._access.durable(caller.user, params.conversation)
            if isinstance(loaded, Rejection):
                return loaded
            name = loaded.state.conversation
            summaries = [summary_of(loaded)]
        start = int(params.cursor or 0)
        end = start + params.limit
        texts: dict[int, str] = {}
        if params.query.strip():
            index, indexed = await self._in_thread(lambda index: (index, index.indexed_versions()))
            damaged = await self._update_index(index, indexed, summaries, caller.user)
            matches = await self._in_thread(lambda index: index.find(params.query, name), index)
            found = _sort(await self._select(caller.user, params, matches), params)
            if rows := [match.row for match, *_ in found[start:end]]:
                texts = await self._in_thread(lambda index: index.excerpts(params.query, rows), index)
        else:
            damaged = list[str]()
            found = _sort([item async for item in self._filter(caller.user, params, summaries, damaged)], params)
        hits = tuple(
            Hit(
                conversation=match.conversation,
                title=loaded.state.title,
                task=loaded.add_claim_details([task])[0],
                excerpt=texts.get(match.row, ""),
            )
            for match, loaded, task in found[start:end]
        )
        cursor = str(end) if end < len(found) else None
        return _encode(TaskSearchResult(hits=hits, total=len(found), next_cursor=cursor, damaged=tuple(damaged)))

    async def _update_index(
        self, index: SearchIndex, indexed: dict[str, tuple[int, int]], summaries: list[Summary], user: str | None
    ) -> list[str]:
        """Index the changes to these lists, given their indexed versions and positions. Return the damaged lists."""
        damaged: list[str] = []
        for name, version in ((summary.conversation, summary.version) for summary in summaries):
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

    async def _select(self, user: str | None, params: TaskSearch, matches: Iterable[Match]) -> list[Found]:
        """Return the matches that exist, are visible and pass the filters."""
        passes, lists = build_filter(params), dict[str, LoadedConversation | Rejection]()
        found: list[Found] = []
        for match in matches:
            if match.conversation not in lists:
                lists[match.conversation] = await self._access.durable(user, match.conversation)
            loaded = lists[match.conversation]
            task = None if isinstance(loaded, Rejection) else loaded.state.tasks.get(match.task)
            if isinstance(loaded, Rejection) or task is None or not (passes is None or passes(task, loaded.state)):
                continue
            found.append((match, loaded, task))
        return found

    async def _filter(
        self, user: str | None, params: TaskSearch, summaries: list[Summary], damaged: list[str]
    ) -> AsyncGenerator[Found]:
        """Yield all tasks that pass the filters, and add the damaged lists to `damaged`.

        A list whose counts rule out a match isn't loaded.
        """
        passes = build_filter(params)
        assert passes is not None, "a search without words has a filter"
        for summary in summaries:
            name = summary.conversation
            loaded = self._conversations.loaded.get(name)
            if (loaded is None or loaded.damage is None) and not _may_match(summary.counts, params):
                continue
            loaded = await self._access.durable(user, name)
            if isinstance(loaded, Rejection):
                continue
            if loaded.damage is not None:
                damaged.append(name)
            for task in loaded.state.ordered():
                if passes(task, loaded.state):
                    yield Match(name, task.id, 0), loaded, task
            await anyio.lowlevel.checkpoint()

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


def _sort(found: list[Found], params: TaskSearch) -> list[Found]:
    """Sort the matches if the call names an order. Tasks found by their id stay first."""
    if params.sort is not None:
        order, id = SORTS[params.sort], find_id(params.query)
        found.sort(key=lambda item: (item[2].id != id, order(item[2])))
    return found


def _may_match(counts: Counts, params: TaskSearch) -> bool:
    """Return False if the counts of a list's tasks show that none of them passes the filters."""
    statuses = (params.status,) if isinstance(params.status, str) else params.status
    return (
        (statuses is None or any(getattr(counts, status) for status in statuses))
        and (params.ready is not True or counts.ready > 0)
        and (params.waits_for is None or counts.paused > 0)
    )


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
