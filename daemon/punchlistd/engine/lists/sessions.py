"""Which outside sessions lead to which conversations, of all that was loaded."""


class Sessions:
    """For each session the conversations that it is attached to: at most one of each owner, "" for nobody's."""

    def __init__(self) -> None:
        self._targets: dict[str, dict[str, str]] = {}

    def target(self, user: str | None, session: str) -> str | None:
        """The conversation of the user (None: nobody's before anybody's) that a session is attached to."""
        found = self._targets.get(session)
        if not found:
            return None
        return found.get(user) if user is not None else found.get("") or next(reversed(found.values()))

    def targets(self, session: str, owners: tuple[str, ...]) -> list[str]:
        """The conversations of these owners that a session is attached to."""
        found = self._targets.get(session, {})
        return list(dict.fromkeys(found[owner] for owner in owners if owner in found))

    def note(self, session: str, owner: str, id: str) -> None:
        """A session was found to lead to a conversation."""
        self._targets.setdefault(session, {})[owner] = id

    def attach(self, session: str, owner: str, id: str) -> None:
        """A session leads to a conversation from here on."""
        found = self._targets.setdefault(session, {})
        found.pop(owner, None)
        found[owner] = id  # behind the others: the newest of them

    def detach(self, id: str, session: str | None = None) -> None:
        """A session (None: any) does not lead to this conversation any more."""
        for known in [*self._targets] if session is None else [session]:
            found = self._targets.get(known, {})
            for owner in [owner for owner, target in found.items() if target == id]:
                del found[owner]
            if not found:
                self._targets.pop(known, None)
