"""Resolves a directory to its list, for clients that don't do so themselves, such as editors."""

import anyio
import msgspec

from punchlist_schemas import params as p
from punchlist_schemas.directory import find_list
from punchlist_schemas.errors import Rejection
from punchlist_schemas.project_file import DirectoryError
from punchlist_schemas.results import ConversationResolveResult
from punchlistd.engine.calls import Caller
from punchlistd.engine.lists.access import OWN, Access

READERS = 4
"""Maximum number of threads that read directories, so that a hanging file system can't block all threads."""


class Resolver:
    """Answers `conversation.resolve` by the same rules that clients use.

    Args:
        data_dir: The data directory, which records which project may use which list.
    """

    def __init__(self, access: Access, data_dir: str) -> None:
        self._data_dir = data_dir
        self._access = access
        self._readers = anyio.CapacityLimiter(READERS)

    async def answer(self, caller: Caller, params: p.ConversationResolve) -> bytes | Rejection:
        """Return the list of a directory. For a bound caller, this is the user's own list of that name."""
        try:
            directory = await anyio.to_thread.run_sync(find_list, params.path, limiter=self._readers)
        except DirectoryError as error:
            return Rejection("invalid_params", _text(f"{error}: {error.advice}."), {"field": "path"})
        if directory is None:
            return _encode(
                ConversationResolveResult(
                    conversation=None, source="none", root=None, file=None, exists=False, allowed=True
                )
            )
        name = directory.conversation if caller.user is None else f"{OWN}{directory.conversation}"
        loaded = await self._access.durable(caller.user, name)
        id = None if isinstance(loaded, Rejection) or not loaded.state.exists else loaded.state.conversation
        allowed = await anyio.to_thread.run_sync(
            directory.may_use, self._data_dir, id, caller.user, limiter=self._readers
        )
        result = ConversationResolveResult(
            conversation=name,
            source=directory.source,
            root=_text(directory.root),
            file=None if directory.file is None else _text(directory.file),
            exists=id is not None,
            allowed=allowed,
        )
        return _encode(result)


def _text(path: str) -> str:
    """Return a path as text for JSON, with bytes that are not UTF-8 escaped."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


_encode = msgspec.json.Encoder().encode
