"""Which list a directory means, for clients that do not look themselves: editors."""

import anyio
import msgspec

from punchlist_schemas import params as p
from punchlist_schemas.directory import meant
from punchlist_schemas.errors import Rejection
from punchlist_schemas.project_file import DirectoryError
from punchlist_schemas.results import ConversationResolveResult
from punchlistd.engine.calls import Caller
from punchlistd.engine.lists.access import OWN, Access

READERS = 4
"""How many directories are looked at at once: a file system that hangs must not take all threads."""


class Resolver:
    """Answers `conversation.resolve` by the rule that clients go by.

    Args:
        access: leads names to conversations.
        data_dir: the data directory: there it is kept which project may name which list.
    """

    def __init__(self, access: Access, data_dir: str) -> None:
        self._data_dir = data_dir
        self._access = access
        self._readers = anyio.CapacityLimiter(READERS)

    async def answer(self, caller: Caller, params: p.ConversationResolve) -> bytes | Rejection:
        """The list; for a bound caller the user's own one of that name."""
        try:
            found = await anyio.to_thread.run_sync(meant, params.path, limiter=self._readers)
        except DirectoryError as error:
            return Rejection("invalid_params", _text(f"{error}: {error.advice}."), {"field": "path"})
        if found is None:
            nothing = ConversationResolveResult(
                conversation=None, source="none", root=None, file=None, exists=False, allowed=True
            )
            return _encode(nothing)
        name = found.conversation if caller.user is None else f"{OWN}{found.conversation}"
        loaded = await self._access.durable(caller.user, name)
        used = None if isinstance(loaded, Rejection) or not loaded.state.exists else loaded.state.conversation
        allowed = await anyio.to_thread.run_sync(
            found.may_use, self._data_dir, used, caller.user, limiter=self._readers
        )
        result = ConversationResolveResult(
            conversation=name,
            source=found.source,
            root=_text(found.root),
            file=None if found.file is None else _text(found.file),
            exists=used is not None,
            allowed=allowed,
        )
        return _encode(result)


def _text(path: str) -> str:
    """A path as JSON can hold it: names are bytes to the system."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


_encode = msgspec.json.Encoder().encode
