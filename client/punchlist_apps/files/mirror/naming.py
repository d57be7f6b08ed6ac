"""Chooses the name of a conversation's file once, during the first sync."""

from collections.abc import Callable, Collection

from anyio.to_thread import run_sync

from punchlist.taskfiles.file_format import Form, Unreadable, digest_of
from punchlist_apps.files.mirror.files import Folder


class FileName:
    """The name of one conversation's file or folder."""

    def __init__(self, folder: Folder, form: Form, conversation: str, list_used: Callable[[], Collection[str]]) -> None:
        self.stem = ""
        """The name without its suffix; empty until it is chosen."""
        self._folder = folder
        self._form = form
        self._conversation = conversation
        self._list_used = list_used

    async def choose(self) -> str:
        """Choose the best name that no other list uses, and rename the file if it has an older name.

        Returns:
            The name under which the old file was kept as a copy, if a file with the new name and other content already
            exists; else "".

        Raises:
            Trouble: As for `Folder.read`. No name is chosen.
            OSError: A file can't be renamed. No name is chosen.
        """
        *shared, own = self._form.stems(self._conversation)
        for stem in shared:
            # No await between the check of used names and the assignment, so that two lists can't choose the same name.
            if not await run_sync(self._is_foreign, stem) and stem not in self._list_used():
                self.stem = stem
                try:
                    return await run_sync(self._move, own, stem)
                except BaseException:
                    self.stem = ""
                    raise
        self.stem = own
        return ""

    def _is_foreign(self, stem: str) -> bool:
        """Return whether a file names another list. A file that doesn't name a list may belong to this list."""
        name = f"{stem}.json"
        data = self._folder.read(name)
        try:
            origin = self._form.parse(name, data).origin if data is not None else None
        except Unreadable:
            return False
        return origin is not None and origin.conversation != self._conversation

    def _move(self, own: str, stem: str) -> str:
        """Rename through a hard link, so that the file always has a name. Without hard links, it keeps its old name."""
        old, new, copy = f"{own}.json", f"{stem}.json", ""
        data = self._folder.read(old)
        if data is None or self._is_foreign(own):
            return ""
        try:
            self._folder.link(old, new)
        except FileExistsError:
            if self._folder.read(new) != data:
                copy = build_copy_name(new, data)
                self._folder.save_copy(copy, data)
        except OSError:
            self.stem = own
            return ""
        self._folder.remove(old, data)
        return copy


def build_copy_name(name: str, data: bytes) -> str:
    """Return the name for a copy of a file in the same folder."""
    return f"{name}.{digest_of(data.decode('utf-8', 'replace'))[:8]}.conflict"
