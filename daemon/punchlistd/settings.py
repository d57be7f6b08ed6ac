"""The daemon's settings, resolved from options and the environment."""

from collections.abc import Mapping

import msgspec

from punchlist_schemas.rendezvous import data_dir, socket_path
from punchlist_schemas.results import Limits

DEFAULT_GRACE_S = 10.0


class Misconfigured(Exception):
    """A setting is invalid. The message names the setting and a valid value."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one daemon. Durations are in seconds, sizes in bytes."""

    socket: str
    data_dir: str
    limits: Limits = Limits()
    idle_exit_s: float | None = None
    """Stop after this long without a connection; None for never."""

    batch_calls: int = 512
    """Maximum number of calls in one group commit."""

    index_events: int = 16_384
    """Index the log once it has this many unindexed events, which limits the work on startup. If the events are spread
    over very many conversations, indexing waits for up to four times as many events."""

    index_delay_s: float = 0.25
    """Index this long after the first unindexed commit. Under load, indexing waits for `index_events` instead."""

    loaded_s: float = 300.0
    """Unload a conversation that hasn't been used for this long."""

    recent_bytes: int = 4 << 20
    """Size of the log's tail that is kept in memory for subscribers with a small lag."""

    chunk_bytes: int = 24 << 10
    """Upper limit for one write to a lagging subscriber."""

    held_bytes: int = 64 << 20
    """Limit for the bytes buffered for all peers together. Above it, long replies and frames are rejected."""

    confirm_s: float = 300.0
    """Lifetime of a confirmation token."""

    later_s: float = 5.0
    """How long a process must wait before using a token that was issued to a model. A person takes longer to answer."""

    grace_s: float = DEFAULT_GRACE_S
    """How long a claim outlives its connection or a restart of the daemon."""

    idle_clear_s: float = 10.0
    """How long a finished list with `auto_clear` `idle` is kept before it is cleared."""

    watch_s: float = 1.5
    """Interval at which an idle daemon checks that it still owns its lock, log and socket."""

    drain_s: float = 2.0
    """How long a stopping daemon waits for its peers to read their last bytes."""

    reserve_bytes: int = 16 << 20
    """Disk space reserved while plenty is free, so that the daemon can finish its work if the disk becomes full; 0 for
    none."""

    @property
    def log_path(self) -> str:
        """Path of the log's database file."""
        return f"{self.data_dir}/log.db"

    @property
    def spaces_path(self) -> str:
        """Path of the space configuration; see `punchlistd.replication.spaces`."""
        return f"{self.data_dir}/spaces.json"

    @property
    def lock_path(self) -> str:
        """Path of the lock file, which ensures that the data directory has only one daemon. It is never deleted."""
        return f"{self.data_dir}/lock"


def resolve(env: Mapping[str, str], socket: str | None = None, data: str | None = None) -> Settings:
    """Return the settings for an environment and the options `--socket` and `--data-dir`."""
    return Settings(socket=socket_path(env, socket, data), data_dir=data_dir(env, data))
