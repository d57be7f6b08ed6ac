"""Fuzz targets for data from a space: messages and replies of NATS, rows and notices of PostgreSQL.

Each input must result in a value or in the documented error. A valid next post is passed to a whole daemon, which must
survive it, and then accept changes or reject them with a reason.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from functools import cache
from random import Random
from typing import Any, TypeVar

import msgspec

from punchlist_faults.options import need
from punchlist_faults.virtual import VirtualLoop, run
from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import ConversationDeleted
from punchlist_testing.machines import Machine
from punchlist_testing.memory_space import MemorySpace
from punchlistd.engine.lists.loaded import Place
from punchlistd.replication.adapters.nats import log as nats
from punchlistd.replication.adapters.nats.link import Answer, SpaceClient
from punchlistd.replication.adapters.nats.stream import (
    Got,
    Info,
    Reply,
    Stored,
    find_differences,
    parse_list,
    parse_time,
    read_post,
)
from punchlistd.replication.adapters.postgres import log as postgres
from punchlistd.replication.port import Beat, Garbled, Posted
from punchlistd.replication.posts import posts
from punchlistd.replication.posts.foreign import decode
from punchlistd.replication.posts.repair import find_bad

LIST = "plan"
NEW = "pl.team.new."
T = TypeVar("T")


def run_immediately(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine whose only waits are yields to the event loop."""
    while True:
        try:
            work.send(None)
        except StopIteration as ended:
            return ended.value


@cache
def make_posts() -> tuple[Posted, ...]:
    """Return valid posts, made by a daemon."""
    space = MemorySpace(Random("posts"))

    async def main() -> None:
        machine = Machine("ann", space, LIST)
        for number in range(3):
            await machine.call(p.TaskAdd(conversation=LIST, title=f"task {number}", key=f"key {number}"))
        await machine.call(p.TaskClaim(conversation=LIST, owner="ann"))
        await machine.stop()

    run(main(), VirtualLoop(Random("posts")))
    return tuple(space.posts[LIST])


def nats_message(data: bytes) -> None:
    """Parse a message in wire format: its subject, its headers, an empty line, its body."""
    subject, _, rest = data.partition(b"\n")
    head, _, body = rest.partition(b"\r\n\r\n")
    client = SpaceClient()
    headers: dict[str, str] = run_immediately(client._process_headers(head + b"\r\n\r\n")) or {}  # pyright: ignore
    message = client._build_message(0, subject, b"", body, headers)  # pyright: ignore[reportPrivateUsage]
    with suppress(Garbled):
        parse_list(message.subject, NEW)
    for type in (Reply, Stored, Got, Beat, nats.TurnRequest):
        with suppress(Garbled):
            decode(body, type)
    with suppress(Garbled):
        info = decode(body, Info)
        find_differences(info.config, "team")
        parse_time(info.ts)
    with suppress(Garbled):
        follow(read_post(LIST, Answer(headers, body)))


def postgres_row(data: bytes) -> None:
    """Parse a row: a line of JSON without the body, then the body. The line is also parsed as a notice."""
    first, _, body = data.partition(b"\n")
    with suppress(Garbled):
        decode(first.decode("utf-8", "surrogateescape"), postgres.Notice)
    try:
        row = msgspec.json.decode(first)
    except (ValueError, RecursionError):
        return
    if isinstance(row, dict):
        with suppress(Garbled):
            follow(postgres.read_row(LIST, {"body": body, **row}))


def follow(posted: Posted) -> None:
    """Read a post after valid ones, both unchanged and adapted to its position."""
    last = make_posts()[-1]
    position = max(posted.position, last.position + 1)
    place = Place(last.position, posts.check_of(last.body))
    posted = msgspec.structs.replace(posted, position=position, before=min(posted.before, position - 1))
    version = posts.newest_of(last.body)
    body = _belonging(posted.body, place, version)
    for candidate in (posted, msgspec.structs.replace(posted, before=last.position, body=body)):
        bad = run_immediately(find_bad([*make_posts(), candidate]))
        try:
            read = posts.unseal(candidate, place, version)
        except posts.Unreadable as error:
            need(isinstance(error, posts.TooNew | posts.Diverged), f"{error!r} says nothing of how to go on")
            need(len(bad) == 1 and bad[0].post == candidate, f"a repair does not find {candidate}")
        else:
            need(not bad, f"a repair finds {bad}")
            if any(type(event) is ConversationDeleted for step in read.steps for event in step.events):
                continue  # erasing needs a thread, and virtual time has none
            run(_lives(candidate), VirtualLoop(Random("follows")))


def _belonging(body: bytes, place: Place, version: int) -> bytes:
    """Return a body with the same groups that is valid as the list's next post, or `body` itself if it isn't a post."""
    try:
        envelope = msgspec.json.decode(body, type=posts.Envelope)
        groups = msgspec.json.decode(envelope.groups, type=list[posts.Group])
    except (ValueError, RecursionError):
        return body
    fresh = posts.begins_anew(body) and bool(groups)
    check = posts.head_of(place.check, version + 1, bytes(envelope.groups), fresh=fresh)
    return msgspec.json.encode(msgspec.structs.replace(envelope, version=version + 1, check=check))


async def _lives(posted: Posted) -> None:
    space = MemorySpace(Random("lives"))
    space.posts[LIST] = [*make_posts(), posted]
    space.position = posted.position
    machine = Machine("bob", space, LIST)
    for change in (p.TaskAdd(conversation=LIST, title="one"), p.ListUndo(conversation=LIST)):
        async with asyncio.timeout(60):
            outcome = await machine.begin(change)
        need(isinstance(outcome, bytes | Rejection), f"{outcome!r} is no answer")
        need(not (isinstance(outcome, Rejection) and outcome.kind == "internal_error"), f"{outcome!r}")
    await machine.stop()
