"""Computes undos outside the writer. The result is valid only if the list has not changed by the undo's turn."""

import msgspec

from punchlist_schemas.params import ListUndo
from punchlistd.domain.decide.undo import undo_calls
from punchlistd.domain.undo.lookback import Lookback
from punchlistd.engine.calls import Write
from punchlistd.engine.lists.access import Access
from punchlistd.engine.lists.conversations import Conversations
from punchlistd.engine.lists.history import History, deepen
from punchlistd.engine.lists.loaded import LoadedConversation
from punchlistd.store.port import Damaged

MAX_ATTEMPTS = 8
"""How many times an undo is computed outside the writer.

If the list keeps changing, the writer waits for the last attempt.
"""


class Undos:
    """Computes undos from a list's history."""

    def __init__(self, conversations: Conversations, access: Access, history: History) -> None:
        self._conversations = conversations
        self._access = access
        self._history = history

    async def read_past(self, item: Write) -> None:
        """Compute an undo for the list's current state, while the writer continues."""
        params = item.params
        assert type(params) is ListUndo, "nothing else looks back"
        item.attempts += 1
        try:
            loaded = await self._access.load(item.caller.user, params.conversation)
            if isinstance(loaded, LoadedConversation) and loaded.damage is None:
                async with self._history.room(loaded.state.conversation):
                    await self._compute(item, params, loaded, whole=False)
        except Damaged as damaged:
            # The writer rejects the undo because of the recorded damage.
            self._conversations.record_damage(damaged)

    async def decide(self, item: Write, params: ListUndo, loaded: LoadedConversation) -> bool:
        """Return True if the computed undo is valid, False if the list has changed since.

        All decided calls must be in the log, and no other call may be decided while this one runs.

        Raises:
            Damaged: An event can't be read.
        """
        lookback = item.lookback
        if item.attempts > MAX_ATTEMPTS:
            lookback = await self._compute(item, params, loaded)
        name, version = loaded.state.conversation, loaded.state.version
        return lookback is not None and (lookback.state.conversation, lookback.state.version) == (name, version)

    async def _compute(
        self, item: Write, params: ListUndo, loaded: LoadedConversation, *, whole: bool = True
    ) -> Lookback:
        """Set the call's lookback and decision. An earlier lookback is extended with newer events."""
        history, lookback, decision = self._history, item.lookback, None
        name = loaded.state.conversation
        while decision is None:
            if lookback is None or lookback.state.conversation != name:
                lookback = await history.begin_lookback(name, params, item.depth)
            await history.read_past(lookback, loaded.seq, whole=whole)
            if whole and lookback.state.version != loaded.state.version:
                raise Damaged(name, lookback.seq + 1, "events are missing")
            decision = await history.steps(undo_calls(lookback, params, item.command.at))
            if decision is None:
                item.depth, lookback = deepen(params, item.depth), None
        item.lookback, item.command = lookback, msgspec.structs.replace(item.command, decided=decision)
        assert lookback is not None
        return lookback
