"""Codes of six digits that sign in a browser in place of a link, for devices on which no link can be opened.

A code stands for a ticket, which expires and works once. Since six digits can be guessed, a code ends after `MAX_TRIES`
wrong ones, and the next code then waits. The state is in a file next to the redeemed tickets, because the command that
prints a code and the server that accepts it are different processes.
"""

import fcntl
import hmac
import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager

import msgspec

from punchlist_apps.common.http.keys import SESSION_S, Keys, Scope, Session, get_uptime_s
from punchlist_schemas.rendezvous import make_directories

MAX_TRIES = 3
"""Number of wrong codes that end the current one."""

WAIT_S = 60
"""Time without a new code after `MAX_TRIES` wrong ones, in seconds."""

_DIGITS = 6


class TooManyTries(Exception):
    """Raised if a code can't be issued yet."""

    def __init__(self, wait_s: int) -> None:
        super().__init__(f"{MAX_TRIES} wrong codes were entered; try again in {wait_s} seconds, or use --link")


class _State(msgspec.Struct):
    """The current code. `ended_s` is the uptime at which wrong codes ended it, in seconds."""

    code: str = ""
    ticket: str = ""
    tries: int = 0
    ended_s: float = 0.0


class Codes:
    """Issues and redeems codes. Only the newest code is valid."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._path = keys.used.with_suffix(".code")

    def issue(self, scope: Scope, session_s: int = SESSION_S) -> str:
        """Return a code for a session with this scope and lifetime.

        Raises:
            TooManyTries: The last code has ended by wrong tries.
        """
        with self._lock() as state:
            # After a restart of the machine, its uptime is lower than the stored one.
            elapsed_s = get_uptime_s() - state.ended_s
            if state.ended_s and 0 <= elapsed_s < WAIT_S:
                raise TooManyTries(max(1, round(WAIT_S - elapsed_s)))
            state.code = f"{secrets.randbelow(10**_DIGITS):0{_DIGITS}}"
            state.ticket = self._keys.issue_ticket(scope, session_s)
            state.tries, state.ended_s = 0, 0.0
            return state.code

    def redeem(self, code: str) -> Session | None:
        """Exchange a code for a session. Return None if it is wrong, expired or already redeemed."""
        with self._lock() as state:
            is_right = hmac.compare_digest(code.encode("utf-8", "replace"), state.code.encode())
            if is_right and state.ticket:
                ticket = state.ticket
                state.code = state.ticket = ""
                return self._keys.redeem(ticket)
            state.tries += 1
            if state.ticket and state.tries >= MAX_TRIES:
                state.code, state.ticket, state.ended_s = "", "", get_uptime_s()
            return None

    @contextmanager
    def _lock(self) -> Generator[_State]:
        """Hold the state exclusively, and store it at the end."""
        make_directories(str(self._path.parent))
        with open(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                state = msgspec.json.decode(file.read(), type=_State)
            except msgspec.MsgspecError:
                # The file is new, or its writer was killed.
                state = _State()
            yield state
            file.seek(0)
            file.truncate()
            file.write(msgspec.json.encode(state))
