"""The way of an undo: its history is read beside the writer, and only what came meanwhile in its turn."""

import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.params import ListUndo
from punchlistd.domain.decide.undo import take_back_calls
from punchlistd.engine.calls import Write
from punchlistd.engine.history import deeper
from punchlistd.engine.registry import Open, Registry
from punchlistd.store.port import Damaged


class Undos:
    """Works out what undos take back.

    Args:
        registry: the conversations in use.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def look_back(self, item: Write, params: ListUndo) -> None:
        """Read what the history holds now, while the writer goes on."""
        try:
            opened = await self._registry.access.load(item.caller.user, params.conversation)
            if isinstance(opened, Rejection):
                return  # which is what it is answered in its turn
            name, history = opened.state.conversation, self._registry.history
            past = await history.begin(name, params, item.depth)
            if opened.damage is None:
                await history.look_back(past, opened.seq, whole=False)
            item.past = past
        except Damaged as damaged:
            self._registry.refusal(damaged)

    async def decide(self, item: Write, params: ListUndo, opened: Open) -> bool:
        """Take in what has happened since, and decide; False: it has to look back farther first.

        Everything that was decided is in the log when this is called, and nothing else is decided meanwhile.

        Raises:
            Damaged: An event can't be had.
        """
        past, item.past = item.past, None
        name = opened.state.conversation
        if past is None or past.state.conversation != name:
            past = await self._registry.history.begin(name, params, item.depth)
        await self._registry.history.look_back(past, opened.seq)
        if past.state.version != opened.state.version:
            raise Damaged(name, past.seq + 1, "events are missing")
        decision = await self._registry.history.steps(take_back_calls(past, params, item.command.at))
        if decision is None:
            item.depth = deeper(params, item.depth)
            return False
        item.command = msgspec.structs.replace(item.command, undo=decision)
        return True
