"""The history of a list as posts: put into a space where the list is shared, and compared with what is there."""

import os
from collections.abc import AsyncGenerator

import msgspec

from punchlistd.engine.calls import Step
from punchlistd.engine.loaded import Place
from punchlistd.shared.port import Conflict, Posted, SharedLog
from punchlistd.shared.posting import post
from punchlistd.shared.posts import Unreadable, check_of, group_of, seal, steps_of, unseal
from punchlistd.store.port import EventLog, Stored

__all__ = ["Posted", "Taken", "matches", "share", "slices"]

SLICE_EVENTS = 500
SLICE_BYTES = 128 << 10
"""How much of a history makes one post: each holds up the other calls of a server for a moment."""

_encode = msgspec.json.Encoder().encode


class Taken(Exception):
    """The space has another history under the list's name."""


async def slices(log: EventLog, name: str, member: str) -> AsyncGenerator[list[Step]]:
    """A list's whole history, in pieces of whole groups, each small enough for a post.

    Raises:
        TooNew: A later version of punchlist wrote some of it.
    """
    after = 0
    while found := await _read(log, name, after):
        after = found[-1].seq
        yield steps_of(found, member)


async def _read(log: EventLog, name: str, after: int) -> list[Stored]:
    return list(await log.read(after, SLICE_EVENTS, conversation=name, max_bytes=SLICE_BYTES))


async def matches(log: EventLog, name: str, found: list[Posted]) -> bool:
    """Whether posts hold nothing but the beginning of a list's history."""
    try:
        await _walk(log, name, found)
    except (Taken, Unreadable):
        return False
    return True


async def _walk(log: EventLog, name: str, found: list[Posted]) -> tuple[Place, int]:
    """Follow posts beside the local history; where they end, and the version there.

    Raises:
        Taken: They hold something else.
        Unreadable: They are no posts of ours.
    """
    own: list[bytes] = []
    pieces = slices(log, name, "")
    place, version = Place(), 0
    for posted in found:
        read = unseal(posted, place, version)
        for step in read.steps:
            while not own:
                if (piece := await anext(pieces, None)) is None:
                    raise Taken
                own = [_without_keeper(each) for each in piece]
            if own.pop(0) != _without_keeper(step):
                raise Taken
        place, version = read.place, read.newest
    return place, version


def _without_keeper(step: Step) -> bytes:
    """A group but for who keeps its claims: that is whoever shared it."""
    group = group_of(step)
    events = [msgspec.json.decode(event) for event in group.events]
    for event in events:
        event.pop("keeper", None)
    return _encode((group.at, group.actor, events, group.key))


async def share(log: EventLog, space: SharedLog, name: str) -> tuple[Place, int]:
    """Post what of a list's history is not in a space yet; where it ends there, and how many posts that took.

    Raises:
        Taken: The space has another history under this name.
        TooNew: A later version of punchlist wrote some of it.
        SharedLogError: The space does not take it now; repeating goes on where it stopped.
    """
    try:
        place, shared = await _walk(log, name, await space.read(name, 0))
    except Unreadable as error:
        raise Taken from error
    posts, version = 0, 0
    pieces = slices(log, name, space.member)
    steps = await anext(pieces, None)
    while steps is not None:
        following = await anext(pieces, None)
        rest, first = _behind(steps, version, shared)
        if rest:
            nonce = f"{space.member}-{os.urandom(8).hex()}"
            body = seal(space.member, nonce, first, place.check, rest, more=following is not None)
            try:
                position = await post(space, name, place.position, nonce, body)
            except Conflict as error:
                raise Taken from error
            place = Place(position, check_of(body))
            posts += 1
        version += sum(len(step.events) for step in steps)
        steps = following
    return place, posts


def _behind(steps: list[Step], version: int, shared: int) -> tuple[list[Step], int]:
    """The steps behind a version that is shared already, and the version of the first of them."""
    for index, step in enumerate(steps):
        if version >= shared:
            return steps[index:], version + 1
        version += len(step.events)
    return [], version + 1
