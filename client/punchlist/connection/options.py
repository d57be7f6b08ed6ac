"""The options of a client."""

from typing import TypedDict


class Options(TypedDict, total=False):
    """Options of `connect` and `connect_async`. All are optional."""

    socket: str
    """Path of the daemon's socket; by default determined by the rules in docs/protocol.md."""

    data_dir: str
    """Data directory for a daemon that this client starts; by default determined by the same rules."""

    name: str
    """The client's name, shown in the daemon's status. Also the actor of changes that name no actor. `python` by
    default.
    """

    user: str
    """User to whose conversations the connection is limited."""

    confirm: bool
    """Whether destructive calls need confirmation: the first call raises `ConfirmationRequired`, and the second passes
    the token.
    """

    autostart: bool
    """Whether to start a daemon if none is running; by default yes, unless PUNCHLIST_AUTOSTART=0."""

    timeout_s: float
    """Upper limit for a call in seconds, including connecting and all retries; by default 30. A call's `wait_ms` is
    added to it.
    """
