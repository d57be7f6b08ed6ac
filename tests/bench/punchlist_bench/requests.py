"""The calls that the generators send, with their placeholders (see wire.h), and what Redis is asked to do instead."""

from typing import Any

import msgspec

TITLE = "write the parser for the frame header"

PUT = "redis.call('XADD',KEYS[1],'*','e',ARGV[1]); return redis.call('HSET',KEYS[2],ARGV[2],ARGV[3])"
"""What Redis does for a durable change: append to a stream and set a field of a hash."""

EVENT = (
    '{"seq":123456,"conversation":"durable-17","version":1234,"at":1763600000123,"actor":"anonymous",'
    '"event":{"type":"TaskAdded","task":"1234","title":"' + TITLE + ' 123456"}}'
)
"""As long as an event of ours."""

TASK = (
    '{"id":"1234","title":"' + TITLE + ' 123456","status":"pending","created_at":1763600000123,'
    '"updated_at":1763600000123,"status_changed_at":1763600000123,"version":1234}'
)
"""As long as a task of ours."""


def call(method: str, /, **params: Any) -> str:
    """A request; its id is the generator's."""
    encoded = msgspec.json.encode(params).decode()
    return f'{{"jsonrpc":"2.0","id":{{id}},"method":"{method}","params":{encoded}}}'


def statuses(conversation: str) -> list[str]:
    """Three calls that lead a task round: each changes it, so none is a repetition that needs no write."""
    return [
        call("task.set_status", conversation=conversation, task="{task}", status=status)
        for status in ("in_progress", "completed", "pending")
    ]


def redis(*words: str) -> str:
    """A Redis command as the generator takes it."""
    return "\t".join(words)


def tasks(number: int) -> list[dict[str, str]]:
    """New tasks for `task.add_many`."""
    return [{"title": f"{TITLE} {index}"} for index in range(1, number + 1)]
