"""Posts until it is known whether a post is in: the one loop that every adapter is called through.

What an engine answers about one attempt is not the end of it. A time-out leaves open whether the post is in, and a
deposed leader may say "conflict" of a post that its successor takes: while both are there, both hear it. So after
either the log itself is asked who stands behind the expected position, by the nonce. A post that is not there is made
again with the same expectation: it can't get in twice, and an earlier attempt that comes in late is the same post.
"""

import asyncio
import random
from collections.abc import Callable

from punchlistd.replication.port import Conflict, Forbidden, OutcomeUnknown, Posted, SharedLog, Unreachable

PATIENCE_S = 9.3
"""After so long a change is given up: NATS elects a leader within nine seconds, mostly, and people wait ten."""

PAUSE_S = 0.1
"""About how long to wait between two attempts."""


async def post(  # noqa: C901 - one answer after the other
    log: SharedLog,
    list: str,
    expected: int,
    nonce: str,
    body: bytes,
    pushed: Callable[[int], Posted | None] = lambda _position: None,
) -> int:
    """The position of the post.

    Args:
        log: where to.
        list: the list.
        expected: the position of the post that this one follows.
        nonce: what the post is known by.
        body: the post.
        pushed: the post behind a position, if it was pushed already: the log need not be asked who was first.

    Raises:
        Conflict: Another post stands there: this one is not in and never will be.
        Unreachable: It is not in and never will be.
        OutcomeUnknown: It may be in.
        Forbidden: This member may not post.
        TooLarge: It is not in.
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
                    behind = await log.read(list, expected)
                except (Unreachable, Forbidden):
                    behind = []
                if behind:
                    if behind[0].nonce == nonce:
                        return behind[0].position
                    raise Conflict(f"Another post to {list} came first.") from failed
                await asyncio.sleep(PAUSE_S * (0.5 + random.random()))  # noqa: S311 - chance, no secret
    except TimeoutError:
        raise unknown or OutcomeUnknown("The server did not answer in time.") from None
