"""What models used, from the answers in the threads, and how much they may use."""

from datetime import UTC, datetime
from typing import NamedTuple

from punchlist.clients.aio import AsyncClient

_PAGE = 200


class Limits(NamedTuple):
    """How long a model may take for a turn, in seconds, and how many tokens it may use in a turn and in a day of UTC.

    0 tokens is no bound.
    """

    turn_s: float = 90.0
    turn_tokens: int = 0
    day_tokens: int = 0


async def used(client: AsyncClient, list: str | None = None, *, day: str | None = None) -> dict[str, dict[str, int]]:
    """Return what was used on each day of UTC (`2026-11-22`): `input` and `output`, in tokens."""
    days: dict[str, dict[str, int]] = {}
    cursor: str | None = None
    while True:
        page = await client.conversations(kind="chat", limit=_PAGE, cursor=cursor)
        for thread in page.conversations:
            if list is None or thread.metadata.get("list") == list:
                await _add(client, thread.conversation, days, day)
        cursor = page.next_cursor
        if cursor is None:
            return days


async def _add(client: AsyncClient, thread: str, days: dict[str, dict[str, int]], only: str | None) -> None:
    after: str | None = None
    while True:
        messages = await client.conversation(thread).messages(
            roles=("assistant",), order="desc", limit=_PAGE, after=after
        )
        for one in messages.messages:
            day = day_of(one.at / 1000)
            if only is not None and day < only:
                return
            usage: dict[str, int] = one.content.get("usage") or {}
            for name, count in usage.items():
                sums = days.setdefault(day, {"input": 0, "output": 0})
                sums[name] = sums.get(name, 0) + count
        if not messages.has_more:
            return
        after = messages.messages[-1].message


def day_of(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()
