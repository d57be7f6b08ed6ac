"""Finds the posts of a list that no daemon can follow, so that a keeper of the space can remove them.

Daemons stop at such a post instead of skipping it. Skipping would need no keeper, but a daemon that skips what another
one follows forks the list: a post of a later version, or one behind a post that the space has lost, looks invalid to
the daemon that lacks something. So a person decides.

The list is judged from its first post in the space on. The local copy does not matter, and any daemon finds the same.
"""

import asyncio
from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from punchlistd.engine.lists.loaded import Place
from punchlistd.replication.port import Posted
from punchlistd.replication.posts.posts import Diverged, Invalid, Unreadable, begins_anew, check_of, unseal

SLICE_POSTS = 64
"""After this many posts other work may run."""


class Bad(NamedTuple):
    """A post that can't be followed.

    Attributes:
        certain: Whether no daemon ever followed it, so that removing it loses no change.
    """

    post: Posted
    why: str
    certain: bool

    @property
    def id(self) -> str:
        """A name that another post in its place does not have."""
        post = self.post
        content = b"%d\t%b\t%b" % (post.position, post.nonce.encode(), post.body)
        return blake2b(content, digest_size=8).hexdigest()


async def find_bad(posts: Iterable[Posted]) -> list[Bad]:
    bad_posts: list[Bad] = []
    place, version = Place(), 0
    # Positions after which a daemon would have posted a follower of this chain, and nothing else.
    judged = {0}
    checks: set[str] = set()
    for number, posted in enumerate(posts):
        if number % SLICE_POSTS == 0:
            await asyncio.sleep(0)
        try:
            post = unseal(posted, place, version)
        except Unreadable as error:
            certain = isinstance(error, Invalid) or (
                isinstance(error, Diverged) and _was_never_followed(posted, judged, checks)
            )
            bad_posts.append(Bad(posted, str(error), certain))
            if not certain:
                continue
        else:
            if post.begins_anew:  # earlier posts are erased on every machine
                bad_posts.clear()
            place, version = post.place, post.newest
            checks.add(place.check)
        judged.add(posted.position)
    return bad_posts


def _was_never_followed(posted: Posted, judged: set[int], checks: set[str]) -> bool:
    """Return True if a post that does not follow here follows nowhere: it is a copy, or nothing before it is missing.

    A tombstone is never certain: it needs no earlier posts. In PostgreSQL, a member can insert posts before one whose
    earlier posts were erased.
    """
    if check_of(posted.body) in checks:
        return True
    return posted.before in judged and not begins_anew(posted.body)
