"""Views of subscriptions: how a changed conversation is pushed.

A view pushes the newest state and skips states in between, so it needs no queue. `rows` keeps a position and the ids
that did not fit into the last push, and `presence` keeps its last push. The other views keep nothing. The arguments of
`push` include the subscription's `id` and the `position` up to which the subscriber has every conversation. Subscribers
at the same position get notifications that differ only in the id, so `cache` shares them within one delivery.
"""

from collections.abc import Hashable, Iterable

import msgspec

from punchlist_schemas.results import BoardPush
from punchlistd.engine.lists.loaded import LoadedConversation
from punchlistd.engine.replies import Reply, notification
from punchlistd.engine.watching.presence import Presence

Cache = dict[Hashable, bytes]
"""The parts of notifications after the subscription's id, which several subscribers share."""


class Lists:
    """The whole list."""

    def push(self, id: str, loaded: LoadedConversation, position: int, cache: Cache) -> tuple[Reply, bool]:
        """Return the notification, and whether more has to follow."""
        state = loaded.state
        head = _encode(
            {
                "subscription": id,
                "conversation": state.conversation,
                "version": state.version,
                "seq": loaded.seq,
            }
        )
        return loaded.build_list_reply(b'{"jsonrpc":"2.0","method":"list","params":%b,' % head[:-1], b"}}"), False


class Rows:
    """The tasks that have changed since a position, in pieces.

    Args:
        after: The position up to which the subscriber has the list; None if it doesn't have the list.
        piece: Approximate size of the rows in one push, in bytes.
    """

    def __init__(self, after: int | None, piece: int) -> None:
        self._piece = piece
        self._after = 0 if after is None else after
        self._seen = -1 if after is None else after
        self._rest: dict[str, None] = {}
        self._resumes = after is not None

    def show(self, tasks: Iterable[str]) -> None:
        """Add tasks to the next push, because their displayed state has changed without a new event."""
        self._rest.update(dict.fromkeys(tasks))

    def push(self, id: str, loaded: LoadedConversation, position: int, cache: Cache) -> tuple[Reply, bool]:
        """Return the notification, and whether more has to follow.

        The notification's position doesn't advance until the last piece, so a subscriber that resumes from it misses
        nothing.
        """
        if self._resumes:
            # Departures and returns of owners are not in the log, so push all claimed tasks again.
            self._resumes = False
            self.show(loaded.state.claims)
        key = None if self._rest else (Rows, loaded.state.conversation, self._seen, self._piece)
        if (rest := cache.get(key)) is not None:
            self._after = self._seen = loaded.seq
            return notification("rows", _begin_params(id) + rest), False
        state = loaded.state
        reset, ids, gone = find_changes(loaded, self._seen)
        if reset:
            self._rest = {}
        self._rest.update(dict.fromkeys(reversed(ids)))
        for name in gone:
            self._rest.pop(name, None)
        self._seen = loaded.seq
        rows, size = list[bytes](), 0
        while self._rest and size < self._piece:
            name = self._rest.popitem()[0]
            if name in state.tasks:  # a task from `show` may have been deleted
                rows += encode_rows(loaded, [name])
                size += len(rows[-1])
        more = bool(self._rest)
        if not more:
            self._after = self._seen
        head = _encode({"conversation": state.conversation, "version": state.version, "seq": self._after})
        members = encode_row_members(loaded, rows, gone, reset=reset)
        rest = b",%b,%b%b}" % (head[1:-1], members, b',"more":true' if more else b"")
        if key is not None and not more:
            cache[key] = rest
        return notification("rows", _begin_params(id) + rest), more


class Boards:
    """A card for each conversation except chat threads."""

    def push(self, id: str, loaded: LoadedConversation, position: int, cache: Cache) -> tuple[Reply | None, bool]:
        """Return the notification, if there is one, and whether more has to follow."""
        if loaded.state.kind == "chat":
            return None, False
        key = (Boards, loaded.state.conversation, position)
        if (rest := cache.get(key)) is None:
            push = BoardPush(subscription="", seq=position, card=loaded.view(), gone=not loaded.state.exists)
            rest = cache[key] = _encode(push).removeprefix(_begin_params(""))
        return notification("board", _begin_params(id) + rest), False


class Present:
    """The actors that follow the conversation.

    Args:
        user: The user that the subscriber is bound to.
    """

    def __init__(self, presence: Presence, user: str | None) -> None:
        self._presence = presence
        self._user = user
        self._last = b""

    def push(self, id: str, loaded: LoadedConversation, position: int, cache: Cache) -> tuple[Reply | None, bool]:
        """Return the notification, if there is one, and whether more has to follow."""
        present = self._presence.present(self._user, loaded.state)
        if present == self._last:
            return None, False
        self._last = present
        head = _encode({"subscription": id, "conversation": loaded.state.conversation})
        return notification("presence", b'%b,"present":%b}' % (head[:-1], present)), False


View = Lists | Rows | Boards | Present


def build_view(name: str, after: int | None, piece: int, presence: Presence, user: str | None) -> View | None:  # noqa: PLR0913
    """Return the view with this name, or None for a subscription to events. See `Rows` and `Present`."""
    if name == "rows":
        return Rows(after, piece)
    if name == "presence":
        return Present(presence, user)
    return {"list": Lists(), "board": Boards()}.get(name)


def _begin_params(id: str) -> bytes:
    return b'{"subscription":' + _encode(id)


def find_changes(loaded: LoadedConversation, since: int) -> tuple[bool, list[str], list[str]]:
    """Return whether the subscriber needs the whole list, the ids of tasks to send, and the ids of deleted tasks."""
    delta = loaded.state.since(since)
    return (True, loaded.state.ids(), []) if delta is None else (False, *delta)


def encode_rows(loaded: LoadedConversation, ids: list[str]) -> list[bytes]:
    state = loaded.state
    tasks = loaded.add_claim_details([state.tasks[name] for name in ids])
    return [b'%b,"rank":"%b"}' % (_encode(task)[:-1], state.key(task.id).encode()) for task in tasks]


def encode_row_members(loaded: LoadedConversation, rows: list[bytes], gone: list[str], *, reset: bool) -> bytes:
    """Encode a change to the list as members of a JSON object."""
    return b'"rows":[%b]%b%b,"counts":%b%b%b' % (
        b",".join(rows),
        b',"gone":' + _encode(gone) if gone else b"",
        b',"reset":true' if reset else b"",
        _encode(loaded.state.counts()),
        loaded.damaged_member,
        loaded.shared_member,
    )


_encode = msgspec.json.Encoder().encode
