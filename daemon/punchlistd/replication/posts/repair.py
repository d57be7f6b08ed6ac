"""Finds the posts of a list that no daemon can apply, so that a keeper of the space can remove them.

Daemons stop at such a post instead of skipping it. Skipping would need no keeper, but if one daemon skips a post that
another applies, the list forks. For example, a post from a later version of punchlist, or a post after one that the
space has lost, looks invalid to a daemon that lacks that version or post. A person therefore has to decide.

The list is checked starting with its first post in the space. The local copy is not used, so all daemons find the same
posts.
"""

import asyncio
from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from punchlistd.engine.lists.loaded import Place
from punchlistd.replication.port import Posted
from punchlistd.replication.posts.posts import Diverged, Invalid, Unreadable, begins_anew, check_of, unseal

SLICE_POSTS = 64
"""Number of posts after which other work may run."""


class Bad(NamedTuple):
    """A post that can't be applied.

    Attributes:
        certain: Whether no daemon can have applied it, so that removing it loses no changes.
    """

    post: Posted
    why: str
    certain: bool

    @property
    def id(self) -> str:
        """An ID that differs from that of any other post at the same position."""
        post = self.post
        content = b"%d\t%b\t%b" % (post.position, post.nonce.encode(), post.body)
        return blake2b(content, digest_size=8).hexdigest()


async def find_bad(posts: Iterable[Posted]) -> list[Bad]:
    bad_posts: list[Bad] = []
    place, version = Place(), 0
    # Positions after which a daemon could only have posted a post that follows this chain.
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
    """Return True if a post that can't be applied here can't be applied by any daemon.

    Either it is a copy, or no post before it is missing. This is never certain for a tombstone, which needs no earlier
    posts: in PostgreSQL, a member can insert posts before a tombstone whose earlier posts were erased.
    """
    if check_of(posted.body) in checks:
        return True
    return posted.before in judged and not begins_anew(posted.body)
