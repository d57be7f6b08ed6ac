"""Models' token usage, summed from the answers in the threads, and its limits."""

from datetime import UTC, datetime
from typing import NamedTuple

from punchlist.clients.aio import AsyncClient

_PAGE = 200


class Limits(NamedTuple):
    """Upper limits for a model: seconds per turn, and tokens per turn and per UTC day. 0 tokens means no limit."""

    turn_s: float = 90.0
    turn_tokens: int = 0
    day_tokens: int = 0


async def read_usage(
    client: AsyncClient, list: str | None = None, *, day: str | None = None
) -> dict[str, dict[str, int]]:
    """Return the `input` and `output` tokens used on each UTC day (`2026-11-22`).

    Args:
        day: The oldest day to read.
    """
    days: dict[str, dict[str, int]] = {}
    cursor: str | None = None
    while True:
        page = await client.conversations(kind="chat", limit=_PAGE, cursor=cursor)
        for thread in page.conversations:
            if list is None or thread.metadata.get("list") == list:
                await _add_thread(client, thread.conversation, days, day)
        cursor = page.next_cursor
        if cursor is None:
            return days


async def _add_thread(client: AsyncClient, thread: str, days: dict[str, dict[str, int]], first_day: str | None) -> None:
    after: str | None = None
    while True:
        messages = await client.conversation(thread).messages(
            roles=("assistant",), order="desc", limit=_PAGE, after=after
        )
        for message in messages.messages:
            day = day_of(message.at / 1000)
            if first_day is not None and day < first_day:
                return
            usage: dict[str, int] = message.content.get("usage") or {}
            for name, count in usage.items():
                sums = days.setdefault(day, {"input": 0, "output": 0})
                sums[name] = sums.get(name, 0) + count
        if not messages.has_more:
            return
        after = messages.messages[-1].message


def day_of(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()
