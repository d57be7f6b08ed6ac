"""The way of an undo: it is worked out beside the writer, and holds if its list did not move meanwhile."""

import msgspec

from punchlist_schemas.params import ListUndo
from punchlistd.domain.decide.undo import undo_calls
from punchlistd.domain.undo.lookback import Lookback
from punchlistd.engine.calls import Write
from punchlistd.engine.lists.access import Access
from punchlistd.engine.lists.conversations import Conversations
from punchlistd.engine.lists.history import History, deeper
from punchlistd.engine.lists.loaded import LoadedConversation
from punchlistd.store.port import Damaged

TRIES = 8
"""An undo whose list moved so often while it was worked out is worked out in its turn: the writer waits for it."""


class Undos:
    """Works out what undos take back.

    Args:
        conversations: the conversations in use.
        access: leads names to them.
        history: reads what happened in them.
    """

    def __init__(self, conversations: Conversations, access: Access, history: History) -> None:
        self._conversations = conversations
        self._access = access
        self._history = history

    async def read_past(self, item: Write) -> None:
        """Work out what is taken back of the list as it is now, while the writer goes on."""
        params = item.params
        assert type(params) is ListUndo, "nothing else looks back"
        item.tries += 1
        try:
            loaded = await self._access.load(item.caller.user, params.conversation)
            if isinstance(loaded, LoadedConversation) and loaded.damage is None:
                async with self._history.room(loaded.state.conversation):
                    await self._work_out(item, params, loaded, whole=False)
        except Damaged as damaged:
            self._conversations.refusal(damaged)  # which is what it is answered in its turn

    async def decide(self, item: Write, params: ListUndo, loaded: LoadedConversation) -> bool:
        """Whether what was worked out holds; False: the list has moved, and it has to be worked out again.

        Everything that was decided is in the log when this is called, and nothing else is decided meanwhile.

        Raises:
            Damaged: An event can't be had.
        """
        past = item.past
        if item.tries > TRIES:
            past = await self._work_out(item, params, loaded)
        name, version = loaded.state.conversation, loaded.state.version
        return past is not None and (past.state.conversation, past.state.version) == (name, version)

    async def _work_out(
        self, item: Write, params: ListUndo, loaded: LoadedConversation, *, whole: bool = True
    ) -> Lookback:
        """What the undo looked back on; of what it has seen already only what came behind is read."""
        history, past, decision = self._history, item.past, None
        name = loaded.state.conversation
        while decision is None:
            if past is None or past.state.conversation != name:
                past = await history.begin(name, params, item.depth)
            await history.read_past(past, loaded.seq, whole=whole)
            if whole and past.state.version != loaded.state.version:
                raise Damaged(name, past.seq + 1, "events are missing")
            decision = await history.steps(undo_calls(past, params, item.command.at))
            if decision is None:
                item.depth, past = deeper(params, item.depth), None
        item.past, item.command = past, msgspec.structs.replace(item.command, decided=decision)
        assert past is not None
        return past
