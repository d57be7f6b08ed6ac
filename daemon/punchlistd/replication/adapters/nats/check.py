"""Whether a space can be used: everything that one needs is tried once, and its stream made where it is missing."""

import anyio.to_thread
import msgspec

from punchlistd.replication.adapters.link_refusals import check_clock
from punchlistd.replication.adapters.nats.creds import read_creds
from punchlistd.replication.adapters.nats.link import CONNECT_S, Connection, connect
from punchlistd.replication.adapters.nats.refusals import Refused
from punchlistd.replication.adapters.nats.stream import Found, find, make
from punchlistd.replication.port import Garbled
from punchlistd.replication.posts.foreign import decode
from punchlistd.replication.spaces import Checked, Space


async def prepare(space: Space, member: str) -> Checked:
    """Try everything that a space needs, and make its stream if it is not there yet.

    Args:
        space: Where it is; 0 replicas mean three in a cluster, else one.
        member: Who asks.

    Raises:
        Refused: Something is missing or wrong; the first thing that is.
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
            made, found = await _found_or_made(connection, space.name, replicas)
            check_clock(Refused, url, found.skew_s)
            done = msgspec.structs.replace(space, replicas=found.replicas or replicas)
            return Checked(done, made, url, connection.version)
        finally:
            await connection.close()
    assert refused is not None, "a space has an address"
    raise refused


async def _found_or_made(connection: Connection, name: str, replicas: int) -> tuple[bool, Found]:
    try:
        return False, await find(connection, name)
    except Refused as refused:
        if refused.kind != "no_stream":
            raise
    await make(connection, name, replicas)
    return True, await find(connection, name)


class Monitored(msgspec.Struct, frozen=True):
    """What a server's monitor tells about its disk."""

    sync_always: bool = False


class _Varz(msgspec.Struct, frozen=True):
    class _JetStream(msgspec.Struct, frozen=True):
        config: Monitored = Monitored()

    version: str
    jetstream: _JetStream = _JetStream()


def check_monitor(url: str) -> None:
    """Ask a server's monitor whether it writes to its disk before it acknowledges. Blocks: call it in a thread.

    Raises:
        Refused: It does not, or the monitor can't be asked.
    """
    import urllib.request  # noqa: PLC0415 - for this question alone
    from http.client import HTTPException  # noqa: PLC0415

    try:
        if not url.startswith(("http://", "https://")):
            raise ValueError("no address of the web")
        with urllib.request.urlopen(f"{url.rstrip('/')}/varz", timeout=CONNECT_S) as answer:
            found = decode(answer.read(1 << 20), _Varz)
    except (OSError, ValueError, HTTPException, Garbled) as error:
        raise Refused("bad_monitor", where=url, cause=type(error).__name__) from error
    if not found.jetstream.config.sync_always:
        raise Refused("default_fsync", where=url)
