"""How much work there is in all lists that belong to no user, kept right at the cost of each change alone.

It is what this machine's person sees in a prompt: the lists of users whom a program serves are not theirs.
"""

from collections.abc import Callable, Iterable

from punchlistd.engine.registry import Open


class Totals:
    """Unfinished tasks and those in progress, over all conversations of the log that belong to no user.

    They are known only once the log has been indexed after the start; until then nothing is reported.

    Args:
        changed: called with (unfinished, in progress) whenever they become known or change.
    """

    def __init__(self, changed: Callable[[int, int], None]) -> None:
        """Totals that are not known yet."""
        self.known = False
        self._changed = changed
        self._unfinished = 0
        self._in_progress = 0

    def start(self, stored: tuple[int, int], loaded: Iterable[Open]) -> None:
        """The store's totals (open, in progress), in which the conversations loaded now are counted as they are."""
        self.known = True
        self._unfinished, self._in_progress = sum(stored), stored[1]
        for opened in loaded:
            opened.counted = counted(opened)
        self._changed(self._unfinished, self._in_progress)

    def follow(self, touched: Iterable[Open]) -> None:
        """Conversations changed."""
        before = self._unfinished, self._in_progress
        for opened in touched:
            now = counted(opened)
            if now != opened.counted:
                self._unfinished += now[0] - opened.counted[0]
                self._in_progress += now[1] - opened.counted[1]
                opened.counted = now
        if self.known and before != (self._unfinished, self._in_progress):
            self._changed(self._unfinished, self._in_progress)


def counted(opened: Open) -> tuple[int, int]:
    """Unfinished tasks of a conversation, and those of them in progress; a user's do not count."""
    return (0, 0) if opened.state.user else (opened.state.remaining, len(opened.state.running))
