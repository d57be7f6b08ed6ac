"""Who may name what: the one room in which a name becomes a conversation, and in which a user's scope is decided.

A connection that `daemon.hello` bound to a user sees that user's conversations and no others. To it, what belongs to
somebody else is exactly what does not exist: the same refusal, found by the same lookups. An unbound connection is
trusted and sees everything.

Four kinds of names lead to a conversation:

- its id. Ids are one name space for all users, so an id that is taken can't be opened by another user;
- an outside session that was attached to it. Sessions are a name space of each user: the same one may be attached to a
  list of each, and nobody's session stands in the way of anybody else's name;
- any spelling of a GUID, which leads to the list of that id. Where there are lists of several spellings, each is led to
  by its own; a new list has the spelling of `punchlist_schemas.guid`, and its other spellings lead to it;
- on a bound connection `my:NAME`, and `default` for `my:default`: the user's own list of that name. Its id is
  `of:USER:NAME`, under which unbound connections see it; no other user can open, attach or find it.
"""

import re
from collections.abc import Iterable
from hashlib import blake2b

from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import ConversationConfigured
from punchlist_schemas.guid import spellings
from punchlist_schemas.params import ConversationOpen, Mutation
from punchlist_schemas.repository import stem_of
from punchlistd.domain.rejections import conversation_not_found
from punchlistd.domain.state import State
from punchlistd.engine.lists.conversations import Conversations
from punchlistd.engine.lists.loaded import LoadedConversation
from punchlistd.store.port import EventLog, Stored, side_of
from punchlistd.store.record import is_tombstone

OWN = "my:"
"""How a bound connection names a list of its user."""

_OF = "of:"
_DEFAULT = "default"
_ID_LENGTH = 128
_MOST_SPELLED = 4_096
"""Maximum number of spellings in memory."""

_PLAIN = re.compile(r"(?!x-)[A-Za-z0-9][A-Za-z0-9_.-]{0,31}")


def own_id(user: str, name: str) -> str:
    """The id of a user's own list: different users and names give different ids.

    A user whose name is short and plain stands in it as it is, any other as a hash (`x-…`).
    """
    plain = _PLAIN.fullmatch(user) is not None
    shown = user if plain else f"x-{blake2b(user.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"
    return f"{_OF}{shown}:{name}"


def _is_reserved(user: str | None, id: str) -> bool:
    """Return True if an id is reserved for another user's own list, even if no such list exists."""
    return user is not None and id.startswith(_OF) and not id.startswith(own_id(user, ""))


def check_access(user: str | None, name: str, state: State) -> Rejection | None:
    """Return the rejection if this name belongs to another user, else None."""
    if user is None or not state.exists or state.user == user:
        return None
    return conversation_not_found(name)


def may_meet(user: str | None, other: str | None, state: State) -> bool:
    """Return True if a caller of `user` who has this list may hear that a connection of `other` follows it.

    Where there is no list yet, whose it will be is open: then a user hears only of the user's own connections.
    """
    return other in (None, state.user) if state.exists else user in (None, other)


def for_the_trusted(user: str | None, act: str) -> Rejection | None:
    """Return the rejection if a bound connection asks for what concerns all users, else None."""
    return (
        None
        if user is None
        else Rejection("forbidden", f"A connection bound to a user can't {act}.", {"what": "daemon"})
    )


def foreign_owner(user: str | None, params: Mutation) -> Rejection | None:
    """Return the rejection if a bound caller opens a conversation for another user, else None."""
    if type(params) is not ConversationOpen or user is None or params.user in (None, user):
        return None
    message = f"This connection is bound to the user {user} and can't open a conversation for {params.user}."
    return Rejection("forbidden", message, {"what": "user"})


class Access:
    """Resolves the names that callers use to conversations.

    `user` is the one that the connection is bound to, None for an unbound one.

    Args:
        log: knows the owners and sessions of what is not loaded.
        conversations: the conversations in use, by id.
    """

    def __init__(self, log: EventLog, conversations: Conversations) -> None:
        self._log = log
        self._conversations = conversations
        self._sessions = conversations.sessions
        self._spelled: dict[tuple[str | None, str], str] = {}
        self.short_names = conversations.short_names

    # names to conversations

    def find(self, user: str | None, name: str) -> LoadedConversation | None:
        """Resolve a name if that needs no waiting; never to another user's conversation."""
        if user is None and not self.short_names.is_filled and stem_of(name):
            return None
        own = None if user is None else self._own(user, name)
        found = self._conversations.find(name if own is None else own[0])
        if found is not None and found.state.exists and user in (None, found.state.user):
            return found if user is not None or not found.state.user else self._unless_short(name, found)
        if (spelled := self._spelled.get((user, name))) is not None:
            other = self._conversations.find(spelled)
            return other if other is not None and other.state.exists and user in (None, other.state.user) else None
        if own is not None or _is_reserved(user, name):
            return None
        target = self._sessions.target(user, name)
        if target is None and user is None:
            target = self.short_names.id_of(name)
        if target is not None:
            return self._conversations.find(target)
        return found if found is not None and found.unnamed and not found.state.exists else None

    def _unless_short(self, name: str, found: LoadedConversation) -> LoadedConversation | None:
        """Return the list of this short name, else a user's list of this id; None if that needs waiting.

        A user could otherwise take over a short name that the person's commands use.
        """
        if not self.short_names.is_filled:
            return None
        id = self.short_names.id_of(name)
        return found if id is None else self._conversations.find(id)

    async def load(self, user: str | None, name: str) -> LoadedConversation | Rejection:
        """Resolve a name and load its conversation; an empty one if none exists and the caller may create it."""
        if (found := self.find(user, name)) is not None:
            return found
        spelled = await self._spelling(user, name)
        loaded = await self._load(user, spelled)
        if spelled != name and isinstance(loaded, LoadedConversation) and loaded.state.exists:
            if len(self._spelled) >= _MOST_SPELLED:
                self._spelled.clear()
            self._spelled[user, name] = loaded.state.conversation
        return loaded

    async def _spelling(self, user: str | None, name: str) -> str:
        """The name that leads to the list of a GUID: its own spelling where that is taken, else that of an older list.

        Any other name is its own.
        """
        is_own = self._own(user, name) is not None
        prefix = OWN if is_own and name.startswith(OWN) else ""
        others = [prefix + each for each in spellings(name.removeprefix(prefix))]
        if not others:
            return name
        await self._conversations.recover()
        if not is_own and await self._load_attached(user, name) is not None:
            return name
        for each in (name, *others):
            own = self._own(user, each)
            owner = await self._owner(each if own is None else own[0])
            if owner is not None and user in (None, owner):
                return each
        return others[0]

    async def _load(self, user: str | None, name: str) -> LoadedConversation | Rejection:
        if user is not None:
            own = self._own(user, name)
            return await (self._load_of(user, name) if own is None else self._load_own(user, name, own))
        if stem_of(name):
            await self.fill_short_names()
        loaded = await self._conversations.load(name)
        if loaded.state.exists:
            if loaded.state.user:
                await self.fill_short_names()
                if (id := self.short_names.id_of(name)) is not None:
                    return await self._conversations.load(id)
            return loaded
        if (attached := await self._load_attached(user, name)) is not None:
            loaded.unnamed = False
            return attached
        await self.fill_short_names()
        if (id := self.short_names.id_of(name)) is not None:
            return await self._conversations.load(id)
        loaded.unnamed = True
        return loaded

    async def _load_of(self, user: str, name: str) -> LoadedConversation | Rejection:
        """For a user: whose conversation this is must be known before it is loaded, or the time it takes would tell."""
        await self._conversations.recover()
        owner = await self._owner(name)
        if owner != user and (attached := await self._load_attached(user, name)) is not None:
            return attached
        if owner not in (None, user) or (owner is None and _is_reserved(user, name)):
            return conversation_not_found(name)
        loaded = await self._conversations.load(name)
        return check_access(user, name, loaded.state) or loaded

    async def _load_own(self, user: str, name: str, own: tuple[str, str]) -> LoadedConversation | Rejection:
        """A user's own list; failing that, the one that they opened under the bare name before there were own lists."""
        id, bare = own
        if len(id) > _ID_LENGTH or not bare:
            room = _ID_LENGTH - len(own_id(user, ""))
            facts = {"field": "conversation", "expected": f"1 to {room} characters"}
            message = f"The name of a list of your own must have 1 to {room} characters after {OWN!r}."
            return Rejection("invalid_params", message, facts)
        loaded = await self._conversations.load(id)
        if not loaded.state.exists:
            await self._conversations.recover()
            if await self._owner(bare) == user:
                loaded = await self._conversations.load(bare)
        return check_access(user, name, loaded.state) or loaded

    async def durable(self, user: str | None, name: str) -> LoadedConversation | Rejection:
        """As `load`, its state being in the log; there is no wait between this and what the caller does next."""
        while not isinstance(loaded := await self.load(user, name), Rejection) and loaded.dirty:
            await self._conversations.settled()
        return loaded

    def _own(self, user: str | None, name: str) -> tuple[str, str] | None:
        """The id of the user's own list of this name and its bare name; None where the name is of another kind."""
        if user is None or not (name == _DEFAULT or name.startswith(OWN)):
            return None
        bare = name.removeprefix(OWN)
        return own_id(user, bare), bare

    def is_own(self, user: str | None, name: str) -> bool:
        """Return True if this names a list of the user's own, even if it does not exist yet."""
        return self._own(user, name) is not None

    async def _owner(self, id: str) -> str | None:
        """Whose conversation it is, "" for nobody's; None if there is none of this id."""
        loaded = self._conversations.loaded.get(id)
        if loaded is not None and loaded.damage is None:
            return loaded.state.user if loaded.state.exists else None
        return await self._conversations.rebuilt(lambda: self._log.owner(id))

    # sessions

    async def _load_attached(self, user: str | None, session: str) -> LoadedConversation | None:
        """The same, if it takes the store's index, which follows behind."""
        await self._conversations.recover()
        for id in await self._conversations.rebuilt(lambda: self._log.resolve(session)):
            if user is None or await self._owner(id) == user:
                await self._conversations.load(id)
        target = self._sessions.target(user, session)
        return None if target is None else await self._conversations.load(target)

    def holders(self, user: str | None, session: str, target: LoadedConversation) -> list[LoadedConversation]:
        """The conversations that a session leaves when it is attached to `target`; all of them are loaded."""
        owner = target.state.user if target.state.exists else user or ""
        ids = self._sessions.targets(session, tuple(each for each in (owner, "") if user in (None, each)))
        held = [self._conversations.loaded[id] for id in ids if id in self._conversations.loaded]
        return [loaded for loaded in held if loaded is not target]

    def follow(
        self,
        deleted: Iterable[str],
        changes: Iterable[tuple[str, ConversationConfigured]],
        touched: Iterable[LoadedConversation],
    ) -> None:
        """Take note of openings, deletions, attachments and detachments in these events."""
        for id in deleted:
            self._sessions.detach(id)
        for id, event in changes:
            if isinstance(event.detached, str):
                self._sessions.detach(id, event.detached)
            if isinstance(event.attached, str):
                self._sessions.attach(event.attached, self._conversations.loaded[id].state.user, id)
                self._conversations.drop_empty(event.attached)
        for loaded in touched:
            state = loaded.state
            if not state.user:
                self.short_names.note(state.conversation, exists=state.exists)

    # events

    async def fill_short_names(self) -> None:
        if not self.short_names.is_filled:
            names = await self.names("")
            self.short_names.fill(names)

    async def names(self, user: str) -> set[str]:
        """Return the ids of a user's conversations."""
        await self._conversations.recover()
        names = set(await self._conversations.rebuilt(lambda: self._log.names(user)))
        for name, loaded in self._conversations.loaded.items():
            if loaded.state.exists and loaded.state.user == user:
                names.add(name)
            else:
                names.discard(name)
        return names

    async def visible(self, user: str | None, stored: list[Stored]) -> list[Stored]:
        """Filter events to those a user may see: of their conversations, and the erasure of one of them."""
        if user is None or not stored:
            return stored
        names = await self.names(user)
        return [event for event in stored if _is_of(user, names, event)]


def _is_of(user: str, names: set[str], event: Stored) -> bool:
    if is_tombstone(event.wire):
        return side_of(event).owner == user
    return event.conversation in names
