"""The sessions attached to loaded conversations."""


class Sessions:
    """Maps each session to its conversations: at most one for each owner, where "" is no user."""

    def __init__(self) -> None:
        self._targets: dict[str, dict[str, str]] = {}

    def target(self, user: str | None, session: str) -> str | None:
        """Return the conversation of a user that a session is attached to.

        If `user` is None, return the conversation that belongs to no user, or else the one of any user that the session
        was attached to last.
        """
        by_owner = self._targets.get(session)
        if not by_owner:
            return None
        return by_owner.get(user) if user is not None else by_owner.get("") or next(reversed(by_owner.values()))

    def targets(self, session: str, owners: tuple[str, ...]) -> list[str]:
        """Return the conversations of these owners that a session is attached to."""
        by_owner = self._targets.get(session, {})
        return list(dict.fromkeys(by_owner[owner] for owner in owners if owner in by_owner))

    def note(self, session: str, owner: str, id: str) -> None:
        """Record an attachment of a loaded conversation."""
        self._targets.setdefault(session, {})[owner] = id

    def attach(self, session: str, owner: str, id: str) -> None:
        """Record a new attachment."""
        by_owner = self._targets.setdefault(session, {})
        by_owner.pop(owner, None)
        by_owner[owner] = id  # moves it to the end, as the newest

    def detach(self, id: str, session: str | None = None) -> None:
        """Detach a session (None: all) from a conversation."""
        for name in [*self._targets] if session is None else [session]:
            by_owner = self._targets.get(name, {})
            for owner in [owner for owner, target in by_owner.items() if target == id]:
                del by_owner[owner]
            if not by_owner:
                self._targets.pop(name, None)
