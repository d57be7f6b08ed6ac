"""Checks whether a space can be used: tests all requirements once, and creates the stream if it is missing."""

import anyio.to_thread
import msgspec

from punchlistd.replication.adapters.link_refusals import check_clock
from punchlistd.replication.adapters.nats.creds import read_creds
from punchlistd.replication.adapters.nats.link import CONNECT_S, Connection, connect
from punchlistd.replication.adapters.nats.refusals import Refused
from punchlistd.replication.adapters.nats.stream import Found, create_stream, find_stream
from punchlistd.replication.port import Garbled
from punchlistd.replication.posts.foreign import decode
from punchlistd.replication.spaces import Checked, Space


async def prepare(space: Space, member: str) -> Checked:
    """Test all requirements of a space, and create its stream if it doesn't exist.

    Args:
        space: The space. If `replicas` is 0, the stream gets three replicas in a cluster, otherwise one.
        member: ID of this member.

    Raises:
        Refused: The first requirement that failed.
    """
    creds = await anyio.to_thread.run_sync(read_creds, space.creds) if space.creds else None
    for monitor in filter(None, space.monitor.split(",")):
        await anyio.to_thread.run_sync(check_monitor, monitor)
    refused: Refused | None = None
    for url in space.urls:
        try:
            connection = await connect(space, url, creds, f"punchlistd {member} (check)")
        except Refused as problem:
            if problem.kind != "unreachable":
                raise
            refused = problem
            continue
        try:
            replicas = space.replicas or (3 if connection.clustered else 1)
            made, found = await _find_or_create(connection, space.name, replicas)
            check_clock(Refused, url, found.skew_s)
            checked = msgspec.structs.replace(space, replicas=found.replicas or replicas)
            return Checked(checked, made, url, connection.version)
        finally:
            await connection.close()
    assert refused is not None, "a space has an address"
    raise refused


async def _find_or_create(connection: Connection, name: str, replicas: int) -> tuple[bool, Found]:
    try:
        return False, await find_stream(connection, name)
    except Refused as refused:
        if refused.kind != "no_stream":
            raise
    await create_stream(connection, name, replicas)
    return True, await find_stream(connection, name)


class _JetStreamConfig(msgspec.Struct, frozen=True):
    sync_always: bool = False


class _Varz(msgspec.Struct, frozen=True):
    class _JetStream(msgspec.Struct, frozen=True):
        config: _JetStreamConfig = _JetStreamConfig()

    version: str
    jetstream: _JetStream = _JetStream()


def check_monitor(url: str) -> None:
    """Check through a server's monitor that the server writes to disk before it acknowledges. Blocks: call in a thread.

    Raises:
        Refused: The server acknowledges earlier, or the monitor can't be read.
    """
    import urllib.request  # noqa: PLC0415 - only needed here
    from http.client import HTTPException  # noqa: PLC0415

    try:
        if not url.startswith(("http://", "https://")):
            raise ValueError("not an HTTP address")
        with urllib.request.urlopen(f"{url.rstrip('/')}/varz", timeout=CONNECT_S) as response:
            varz = decode(response.read(1 << 20), _Varz)
    except (OSError, ValueError, HTTPException, Garbled) as error:
        raise Refused("bad_monitor", where=url, cause=type(error).__name__) from error
    if not varz.jetstream.config.sync_always:
        raise Refused("default_fsync", where=url)
