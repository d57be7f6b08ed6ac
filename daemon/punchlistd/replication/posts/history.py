"""The history of a list as posts: put into a space where the list is shared, or was lost, beside what is there."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import NamedTuple

import msgspec

from punchlistd.engine.calls import Step
from punchlistd.engine.lists.loaded import Place
from punchlistd.replication.port import Conflict, Posted, SharedLog
from punchlistd.replication.posts.posting import post
from punchlistd.replication.posts.posts import (
    Unreadable,
    begins_anew,
    check_of,
    group_of,
    has_check,
    new_nonce,
    seal,
    steps_of,
    unseal,
)
from punchlistd.store.port import EventLog, Stored, side_of

SLICE_EVENTS = 500
SLICE_BYTES = 128 << 10
"""How much of a history makes one post: each holds up the other calls of a server for a moment."""

_encode = msgspec.json.Encoder().encode


class Taken(Exception):
    """The space has another history under the list's name."""


class Altered(Exception):
    """The replica's history does not make the posts any more that it was made of."""


class Piece(NamedTuple):
    """Whole groups of a history, small enough for a post.

    Attributes:
        first: The version of the first event: 1 only if no deletion has erased what was before it.
        steps: The groups.
        check: The head of the chain behind the post that they came in, "" if they came in none.
    """

    first: int
    steps: list[Step]
    check: str = ""

    def behind(self, version: int) -> "Piece":
        first = self.first
        for index, step in enumerate(self.steps):
            if first > version:
                return Piece(first, self.steps[index:])
            first += len(step.events)
        return Piece(first, [])


async def slices(log: EventLog, name: str, member: str) -> AsyncGenerator[Piece]:
    """A list's whole history, in pieces.

    Raises:
        TooNew: A later version of punchlist wrote some of it.
    """
    after = 0
    while found := await _read(log, name, after):
        after = found[-1].seq
        yield Piece(found[0].version, steps_of(found, member))


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
    pieces = slices(log, name, "")
    first, steps, _ = await anext(pieces, Piece(1, []))
    place, version = Place(), first - 1
    for posted in found:
        read = unseal(posted, place, version)
        for step in read.steps:
            while not steps:
                if (piece := await anext(pieces, None)) is None:
                    raise Taken
                steps = piece.steps
            if _without_keeper(steps.pop(0)) != _without_keeper(step):
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
    posts = 0
    async for piece, more in _with_more(slices(log, name, space.member)):
        rest = piece.behind(shared)
        if not rest.steps:
            continue
        nonce = new_nonce(space.member)
        body = seal(space.member, nonce, rest.first, place.check, rest.steps, more=more)
        try:
            position = await post(space, name, place.position, nonce, body)
        except Conflict as error:
            raise Taken from error
        place = Place(position, check_of(body))
        posts += 1
    return place, posts


async def _kept(log: EventLog, name: str, member: str, shared: int) -> AsyncGenerator[Piece]:
    """The posts that a replica is made of; up to the version `shared` they are slices, as `share` cut them."""
    after = 0
    rest: list[Stored] = []
    while found := await _read(log, name, after):
        own = [stored for stored in found if stored.version <= shared]
        if own:
            yield Piece(own[0].version, steps_of(own, member))
        rest += found[len(own) :]
        after = found[-1].seq
        begin = 0
        for at, stored in enumerate(rest, 1):
            if side := side_of(stored).chain:
                yield Piece(rest[begin].version, steps_of(rest[begin:at], member), side)
                begin = at
        rest = rest[begin:]
    if rest:
        raise Altered


async def _with_more(pieces: AsyncIterator[Piece]) -> AsyncGenerator[tuple[Piece, bool]]:
    last = await anext(pieces, None)
    while last is not None:
        following = await anext(pieces, None)
        yield last, following is not None
        last = following


async def put_back(log: EventLog, space: SharedLog, name: str, base: Place, shared: int) -> int:
    """Post again what a space has lost of a list; how many posts that took.

    Args:
        log: the local log.
        space: the shared one.
        name: the list.
        base: where it was once it was shared from here, if it was.
        shared: the version that it had then; 0: it was joined.

    Raises:
        Taken: The space has other posts.
        Altered: The posts can't be made as they were.
        TooNew: A later version of punchlist wrote some of them.
        SharedLogError: The space does not take them now; repeating goes on where it stopped.
    """
    found = await space.read(name, 0)
    place, posts = Place(), 0
    async for kept, more in _with_more(_kept(log, name, space.member, shared)):
        nonce = new_nonce(space.member)
        body = seal(space.member, nonce, kept.first, place.check, kept.steps, more=more)
        check = check_of(body)
        ends = kept.first - 1 + sum(len(step.events) for step in kept.steps)
        if check != (kept.check or (base.check if ends == shared else check)):
            raise Altered
        if begins_anew(body):  # what was before it counts no more, whether the space has it or not
            place = Place(found[-1].position if found else 0, "")
            there = [has_check(each.body, check) for each in found]
            found = found[there.index(True) :] if any(there) else []
        if found:
            there = found.pop(0)
            if not has_check(there.body, check):
                raise Taken
            place = Place(there.position, check)
            continue
        try:
            place = Place(await post(space, name, place.position, nonce, body), check)
        except Conflict as error:
            raise Taken from error
        posts += 1
    return posts
