"""Limits replies to 10,000 tokens, and reports how much text was omitted.

A token is estimated as 4 characters, which overestimates English text and JSON.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

CHARACTERS_PER_TOKEN = 4
MAX_TOKENS = 10_000
BUDGET = MAX_TOKENS * CHARACTERS_PER_TOKEN - 2_000
"""Maximum length of a list, in characters. This limit leaves room for other lines of the reply."""

MAX_TEXT = 20_000
"""Maximum length of the main text of a reply, in characters."""

MAX_IDS = 200
"""Maximum number of ids in a list."""


def count_tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def to_json(value: object) -> str:
    """Return a value as JSON, without spaces and without escapes of non-ASCII characters."""
    return msgspec.json.encode(value).decode()


def shorten(text: str, max_length: int = MAX_TEXT, offset: int = 0, call: str = "") -> str:
    """Return at most `max_length` characters of text from `offset` on, followed by the number of characters left out.

    `call` is the tool call that returns the rest, without its offset; "" if no tool can.
    """
    if len(text) - offset <= max_length:
        return text[offset:]
    end = offset + max_length
    return f"{text[offset:end]}… [{len(text) - end} characters left out{f': {call} offset={end}' if call else ''}]"


def join_ids(ids: Sequence[str], prefix: str = "") -> str:
    """Return at most `MAX_IDS` ids, separated by commas, and the number of remaining ids."""
    shown = ", ".join(prefix + id for id in ids[:MAX_IDS])
    return shown if len(ids) <= MAX_IDS else f"{shown} and {len(ids) - MAX_IDS} more"


def fit(items: Iterable[T], render: Callable[[T], Any], budget: int = BUDGET) -> tuple[list[Any], int]:
    """Render the first items that fit. Return the rendered items, and how many were left out.

    Args:
        budget: Maximum length of the rendered items, in characters.
    """
    rendered: list[Any] = []
    left_out = 0
    for item in items:
        if not left_out:
            value = render(item)
            budget -= 1 + len(value if isinstance(value, str) else to_json(value))
            if budget >= 0:
                rendered.append(value)
                continue
        left_out += 1
    return rendered, left_out


def announce_omitted(left_out: int, offset: int, tool: str) -> str:
    """Return a sentence with the number of tasks that did not fit."""
    return f"{left_out} more tasks are left out: call {tool} with offset={offset} for them"
