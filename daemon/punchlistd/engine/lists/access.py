"""Name resolution and access: the only place where names are resolved to conversations and a user's scope is checked.

A connection that `daemon.hello` bound to a user sees only that user's conversations. Other users' conversations seem
not to exist: a call that names one gets the same error, after the same lookups, as a call that finds nothing under its
name. An unbound connection is trusted and sees all conversations.

Four kinds of names resolve to a conversation:

- Its id. All users share one namespace of ids, so a user can't open an id that another user has taken.
- An attached session. Each user has a separate namespace of sessions. The same session can be attached to one list of
  each user, and never blocks the name of another user's list.
- Any spelling of a GUID. If several lists exist whose ids are spellings of the same GUID, each spelling names its own
  list. A new list gets the spelling defined in `punchlist_schemas.guid`.
- On a bound connection, `my:NAME`, which is the user's own list with that name. `default` is short for `my:default`.
  The list's id is `of:USER:NAME`, which unbound connections use. No other user can open, attach or find it.
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
"""Prefix with which a bound connection names its user's own lists."""

_OF = "of:"
_DEFAULT = "default"
_ID_LENGTH = 128
_MAX_SPELLINGS = 4_096
"""Maximum number of cached spellings."""

_PLAIN = re.compile(r"(?!x-)[A-Za-z0-9][A-Za-z0-9_.-]{0,31}")


def own_id(user: str, name: str) -> str:
    """Return the id of a user's own list. It is unique for each pair of user and name.

    It contains the user's name if that is short and plain, otherwise a hash of the name (`x-…`).
    """
    is_plain = _PLAIN.fullmatch(user) is not None
    part = user if is_plain else f"x-{blake2b(user.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"
    return f"{_OF}{part}:{name}"


def _is_reserved(user: str | None, id: str) -> bool:
    """Return True if an id is reserved for another user's own list, even if that doesn't exist."""
    return user is not None and id.startswith(_OF) and not id.startswith(own_id(user, ""))


def check_access(user: str | None, name: str, state: State) -> Rejection | None:
    """Return the rejection if the conversation with this name belongs to another user, else None."""
    if user is None or not state.exists or state.user == user:
        return None
    return conversation_not_found(name)


def may_meet(user: str | None, other: str | None, state: State) -> bool:
    """Return True if a caller bound to `user` with access to this list may see that a connection of `other` follows it.

    A list that doesn't exist yet has no owner, so a bound caller sees only connections of its own user there.
    """
    return other in (None, state.user) if state.exists else user in (None, other)


def check_trusted(user: str | None, act: str) -> Rejection | None:
    """Return the rejection if a bound connection makes a call that concerns all users, else None."""
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
    """Resolves the names that callers use for conversations.

    In all methods, `user` is the user that the connection is bound to, or None if it is unbound.
    """

    def __init__(self, log: EventLog, conversations: Conversations) -> None:
        self._log = log
        self._conversations = conversations
        self._sessions = conversations.sessions
        self._spellings: dict[tuple[str | None, str], str] = {}
        self.short_names = conversations.short_names

    # names to conversations

    def find(self, user: str | None, name: str) -> LoadedConversation | None:
        """Resolve a name without waiting, or return None. Never returns another user's conversation."""
        if user is None and not self.short_names.is_filled and stem_of(name):
            return None
        own = None if user is None else self._own(user, name)
        loaded = self._conversations.find(name if own is None else own[0])
        if loaded is not None and loaded.state.exists and user in (None, loaded.state.user):
            return loaded if user is not None or not loaded.state.user else self._prefer_short_name(name, loaded)
        if (spelling := self._spellings.get((user, name))) is not None:
            other = self._conversations.find(spelling)
            return other if other is not None and other.state.exists and user in (None, other.state.user) else None
        if own is not None or _is_reserved(user, name):
            return None
        target = self._sessions.target(user, name)
        if target is None and user is None:
            target = self.short_names.id_of(name)
        if target is not None:
            return self._conversations.find(target)
        return loaded if loaded is not None and loaded.is_unused_name and not loaded.state.exists else None

    def _prefer_short_name(self, name: str, loaded: LoadedConversation) -> LoadedConversation | None:
        """Return the list with this short name, or else a user's list with this id; None if the lookup has to wait.

        Otherwise a user could take over a short name that the person at this machine uses in commands.
        """
        if not self.short_names.is_filled:
            return None
        id = self.short_names.id_of(name)
        return loaded if id is None else self._conversations.find(id)

    async def load(self, user: str | None, name: str) -> LoadedConversation | Rejection:
        """Resolve a name and load its conversation, or an empty one if the caller may create it."""
        if (ready := self.find(user, name)) is not None:
            return ready
        spelling = await self._resolve_spelling(user, name)
        loaded = await self._load(user, spelling)
        if spelling != name and isinstance(loaded, LoadedConversation) and loaded.state.exists:
            if len(self._spellings) >= _MAX_SPELLINGS:
                self._spellings.clear()
            self._spellings[user, name] = loaded.state.conversation
        return loaded

    async def _resolve_spelling(self, user: str | None, name: str) -> str:
        """Return the spelling of a GUID under which a list exists, trying the given one first.

        If no such list exists, return the spelling for a new one. Names that are not GUIDs are returned unchanged.
        """
        is_own = self._own(user, name) is not None
        prefix = OWN if is_own and name.startswith(OWN) else ""
        others = [prefix + spelling for spelling in spellings(name.removeprefix(prefix))]
        if not others:
            return name
        await self._conversations.recover()
        if not is_own and await self._load_attached(user, name) is not None:
            return name
        for spelling in (name, *others):
            own = self._own(user, spelling)
            owner = await self._find_owner(spelling if own is None else own[0])
            if owner is not None and user in (None, owner):
                return spelling
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
            loaded.is_unused_name = False
            return attached
        await self.fill_short_names()
        if (id := self.short_names.id_of(name)) is not None:
            return await self._conversations.load(id)
        loaded.is_unused_name = True
        return loaded

    async def _load_of(self, user: str, name: str) -> LoadedConversation | Rejection:
        # Look up the owner before loading. Otherwise the time to load another user's list would reveal that it exists.
        await self._conversations.recover()
        owner = await self._find_owner(name)
        if owner != user and (attached := await self._load_attached(user, name)) is not None:
            return attached
        if owner not in (None, user) or (owner is None and _is_reserved(user, name)):
            return conversation_not_found(name)
        loaded = await self._conversations.load(name)
        return check_access(user, name, loaded.state) or loaded

    async def _load_own(self, user: str, name: str, own: tuple[str, str]) -> LoadedConversation | Rejection:
        """Load a user's own list, or else the user's list with the bare name, made before own lists existed."""
        id, bare = own
        if len(id) > _ID_LENGTH or not bare:
            room = _ID_LENGTH - len(own_id(user, ""))
            facts = {"field": "conversation", "expected": f"1 to {room} characters"}
            message = f"The name of a private list must have 1 to {room} characters after {OWN!r}."
            return Rejection("invalid_params", message, facts)
        loaded = await self._conversations.load(id)
        if not loaded.state.exists:
            await self._conversations.recover()
            if await self._find_owner(bare) == user:
                loaded = await self._conversations.load(bare)
        return check_access(user, name, loaded.state) or loaded

    async def durable(self, user: str | None, name: str) -> LoadedConversation | Rejection:
        """Load a conversation and wait until its state is in the log. This remains true until the caller awaits."""
        while not isinstance(loaded := await self.load(user, name), Rejection) and loaded.dirty:
            await self._conversations.wait_until_settled()
        return loaded

    def _own(self, user: str | None, name: str) -> tuple[str, str] | None:
        """Return the id and the bare name of a user's own list, or None for other kinds of names."""
        if user is None or not (name == _DEFAULT or name.startswith(OWN)):
            return None
        bare = name.removeprefix(OWN)
        return own_id(user, bare), bare

    def is_own(self, user: str | None, name: str) -> bool:
        """Return True if this is the name of one of the user's own lists, even if that doesn't exist yet."""
        return self._own(user, name) is not None

    async def _find_owner(self, id: str) -> str | None:
        """Return the owner of a conversation: "" if it has no owner, None if the conversation doesn't exist."""
        loaded = self._conversations.loaded.get(id)
        if loaded is not None and loaded.damage is None:
            return loaded.state.user if loaded.state.exists else None
        return await self._conversations.use_index(lambda: self._log.owner(id))

    # sessions

    async def _load_attached(self, user: str | None, session: str) -> LoadedConversation | None:
        """Load the conversation that a session is attached to, using the index."""
        await self._conversations.recover()
        for id in await self._conversations.use_index(lambda: self._log.resolve(session)):
            if user is None or await self._find_owner(id) == user:
                await self._conversations.load(id)
        target = self._sessions.target(user, session)
        return None if target is None else await self._conversations.load(target)

    def holders(self, user: str | None, session: str, target: LoadedConversation) -> list[LoadedConversation]:
        """Return the conversations that a session leaves when it is attached to `target`.

        These conversations must be loaded.
        """
        owner = target.state.user if target.state.exists else user or ""
        owners = tuple(candidate for candidate in (owner, "") if user in (None, candidate))
        ids = self._sessions.targets(session, owners)
        holders = [self._conversations.loaded[id] for id in ids if id in self._conversations.loaded]
        return [loaded for loaded in holders if loaded is not target]

    def follow(
        self,
        deleted: Iterable[str],
        changes: Iterable[tuple[str, ConversationConfigured]],
        touched: Iterable[LoadedConversation],
    ) -> None:
        """Update sessions and short names after a commit."""
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
        names = set(await self._conversations.use_index(lambda: self._log.names(user)))
        for name, loaded in self._conversations.loaded.items():
            if loaded.state.exists and loaded.state.user == user:
                names.add(name)
            else:
                names.discard(name)
        return names

    async def visible(self, user: str | None, stored: list[Stored]) -> list[Stored]:
        """Return the events that a user may see: those of the user's conversations, and tombstones of erased ones."""
        if user is None or not stored:
            return stored
        names = await self.names(user)
        return [event for event in stored if _is_of(user, names, event)]


def _is_of(user: str, names: set[str], event: Stored) -> bool:
    if is_tombstone(event.wire):
        return side_of(event).owner == user
    return event.conversation in names
