"""Posts and retries until the outcome is certain. All posts go through this loop, regardless of the adapter.

The engine's response to one attempt is not final. After a timeout, the post may be in the log, and a deposed leader may
report a conflict for a post that its successor accepts. In both cases, the loop reads the post after the expected
position and compares its nonce. If there is no post, it posts again with the same expected position. The post can't be
stored twice, and an earlier attempt that arrives late is the same post.
"""

import asyncio
import random
from collections.abc import Callable

from punchlistd.replication.port import Conflict, Forbidden, OutcomeUnknown, Posted, SharedLog, Unreachable

PATIENCE_S = 9.3
"""Timeout for a post, in seconds. NATS usually elects a leader within nine seconds, and people wait for ten."""

PAUSE_S = 0.1
"""Mean pause between two attempts, in seconds."""


async def post(  # noqa: C901 - one branch for each outcome
    log: SharedLog,
    list: str,
    expected: int,
    nonce: str,
    body: bytes,
    pushed: Callable[[int], Posted | None] = lambda _position: None,
) -> int:
    """Post to a list and return the position.

    Args:
        log: The shared log.
        list: The list.
        expected: Position of the post that this one follows.
        nonce: ID of the post.
        body: The post.
        pushed: Returns the post after a position if it has already been pushed, which saves reading the log.

    Raises:
        Conflict: Another post follows that position. This post is not in the log and never will be.
        Unreachable: The post is not in the log and never will be.
        OutcomeUnknown: The post may be in the log.
        Forbidden: This member may not post.
        TooLarge: The post is not in the log.
    """
    unknown: OutcomeUnknown | None = None
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                failed: Exception
                try:
                    return await log.post(list, expected, nonce, body)
                except OutcomeUnknown as error:
                    failed = unknown = error
                except Conflict as error:
                    if (other := pushed(expected)) is not None and other.nonce != nonce:
                        raise
                    failed, unknown = error, OutcomeUnknown(f"{error} Nobody could say which one.")
                except (Unreachable, Forbidden) as error:
                    if unknown is None:
                        raise
                    failed = error
                try:
                    followers = await log.read(list, expected)
                except (Unreachable, Forbidden):
                    followers = []
                if followers:
                    if followers[0].nonce == nonce:
                        return followers[0].position
                    raise Conflict(f"Another post to {list} came first.") from failed
                await asyncio.sleep(PAUSE_S * (0.5 + random.random()))  # noqa: S311 - jitter, not a secret
    except TimeoutError:
        raise unknown or OutcomeUnknown("The server did not answer in time.") from None
