"""How a client is told to connect."""

from typing import TypedDict


class Options(TypedDict, total=False):
    """How to connect; every one may be left out."""

    socket: str
    """The daemon's socket, by default found by the rules of the wire contract."""

    data_dir: str
    """Data directory for a daemon that has to be started, by default found likewise."""

    name: str
    """Who is calling: shown in the daemon's status, and the actor of changes that name none."""

    user: str
    """Confine the connection to this user's conversations."""

    confirm: bool
    """Make destructive calls two-step: the first one raises `ConfirmationRequired`."""

    autostart: bool
    """Whether to start a daemon where none runs, by default yes unless PUNCHLIST_AUTOSTART=0."""

    timeout_s: float
    """Seconds that a call may take, with all its retries; 30 by default."""
