"""Reads that need durable state, several conversations, or the log.

Reads that need only the state of one conversation are in `state_queries`.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import anyio
import msgspec

from punchlist_schemas import params as p
from punchlist_schemas import results as r
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import MessageAppended
from punchlist_schemas.params import REACHED_S
from punchlist_schemas.things import AgentTask, Conversation, Message
from punchlistd.domain.rejections import conversation_not_found, message_not_found
from punchlistd.domain.state import State
from punchlistd.engine.calls import Caller, StateQuery
from punchlistd.engine.claims.lease import Lease
from punchlistd.engine.lists.access import Access
from punchlistd.engine.lists.conversations import Conversations, gap_of
from punchlistd.engine.lists.history import History, fact_of
from punchlistd.engine.lists.loaded import LoadedConversation, departure_of
from punchlistd.engine.lists.titles import Titles
from punchlistd.engine.reading.backward import Backward, Room
from punchlistd.engine.reading.resolver import Resolver
from punchlistd.engine.reading.state_queries import LIST_END, filter_tasks
from punchlistd.engine.replies import Outcome, build_reply
from punchlistd.engine.watching.subscriptions import Subscriptions
from punchlistd.engine.watching.views import encode_row_members, encode_rows, find_changes
from punchlistd.store.port import BadCursor, Damaged, EventLog, Gap, Stored

READ_BYTES = 512 << 10
"""Approximate size limit for the events of one `event.read` and the messages of one `message.list`, in bytes."""

READ_MESSAGES = 16
"""Number of messages read from the log at a time."""

FILTER_PAGE = 64
"""Number of messages filtered by role at a time."""


class _Named(msgspec.Struct):
    conversation: str


class Queries:
    """Answers all reads.

    Args:
        refresh: Updates the store's list of conversations.
        status: Builds the result of `daemon.status` for a user (None: an unbound connection).
        backup: Copies the log, and builds the result of `daemon.backup`.
    """

    def __init__(  # noqa: PLR0913 - one collaborator for each kind of read
        self,
        log: EventLog,
        conversations: Conversations,
        access: Access,
        history: History,
        subscriptions: Subscriptions,
        *,
        data_dir: str,
        refresh: Callable[[], Awaitable[None]],
        status: Callable[[str | None], Awaitable[r.StatusResult]],
        backup: Callable[[p.Backup], Awaitable[r.BackupResult | Rejection]],
    ) -> None:
        self.epoch = log.epoch
        self._access = access
        self._conversations = conversations
        self._history = history
        self._log = log
        self._subscriptions = subscriptions
        self._refresh = refresh
        self._status = status
        self._backup = backup
        self._titles = Titles(conversations, history)
        self.resolve = Resolver(access, data_dir).answer

    def now(self, caller: Caller, read: StateQuery, params: Any) -> Outcome | None:
        """Return the outcome if it is available without waiting, else None."""
        loaded = self._access.find(caller.user, params.conversation)
        if loaded is None or loaded.dirty:
            return None
        return build_reply(read, params, loaded, self._subscriptions.head)

    async def durable(self, caller: Caller, name: str) -> LoadedConversation | Rejection:
        """Resolve a name to a conversation, and wait until its state is in the log.

        This remains true until the caller awaits.
        """
        return await self._access.durable(caller.user, name)

    def list_claimed(self, leases: Iterable[Lease]) -> tuple[AgentTask, ...]:
        """Return the claimed task of each lease, with the path of its parents."""
        return tuple(
            AgentTask(
                conversation=lease.conversation,
                id=task.id,
                title=task.title,
                path=loaded.state.path(task),
                **departure_of(loaded.add_claim_details([task])[0]),
            )
            for lease in leases
            if (loaded := self._conversations.loaded.get(lease.conversation))
            and (task := loaded.state.tasks.get(lease.task)) is not None
        )

    async def from_state(self, caller: Caller, read: StateQuery, params: Any) -> Outcome:
        """Answer a read once its state is loaded and durable."""
        loaded = await self._access.durable(caller.user, params.conversation)
        return loaded if isinstance(loaded, Rejection) else build_reply(read, params, loaded, self._subscriptions.head)

    async def reaches(self, caller: Caller, name: str, version: int) -> Rejection | None:
        """Wait up to `REACHED_S` until a conversation reaches a version.

        Return the rejection if it doesn't, else None.
        """
        loaded: LoadedConversation | Rejection = await self._access.durable(caller.user, name)
        with anyio.move_on_after(REACHED_S):
            while not isinstance(loaded, Rejection) and loaded.state.version < version:
                await self._subscriptions.change(loaded.state.conversation, caller.user, self._subscriptions.head)
                loaded = await self._access.durable(caller.user, name)
        if isinstance(loaded, Rejection) or loaded.state.version >= version:
            return loaded if isinstance(loaded, Rejection) else None
        shared = loaded.shared
        where = "" if shared is None else f" The space {shared.space}: {shared.state}."
        text = (
            f"{loaded.state.conversation} is at version {loaded.state.version}; version {version} has not "
            f"arrived.{where}"
        )
        return Rejection("version_conflict", text, {"expected": version, "actual": loaded.state.version})

    async def reject_damage(self, answer: Awaitable[Outcome]) -> Outcome:
        """Await an outcome, and return the rejection if the part of the log that it needs is damaged."""
        try:
            return await answer
        except Damaged as damaged:
            return self._conversations.record_damage(damaged)
        except Gap as gap:
            return gap_of(gap)

    # from the log

    async def _list_since(self, caller: Caller, params: p.TaskList, since: int) -> Outcome:
        if params != p.TaskList(conversation=params.conversation, since=since, epoch=params.epoch):
            text = "Changes can't be filtered: pass `since` with conversation and epoch only."
            return Rejection("invalid_params", text, {"field": "since"})
        name = await self.position(caller, params.conversation, since, params.epoch)
        if isinstance(name, Rejection):
            return name
        loaded = await self._access.durable(caller.user, params.conversation)
        if isinstance(loaded, Rejection):
            return loaded
        reset, ids, gone = find_changes(loaded, since)
        state, rows = loaded.state, encode_rows(loaded, ids)
        end = LIST_END % (state.version, self._subscriptions.head, len(state.tasks))
        return b'{"tasks":[],%b%b' % (encode_row_members(loaded, rows, gone, reset=reset), end)

    async def list_tasks(self, caller: Caller, params: p.TaskList) -> Outcome:
        """Answer `task.list` for an older version, or for the changes since a position."""
        if params.since is not None:
            return await self._list_since(caller, params, params.since)
        loaded = await self._access.durable(caller.user, params.conversation)
        if isinstance(loaded, Rejection):
            return loaded
        version, newest = params.at_version or 0, loaded.state.version
        if version > newest:
            text = f"{loaded.state.conversation} is at version {newest}; version {version} does not exist yet."
            facts = {"field": "at_version", "expected": f"0 to {newest}"}
            return loaded.reject_missing(Rejection("invalid_params", text, facts))
        name, history = loaded.state.conversation, self._history
        return await history.at(
            name, version, loaded.seq, lambda state, seq: build_reply(filter_tasks, params, state, seq)
        )

    async def list_conversations(self, caller: Caller, params: p.ConversationList) -> Outcome:
        async def list_page() -> tuple[list[bytes], str | None]:
            await self._refresh()
            return await self._log.list(
                query=params.query,
                user=caller.user,
                active=params.active,
                kind=None if params.kind == "any" else params.kind,
                limit=params.limit,
                cursor=params.cursor,
            )

        try:
            rows, cursor = await self._conversations.use_index(list_page)
        except BadCursor:
            text = "Unknown cursor: pass next_cursor of the previous page, or leave it out."
            return Rejection("invalid_params", text, {"field": "cursor"})
        if any(lane.shared is not None for lane in self._conversations.lanes.values()):
            rows = [self._add_shared(row) for row in rows]
        if any(loaded.state.claims for loaded in self._conversations.loaded.values()):
            rows = [self._add_departures(row) for row in rows]
        end = b"" if cursor is None else b',"next_cursor":' + _encode(cursor)
        if caller.user is None and (names := await self.short_names(map(_name_in, rows))):
            end += b',"names":' + _encode(names)
        return build_reply(lambda: b'{"conversations":[%b]%b}' % (b",".join(rows), end))

    async def short_names(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the short names of conversations, by id."""
        await self._access.fill_short_names()
        return {id: name for id in ids if (name := self._access.short_names.of(id))}

    def _add_departures(self, row: bytes) -> bytes:
        """Add the owners' departures to an indexed conversation."""
        loaded = self._conversations.loaded.get(_name_in(row))
        if loaded is None or not loaded.state.claims:
            return row
        conversation = msgspec.json.decode(row, type=Conversation)
        running = loaded.add_departures(conversation.running)
        if running == conversation.running:
            return row
        return _encode(msgspec.structs.replace(conversation, running=running))

    def _add_shared(self, row: bytes) -> bytes:
        """Add the replication state to an indexed conversation, if its newest changes may be missing."""
        lane = self._conversations.lanes.get(msgspec.json.decode(row)["conversation"])
        shared = None if lane is None else lane.shared
        return row if shared is None else b'%b,"shared":%b}' % (row[:-1], _encode(shared))

    async def list_messages(self, caller: Caller, params: p.MessageList) -> Outcome:
        loaded = await self._access.durable(caller.user, params.conversation)
        if isinstance(loaded, Rejection):
            return loaded
        ids = list(loaded.state.messages)
        if params.order == "desc":
            ids.reverse()
        if params.after is not None:
            if params.after not in loaded.state.messages:
                return loaded.reject_missing(message_not_found(params.after))
            ids = ids[ids.index(params.after) + 1 :]
        if (hidden := loaded.state.hidden) and not params.all:
            ids = [id for id in ids if id not in hidden]
        if params.roles:
            messages, has_more = await self._of_roles(loaded.state, ids, params)
        else:
            messages = await self._messages(loaded.state, ids[: params.limit])
            has_more = len(ids) > len(messages)
        result = r.MessageListResult(messages=tuple(messages), has_more=has_more, damaged=loaded.cut)
        return build_reply(_encode, result)

    async def _of_roles(self, state: State, ids: list[str], params: p.MessageList) -> tuple[list[Message], bool]:
        """Return the first messages with one of these roles, and whether more may follow."""
        matches: list[Message] = []
        size = 0
        while ids and size < READ_BYTES:
            page = await self._messages(state, ids[:FILTER_PAGE])
            for at, message in enumerate(page):
                if message.role in params.roles:
                    matches.append(message)
                    size += len(_encode(message))
                if len(matches) == params.limit or size >= READ_BYTES:
                    return matches, len(ids) > at + 1
            ids = ids[len(page) :]
        return matches, bool(ids)

    async def get_message(self, caller: Caller, params: p.MessageGet) -> Outcome:
        loaded = await self._access.durable(caller.user, params.conversation)
        if isinstance(loaded, Rejection):
            return loaded
        if not loaded.state.exists and loaded.cut is None:
            return conversation_not_found(params.conversation)
        if params.message not in loaded.state.messages:
            return loaded.reject_missing(message_not_found(params.message))
        (message,) = await self._messages(loaded.state, [params.message])
        return _encode(r.MessageGetResult(message=message))

    async def find_events(self, caller: Caller, params: p.EventFind) -> Outcome:
        loaded = await self._access.durable(caller.user, params.conversation)
        if isinstance(loaded, Rejection):
            return loaded
        group = await self._log.find_key(loaded.state.conversation, params.key)
        return b'{"events":[%b],"epoch":%b}' % (b",".join(event.wire for event in group), _encode(self.epoch))

    async def _messages(self, state: State, page: list[str]) -> list[Message]:
        """Read the first of these messages: at least one, but not much more than `READ_BYTES`."""
        cache: dict[int, tuple[Message, int]] = {}
        messages: list[Message] = []
        size = 0
        for at, id in enumerate(page):
            seq = state.messages[id]
            if seq not in cache:
                near = {state.messages[other] for other in page[at : at + READ_MESSAGES]}
                cache = await self._read_messages(state.conversation, near)
                if seq not in cache:
                    # If the messages are requested in descending order, older ones may have filled the page.
                    cache |= await self._read_messages(state.conversation, {seq})
            by = state.hidden.get(id)
            message = cache[seq][0]
            if by is not None:
                message = msgspec.structs.replace(message, superseded_by=by, retracted=not by)
            messages.append(message)
            size += cache[seq][1]
            if size >= READ_BYTES:
                break
        return messages

    async def _read_messages(self, name: str, positions: set[int]) -> dict[int, tuple[Message, int]]:
        """Read as many of the messages at these positions as fit into one page, with their sizes."""
        first, last = min(positions), max(positions)
        page = await self._log.read(first - 1, 1 + last - first, conversation=name, max_bytes=READ_BYTES)
        messages: dict[int, tuple[Message, int]] = {}
        for stored in page:
            fact = fact_of(stored) if stored.seq in positions else None
            if fact is not None and isinstance(event := fact.event, MessageAppended):
                message = Message(
                    message=event.message,
                    role=event.role,
                    content=event.content,
                    at=fact.at,
                    actor=fact.actor,
                    seq=fact.seq,
                    supersedes=event.supersedes,
                )
                messages[fact.seq] = message, len(stored.line)
        if len(positions) == 1 and not messages:
            raise Damaged(name, first, "the event is missing")
        return messages

    async def position(
        self, caller: Caller, name: str | None, after: int | None, epoch: str | None
    ) -> str | None | Rejection:
        """Check a reader's position. Return the id of its conversation (None if it reads all) or the rejection."""
        if epoch is not None and epoch != self.epoch:
            text = "The position belongs to another log; read the list again and continue from its seq."
            return Rejection("wrong_epoch", text, {"epoch": epoch, "expected": self.epoch})
        if after is not None and after > self._subscriptions.head:
            head = self._subscriptions.head
            text = f"The log ends at {head}: position {after} belongs to another log. Read the list again."
            return Rejection("wrong_epoch", text, {"epoch": epoch, "expected": self.epoch})
        if name is None:
            return None
        loaded = await self._access.durable(caller.user, name)
        return loaded if isinstance(loaded, Rejection) else loaded.state.conversation

    async def read_events(self, caller: Caller, params: p.EventRead) -> Outcome:
        if params.after is not None and params.before is not None:
            text = "Pass `after` for the events after a position, or `before` for the newest ones before it, not both."
            return Rejection("invalid_params", text, {"field": "before"})
        last = max(params.before - 1, 0) if params.before is not None else params.after
        name = await self.position(caller, params.conversation, last, params.epoch)
        if isinstance(name, Rejection):
            return name
        if params.after is None:
            end = self._subscriptions.head + 1 if params.before is None else params.before
            room = Room(params.limit, READ_BYTES)
            backward = Backward(self._log, lambda events: self._access.visible(caller.user, events), name, room)
            stored, seq = await backward.read(end)
        else:
            stored, seq = await self._read_after(caller, name, params.after, params.limit)
        wires = await self._titles.add(stored) if params.about else [event.wire for event in stored]
        return self._events_result(wires, seq)

    async def _read_after(self, caller: Caller, name: str | None, after: int, limit: int) -> tuple[list[Stored], int]:
        """Return the events after a position that the caller may see, and the position from which to continue."""
        head = self._subscriptions.head
        stored = await self._log.read(after, limit, conversation=name, max_bytes=READ_BYTES)
        seq = stored[-1].seq if stored else max(after, head)
        return await self._access.visible(caller.user, stored), seq

    async def wait_events(self, caller: Caller, params: p.EventWait) -> Outcome:
        after, events = params.after, list[bytes]()
        name = await self.position(caller, params.conversation, after, params.epoch)
        with anyio.move_on_after(params.timeout_ms / 1000):
            while not isinstance(name, Rejection):
                if after < self._subscriptions.head:
                    # Shielded from cancellation: if the position advanced without its events being returned, they would
                    # be lost.
                    async with caller.turn():
                        with anyio.CancelScope(shield=True):
                            stored, after = await self._read_after(caller, name, after, params.limit)
                            events = [event.wire for event in stored]
                if events:
                    break
                if after < self._subscriptions.head:
                    # The caller isn't allowed to see any event in this page. Try the next one.
                    continue
                await self._subscriptions.change(name, caller.user, after)
                # Check access again: the list may have been deleted and then opened by another user.
                name = await self.position(caller, params.conversation, after, params.epoch)
        return name if isinstance(name, Rejection) else self._events_result(events, after)

    def _events_result(self, events: list[bytes], seq: int) -> Outcome:
        return build_reply(
            lambda: b'{"events":[%b],"next":%d,"epoch":%b}' % (b",".join(events), seq, _encode(self.epoch))
        )

    async def status(self, caller: Caller, _params: p.NoParams) -> Outcome:
        return _encode(await self._status(caller.user))

    async def backup(self, _caller: Caller, params: p.Backup) -> Outcome:
        result = await self._backup(params)
        return result if isinstance(result, Rejection) else _encode(result)


def _name_in(row: bytes) -> str:
    return msgspec.json.decode(row, type=_Named).conversation


_encode = msgspec.json.Encoder().encode
