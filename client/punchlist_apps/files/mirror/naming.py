"""Chooses the name of a conversation's file: once, at the first sync, and never again."""

from collections.abc import Callable, Collection

from anyio.to_thread import run_sync

from punchlist.taskfiles.file_format import Form, Unreadable, digest_of
from punchlist_apps.files.mirror.files import Folder


class Name:
    """The name of one conversation's file or folder."""

    def __init__(self, folder: Folder, form: Form, conversation: str, taken: Callable[[], Collection[str]]) -> None:
        self.stem = ""
        """The name without its ending; empty until it is chosen."""
        self._folder = folder
        self._form = form
        self._conversation = conversation
        self._taken = taken

    async def choose(self) -> str:
        """Take the best name that no other list has, and rename a file that has a worse one.

        Returns:
            The name of the copy that was kept of the latter, if a file that says something else stands there; or "".

        Raises:
            Trouble: As `Folder.read`. Nothing is chosen.
            OSError: The disk refuses. Nothing is chosen.
        """
        *shared, own = self._form.stems(self._conversation)
        for stem in shared:
            # Nothing is awaited between the look at what others have and the taking.
            if not await run_sync(self._is_foreign, stem) and stem not in self._taken():
                self.stem = stem
                try:
                    return await run_sync(self._move, own, stem)
                except BaseException:
                    self.stem = ""
                    raise
        self.stem = own
        return ""

    def _is_foreign(self, stem: str) -> bool:
        """Whether a file says that it is another list's; one that does not say whose it is may be this one's."""
        name = f"{stem}.json"
        data = self._folder.read(name)
        try:
            origin = self._form.parse(name, data).origin if data is not None else None
        except Unreadable:
            return False
        return origin is not None and origin.conversation != self._conversation

    def _move(self, own: str, stem: str) -> str:
        """Rename by way of a second name, so that the file always has one; without hard links it keeps its old name."""
        old, new, copy = f"{own}.json", f"{stem}.json", ""
        data = self._folder.read(old)
        if data is None or self._is_foreign(own):
            return ""
        try:
            self._folder.link(old, new)
        except FileExistsError:
            if self._folder.read(new) != data:
                copy = copy_of(new, data)
                self._folder.save_copy(copy, data)
        except OSError:
            self.stem = own
            return ""
        self._folder.remove(old, data)
        return copy


def copy_of(name: str, data: bytes) -> str:
    """The name of a copy of a file that is kept beside it."""
    return f"{name}.{digest_of(data.decode('utf-8', 'replace'))[:8]}.conflict"
