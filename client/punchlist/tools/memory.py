"""What a process of tools remembers: how far each agent has looked, and the secret of its confirmations."""

import hashlib
import hmac
import os
import time

CONFIRM_S = 300
"""How long a confirmation may take, in seconds."""


class Memory:
    """Positions and confirmations of one process. Nothing in it is needed after a restart.

    A position that is not known any more is found again in the log; an old confirmation is asked for anew.
    """

    def __init__(self) -> None:
        self.seen: dict[tuple[str, str], int] = {}
        """(conversation, agent) → position in the log up to which the agent has been told."""
        self.prepared: set[str] = set()
        """Conversations that a dialect has set up already."""
        self._secret = os.urandom(32)

    def token(self, *facts: str) -> tuple[str, int]:
        """A token for exactly these facts, and when it expires (milliseconds since 1970 UTC)."""
        expires_s = int(time.time()) + CONFIRM_S
        return f"{expires_s:x}-{self._sign(expires_s, facts)}", expires_s * 1000

    def confirms(self, token: str, *facts: str) -> bool:
        """Whether the token was given out for these facts and is still good."""
        head, _, signature = token.partition("-")
        try:
            expires_s = int(head, 16)
        except ValueError:
            return False
        good = hmac.compare_digest(signature.encode(), self._sign(expires_s, facts).encode())
        return good and time.time() < expires_s

    def _sign(self, expires_s: int, facts: tuple[str, ...]) -> str:
        message = "\0".join((str(expires_s), *facts)).encode("utf-8", "surrogatepass")
        return hmac.new(self._secret, message, hashlib.sha256).hexdigest()[:24]
