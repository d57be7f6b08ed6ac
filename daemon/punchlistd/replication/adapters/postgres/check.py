"""A space as a table of PostgreSQL: what makes it one, and whether a server keeps what it acknowledges.

The table is made by SQL that `punch space server` writes, never by a daemon. Its primary key is the compare-and-set:
of two posts for one place the second finds the place taken.
"""

import time
from typing import Any, NamedTuple

import msgspec

from punchlistd.replication.adapters.link_refusals import check_clock
from punchlistd.replication.adapters.postgres.link import Address, Connection, connect
from punchlistd.replication.adapters.postgres.refusals import Refused
from punchlistd.replication.port import Garbled, SharedLogError
from punchlistd.replication.posts.foreign import convert
from punchlistd.replication.spaces import Checked, Space

COLUMNS = ["list text", "n bigint", "nonce text", "body bytea"]
_PROBE = """
SELECT pg_is_in_recovery() AS standby, current_setting('transaction_read_only') = 'on' AS read_only,
    current_setting('fsync') = 'on' AS durable, extract(epoch FROM clock_timestamp())::float8 AS now,
    place.oid IS NOT NULL AS there, has_schema_privilege(place.oid, 'USAGE') AS uses, made.oid::bigint AS made,
    made.relpersistence = 'p' AND made.relkind = 'r' AS kept,
    has_table_privilege(made.oid, 'SELECT') AS reads, has_table_privilege(made.oid, 'INSERT') AS posts,
    (SELECT array_agg(attname || ' ' || format_type(atttypid, NULL) ORDER BY attnum) FROM pg_attribute
        WHERE attrelid = made.oid AND attnum > 0 AND NOT attisdropped) AS columns,
    (SELECT indkey::text FROM pg_index WHERE indrelid = made.oid AND indisprimary AND indisvalid) AS key
FROM (SELECT) AS one
LEFT JOIN pg_namespace AS place ON nspname = $1
LEFT JOIN pg_class AS made ON made.relnamespace = place.oid AND made.relname = 'post'
"""


class _Probe(msgspec.Struct, frozen=True):
    standby: bool
    read_only: bool
    durable: bool
    now: float
    there: bool
    uses: bool | None
    made: int | None
    kept: bool | None
    reads: bool | None
    posts: bool | None
    columns: list[str] | None
    key: str | None


class Found(NamedTuple):
    """A space that can be used: `made` tells it from another one of the same name."""

    made: int
    may_post: bool
    skew_s: float


async def find(connection: Connection, space: str) -> Found:
    """The table of a space, checked.

    Raises:
        Refused: It is not there, is another's, or may lose posts; or the server can't say so now.
    """
    asked = time.time()
    facts: dict[str, Any] = {"where": connection.url, "space": space}
    try:
        (row,) = await connection.ask(_PROBE, f"punch-{space}")
        probe = convert(row, _Probe)
    except Garbled as error:
        raise Refused("unreachable", cause=str(error).rstrip("."), **facts) from error
    except SharedLogError as error:
        raise Refused("unreachable", cause=connection.why, **facts) from error
    skew_s = probe.now - (asked + time.time()) / 2
    if probe.standby:
        raise Refused("standby", **facts)
    if not probe.durable:
        raise Refused("default_fsync", **facts)
    if probe.made is None:
        raise Refused("no_permission" if probe.there and not probe.uses else "no_space", **facts)
    if probe.columns != COLUMNS or probe.key != "1 2" or not probe.kept:
        wrong = "it is not kept after a crash" if not probe.kept else f"it has {', '.join(probe.columns or ())}"
        raise Refused("name_taken", cause=wrong if probe.key == "1 2" else "its primary key is another one", **facts)
    if not (probe.uses and probe.reads):
        raise Refused("no_permission", **facts)
    if probe.posts and probe.read_only:
        raise Refused("read_only", user=Address.of(connection.url).user, **facts)
    return Found(probe.made, bool(probe.posts), skew_s)


async def prepare(space: Space, member: str) -> Checked:
    """Try everything that a space needs.

    Args:
        space: Where it is.
        member: Who asks.

    Raises:
        Refused: Something is missing or wrong; the first thing that is.
    """
    for option, given in (
        ("--monitor", space.monitor),
        ("--replicas", space.replicas > 1),
    ):  # of 1 is one that was added
        if given:
            raise Refused("nats_only", option=option)
    refused: Refused | None = None
    for url in space.urls:
        try:
            connection = await connect(space, url, f"punchlistd {member} (check)")
            try:
                found = await find(connection, space.name)
                check_clock(Refused, url, found.skew_s)
                return Checked(msgspec.structs.replace(space, replicas=1), False, url, connection.version)
            finally:
                connection.end("it was closed")
        except Refused as problem:
            if problem.kind not in ("unreachable", "standby"):
                raise
            refused = problem
    assert refused is not None, "a space has an address"
    raise refused
