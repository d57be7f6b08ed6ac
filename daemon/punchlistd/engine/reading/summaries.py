"""The summaries of all lists that a caller may see, for reads that look at several lists."""

from collections.abc import Awaitable, Callable

import msgspec

from punchlist_schemas.things import Counts, ListKind
from punchlistd.engine.lists.conversations import Conversations
from punchlistd.engine.lists.loaded import LoadedConversation
from punchlistd.store.port import EventLog

_PAGE = 1_000


class Summary(msgspec.Struct):
    """The members of a stored `Conversation` that decide whether a list has to be loaded."""

    conversation: str
    version: int
    counts: Counts = Counts()
    updated_at: int = 0
    kind: ListKind = "list"


_decode = msgspec.json.Decoder(Summary).decode


def summary_of(loaded: LoadedConversation) -> Summary:
    state = loaded.state
    return Summary(state.conversation, state.version, state.counts(), state.updated_at, state.kind)


class Summaries:
    """Reads the stored summaries.

    Args:
        refresh: Updates them.
    """

    def __init__(self, log: EventLog, conversations: Conversations, refresh: Callable[[], Awaitable[None]]) -> None:
        self._log = log
        self._conversations = conversations
        self._refresh = refresh

    async def list(self, user: str | None) -> list[Summary]:
        """Return the summaries of all conversations or of a user's, the latest changed one first.

        Those of conversations in memory may be ahead of the log.
        """
        await self._conversations.use_index(self._refresh)
        summaries: list[Summary] = []
        cursor: str | None = None
        while True:
            rows, cursor = await self._conversations.use_index(
                lambda at=cursor: self._log.list(user=user, limit=_PAGE, cursor=at)
            )
            for summary in map(_decode, rows):
                loaded = self._conversations.loaded.get(summary.conversation)
                summaries.append(summary if loaded is None else summary_of(loaded))
            if cursor is None:
                return summaries
