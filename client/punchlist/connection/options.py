"""The options of a client."""

from typing import TypedDict


class Options(TypedDict, total=False):
    """How to connect; each option may be left out."""

    socket: str
    """Path of the daemon's socket; by default found by the rules of docs/protocol.md."""

    data_dir: str
    """Data directory for a daemon that this client starts; by default found by the same rules."""

    name: str
    """The caller's name, shown in the daemon's status; also the actor of changes that name none."""

    user: str
    """Confine the connection to this user's conversations."""

    confirm: bool
    """Ask before destructive calls: the first call raises `ConfirmationRequired`, the second passes its token."""

    autostart: bool
    """Whether to start a daemon if none runs; by default yes, unless PUNCHLIST_AUTOSTART=0."""

    timeout_s: float
    """How many seconds a call may take, including all retries; 30 by default."""
