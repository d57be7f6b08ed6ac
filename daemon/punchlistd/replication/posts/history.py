"""Posts a list's history, to share the list for the first time or to restore posts that the space has lost."""

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
"""Upper limits for the history in one post. Each post briefly delays the server's other calls."""

_encode = msgspec.json.Encoder().encode


class NameTaken(Exception):
    """The space contains another list's history under this name."""


class HistoryAltered(Exception):
    """The local history no longer yields the original posts."""


class Piece(NamedTuple):
    """Whole groups of a history, small enough for one post.

    Attributes:
        first: Version of the first event. In the first piece, it is above 1 if a deletion has erased earlier events.
        steps: The groups.
        check: Check of the post that contained the groups, or "" if no post did.
    """

    first: int
    steps: list[Step]
    check: str = ""

    def after(self, version: int) -> "Piece":
        first = self.first
        for index, step in enumerate(self.steps):
            if first > version:
                return Piece(first, self.steps[index:])
            first += len(step.events)
        return Piece(first, [])


async def read_pieces(log: EventLog, name: str, member: str) -> AsyncGenerator[Piece]:
    """Yield a list's whole history in pieces.

    Raises:
        TooNew: A later version of punchlist wrote some of it.
    """
    after = 0
    while events := await _read(log, name, after):
        after = events[-1].seq
        yield Piece(events[0].version, steps_of(events, member))


async def _read(log: EventLog, name: str, after: int) -> list[Stored]:
    return list(await log.read(after, SLICE_EVENTS, conversation=name, max_bytes=SLICE_BYTES))


async def matches(log: EventLog, name: str, posts: list[Posted]) -> bool:
    """Return True if the list's local history begins with the posts."""
    try:
        await _follow(log, name, posts)
    except (NameTaken, Unreadable):
        return False
    return True


async def _follow(log: EventLog, name: str, posts: list[Posted]) -> tuple[Place, int]:
    """Compare posts with the local history. Return the place and version at the end of the posts.

    Raises:
        NameTaken: The posts differ from the local history.
        Unreadable: The posts are not valid.
    """
    pieces = read_pieces(log, name, "")
    first, steps, _ = await anext(pieces, Piece(1, []))
    place, version = Place(), first - 1
    for posted in posts:
        post_read = unseal(posted, place, version)
        for step in post_read.steps:
            while not steps:
                if (piece := await anext(pieces, None)) is None:
                    raise NameTaken
                steps = piece.steps
            if _without_keeper(steps.pop(0)) != _without_keeper(step):
                raise NameTaken
        place, version = post_read.place, post_read.newest
    return place, version


def _without_keeper(step: Step) -> bytes:
    """Encode a group without the keeper of its claims, which is the member that shared the list."""
    group = group_of(step)
    events = [msgspec.json.decode(event) for event in group.events]
    for event in events:
        event.pop("keeper", None)
    return _encode((group.at, group.actor, events, group.key))


async def share(log: EventLog, space: SharedLog, name: str) -> tuple[Place, int]:
    """Post the part of a list's history that a space lacks. Return the place at its end and the number of posts.

    Raises:
        NameTaken: The space contains another history under this name.
        TooNew: A later version of punchlist wrote some of the history.
        SharedLogError: The space can't accept the history now. A repeated call resumes where this one stopped.
    """
    try:
        place, shared = await _follow(log, name, await space.read(name, 0))
    except Unreadable as error:
        raise NameTaken from error
    posts = 0
    async for piece, more in _with_more(read_pieces(log, name, space.member)):
        rest = piece.after(shared)
        if not rest.steps:
            continue
        nonce = new_nonce(space.member)
        body = seal(space.member, nonce, rest.first, place.check, rest.steps, more=more)
        try:
            position = await post(space, name, place.position, nonce, body)
        except Conflict as error:
            raise NameTaken from error
        place = Place(position, check_of(body))
        posts += 1
    return place, posts


async def _read_original_posts(log: EventLog, name: str, member: str, shared: int) -> AsyncGenerator[Piece]:
    """Yield the posts from which a local history was built. `share` cut the events up to version `shared` into
    pieces."""
    after = 0
    rest: list[Stored] = []
    while events := await _read(log, name, after):
        own = [stored for stored in events if stored.version <= shared]
        if own:
            yield Piece(own[0].version, steps_of(own, member))
        rest += events[len(own) :]
        after = events[-1].seq
        begin = 0
        for at, stored in enumerate(rest, 1):
            if side := side_of(stored).chain:
                yield Piece(rest[begin].version, steps_of(rest[begin:at], member), side)
                begin = at
        rest = rest[begin:]
    if rest:
        raise HistoryAltered


async def _with_more(pieces: AsyncIterator[Piece]) -> AsyncGenerator[tuple[Piece, bool]]:
    last = await anext(pieces, None)
    while last is not None:
        following = await anext(pieces, None)
        yield last, following is not None
        last = following


async def put_back(log: EventLog, space: SharedLog, name: str, base: Place, shared: int) -> int:
    """Restore a list's posts that the space has lost. Return the number of posts.

    Args:
        log: The local log.
        space: The shared log.
        name: The list.
        base: The list's place after this machine shared it; empty if this machine joined the list.
        shared: The list's version at that time; 0 if this machine joined the list.

    Raises:
        NameTaken: The space contains other posts.
        HistoryAltered: The original posts can't be rebuilt from the local history.
        TooNew: A later version of punchlist wrote some of the posts.
        SharedLogError: The space can't accept the posts now. A repeated call resumes where this one stopped.
    """
    remaining = await space.read(name, 0)
    place, posts = Place(), 0
    async for piece, more in _with_more(_read_original_posts(log, name, space.member, shared)):
        nonce = new_nonce(space.member)
        body = seal(space.member, nonce, piece.first, place.check, piece.steps, more=more)
        check = check_of(body)
        ends_at = piece.first - 1 + sum(len(step.events) for step in piece.steps)
        if check != (piece.check or (base.check if ends_at == shared else check)):
            raise HistoryAltered
        # Posts before a tombstone don't matter, whether the space has them or not.
        if begins_anew(body):
            place = Place(remaining[-1].position if remaining else 0, "")
            matches_check = [has_check(posted.body, check) for posted in remaining]
            remaining = remaining[matches_check.index(True) :] if any(matches_check) else []
        if remaining:
            posted = remaining.pop(0)
            if not has_check(posted.body, check):
                raise NameTaken
            place = Place(posted.position, check)
            continue
        try:
            place = Place(await post(space, name, place.position, nonce, body), check)
        except Conflict as error:
            raise NameTaken from error
        posts += 1
    return posts
