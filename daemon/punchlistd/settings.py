"""Everything that can be set, as one frozen value made from arguments and an environment mapping."""

from collections.abc import Mapping

import msgspec

from punchlist_schemas.rendezvous import data_dir, socket_path
from punchlist_schemas.results import Limits


class Misconfigured(Exception):
    """A setting can't be used; the message names it and says what to write."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How one daemon runs. Durations are seconds, sizes bytes."""

    socket: str
    data_dir: str
    limits: Limits = Limits()
    idle_exit_s: float | None = None
    """Stop after this long without any connection; None: never."""

    batch_calls: int = 512
    """At most this many calls share one group commit."""

    index_events: int = 16_384
    """Index the log when this many events are not indexed yet, and at the latest at four times as many, where they are
    spread over very many conversations; this bounds the work of a start."""

    index_delay_s: float = 0.25
    """Index this long after the first unindexed commit, and while much is written not before `index_events`."""

    loaded_s: float = 300.0
    """A conversation nobody used for this long is let go from memory."""

    recent_bytes: int = 4 << 20
    """How much of the log's end is kept in memory for subscribers that lag a little."""

    chunk_bytes: int = 24 << 10
    """A lagging subscriber is written at most this much at a time."""

    held_bytes: int = 64 << 20
    """How many bytes may wait for all peers together before long answers are refused."""

    confirm_s: float = 300.0
    """How long a confirmation token is valid."""

    later_s: float = 5.0
    """How long a process that got a model's token has to wait: a person takes longer to answer."""

    grace_s: float = 10.0
    """How long a claim outlives its connection, or a restart of the daemon."""

    idle_clear_s: float = 10.0
    """How long a finished list whose `auto_clear` is `idle` stays as it is."""

    watch_s: float = 1.5
    """How often an idle daemon looks whether its lock, log and socket are still its own."""

    drain_s: float = 2.0
    """How long a stopping daemon lets connections take their last bytes."""

    reserve_bytes: int = 16 << 20
    """Space of the disk set aside where there is plenty, so that a full one leaves room to finish; 0: none."""

    @property
    def log_path(self) -> str:
        """The log's database file."""
        return f"{self.data_dir}/log.db"

    @property
    def spaces_path(self) -> str:
        """What configures spaces; see `punchlistd.replication.spaces`."""
        return f"{self.data_dir}/spaces.json"

    @property
    def lock_path(self) -> str:
        """The file whose lock makes this the only daemon of the data directory; never unlinked."""
        return f"{self.data_dir}/lock"


def resolve(env: Mapping[str, str], socket: str | None = None, data: str | None = None) -> Settings:
    """Settings from an environment and the two options that decide where everything is."""
    return Settings(socket=socket_path(env, socket, data), data_dir=data_dir(env, data))
