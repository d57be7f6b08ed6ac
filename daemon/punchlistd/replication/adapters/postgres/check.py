"""Checks whether a PostgreSQL table can be used as a space, and whether the server stores changes durably.

The table is created by SQL that `punch space server` writes, never by a daemon. Its primary key implements
compare-and-set: the second of two posts for the same position conflicts.
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
    """A usable space. `made` is the table's OID, which changes if the table is recreated."""

    made: int
    may_post: bool
    skew_s: float


async def find_table(connection: Connection, space: str) -> Found:
    """Find the table of a space and check it.

    Raises:
        Refused: The table doesn't exist, belongs to another program, may lose posts, or can't be checked now.
    """
    sent_at = time.time()
    facts: dict[str, Any] = {"where": connection.url, "space": space}
    try:
        (row,) = await connection.query(_PROBE, f"punch-{space}")
        probe = convert(row, _Probe)
    except Garbled as error:
        raise Refused("unreachable", cause=str(error).rstrip("."), **facts) from error
    except SharedLogError as error:
        raise Refused("unreachable", cause=connection.why, **facts) from error
    skew_s = probe.now - (sent_at + time.time()) / 2
    if probe.standby:
        raise Refused("standby", **facts)
    if not probe.durable:
        raise Refused("default_fsync", **facts)
    if probe.made is None:
        raise Refused("no_permission" if probe.there and not probe.uses else "no_space", **facts)
    if probe.columns != COLUMNS or probe.key != "1 2" or not probe.kept:
        wrong = "it is not durable" if not probe.kept else f"it has {', '.join(probe.columns or ())}"
        raise Refused("name_taken", cause=wrong if probe.key == "1 2" else "it has another primary key", **facts)
    if not (probe.uses and probe.reads):
        raise Refused("no_permission", **facts)
    if probe.posts and probe.read_only:
        raise Refused("read_only", user=Address.of(connection.url).user, **facts)
    return Found(probe.made, bool(probe.posts), skew_s)


async def prepare(space: Space, member: str) -> Checked:
    """Test all requirements of a space.

    Args:
        space: The space.
        member: ID of this member.

    Raises:
        Refused: The first requirement that failed.
    """
    # A space that has already been added has 1 replica.
    for option, is_set in (("--monitor", space.monitor), ("--replicas", space.replicas > 1)):
        if is_set:
            raise Refused("nats_only", option=option)
    refused: Refused | None = None
    for url in space.urls:
        try:
            connection = await connect(space, url, f"punchlistd {member} (check)")
            try:
                found = await find_table(connection, space.name)
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
