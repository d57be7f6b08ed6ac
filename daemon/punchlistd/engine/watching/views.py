"""How the views of a subscription show a conversation that changed.

A view owes a subscriber the newest there is, never what it was in between. So it keeps no queue: `rows` keeps a
position and the ids of what did not fit into the last piece, `presence` what it told last, the others nothing. What
`push` makes goes to subscription `id`; `behind` is the position up to which that subscriber has been told of every
conversation. Those who are equally far are told the same, but for the id: within one delivery that is made once, and
`same` keeps it.
"""

from collections.abc import Hashable, Iterable

import msgspec

from punchlist_schemas.results import BoardPush
from punchlistd.engine.lists.loaded import LoadedConversation
from punchlistd.engine.replies import Reply, notification
from punchlistd.engine.watching.presence import Presence

Same = dict[Hashable, bytes]
"""What stands behind the subscription's id in a notification that several are sent."""


class Lists:
    """The whole list."""

    def push(self, id: str, loaded: LoadedConversation, behind: int, same: Same) -> tuple[Reply, bool]:
        """The notification, and whether more has to follow."""
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
    """What looks different since a position, in pieces.

    Args:
        after: the position; None: nothing is known.
        piece: about how many bytes of rows are told at once.
    """

    def __init__(self, after: int | None, piece: int) -> None:
        self._piece = piece
        self._after = 0 if after is None else after
        self._seen = -1 if after is None else after
        self._rest: dict[str, None] = {}
        self._resumes = after is not None

    def show(self, tasks: Iterable[str]) -> None:
        """Add tasks whose display has changed without a new event to the next push."""
        self._rest.update(dict.fromkeys(tasks))

    def push(self, id: str, loaded: LoadedConversation, behind: int, same: Same) -> tuple[Reply, bool]:
        """The notification, and whether more has to follow.

        While more follows, the position to go on from stays where everything before it is told.
        """
        if self._resumes:  # whose owner has left or come back meanwhile, no position tells
            self._resumes = False
            self.show(loaded.state.claims)
        key = None if self._rest else (Rows, loaded.state.conversation, self._seen, self._piece)
        if (rest := same.get(key)) is not None:
            self._after = self._seen = loaded.seq
            return notification("rows", _to(id) + rest), False
        state = loaded.state
        reset, ids, gone = changes(loaded, self._seen)
        if reset:
            self._rest = {}
        self._rest.update(dict.fromkeys(reversed(ids)))
        for name in gone:
            self._rest.pop(name, None)
        self._seen = loaded.seq
        rows, size = list[bytes](), 0
        while self._rest and size < self._piece:
            name = self._rest.popitem()[0]
            if name in state.tasks:  # what `show` added may be gone
                rows += encoded_rows(loaded, [name])
                size += len(rows[-1])
        more = bool(self._rest)
        if not more:
            self._after = self._seen
        head = _encode({"conversation": state.conversation, "version": state.version, "seq": self._after})
        members = row_members(loaded, rows, gone, reset=reset)
        rest = b",%b,%b%b}" % (head[1:-1], members, b',"more":true' if more else b"")
        if key is not None and not more:
            same[key] = rest
        return notification("rows", _to(id) + rest), more


class Boards:
    """Each conversation in a line, but threads of chats, which no board shows."""

    def push(self, id: str, loaded: LoadedConversation, behind: int, same: Same) -> tuple[Reply | None, bool]:
        """The notification, if there is one, and whether more has to follow."""
        if loaded.state.kind == "chat":
            return None, False
        key = (Boards, loaded.state.conversation, behind)
        if (rest := same.get(key)) is None:
            push = BoardPush(subscription="", seq=behind, card=loaded.view(), gone=not loaded.state.exists)
            rest = same[key] = _encode(push).removeprefix(_to(""))
        return notification("board", _to(id) + rest), False


class Present:
    """Who follows the conversation, each time that this looks different.

    Args:
        presence: knows that.
        user: whom the subscriber is bound to.
    """

    def __init__(self, presence: Presence, user: str | None) -> None:
        self._presence = presence
        self._user = user
        self._told = b""

    def push(self, id: str, loaded: LoadedConversation, behind: int, same: Same) -> tuple[Reply | None, bool]:
        """The notification, if there is one, and whether more has to follow."""
        present = self._presence.present(self._user, loaded.state)
        if present == self._told:
            return None, False
        self._told = present
        head = _encode({"subscription": id, "conversation": loaded.state.conversation})
        return notification("presence", b'%b,"present":%b}' % (head[:-1], present)), False


View = Lists | Rows | Boards | Present


def view(name: str, after: int | None, piece: int, presence: Presence, user: str | None) -> View | None:  # noqa: PLR0913
    """The view of this name; None: of the events themselves. For the arguments see `Rows` and `Present`."""
    if name == "rows":
        return Rows(after, piece)
    if name == "presence":
        return Present(presence, user)
    return {"list": Lists(), "board": Boards()}.get(name)


def _to(id: str) -> bytes:
    """The beginning of a notification's params."""
    return b'{"subscription":' + _encode(id)


def changes(loaded: LoadedConversation, since: int) -> tuple[bool, list[str], list[str]]:
    """Whether only the whole list can tell what changed since a position; the ids of these tasks; those gone."""
    found = loaded.state.since(since)
    return (True, loaded.state.ids(), []) if found is None else (False, *found)


def encoded_rows(loaded: LoadedConversation, ids: list[str]) -> list[bytes]:
    """Tasks of the list as rows."""
    state = loaded.state
    shown = loaded.add_claim_details([state.tasks[name] for name in ids])
    return [b'%b,"rank":"%b"}' % (_encode(task)[:-1], state.key(task.id).encode()) for task in shown]


def row_members(loaded: LoadedConversation, rows: list[bytes], gone: list[str], *, reset: bool) -> bytes:
    """What changed, as members of a JSON object."""
    return b'"rows":[%b]%b%b,"counts":%b%b%b' % (
        b",".join(rows),
        b',"gone":' + _encode(gone) if gone else b"",
        b',"reset":true' if reset else b"",
        _encode(loaded.state.counts()),
        loaded.damaged_member,
        loaded.shared_member,
    )


_encode = msgspec.json.Encoder().encode
