"""Keeps replies small: no reply exceeds 10,000 tokens, and whatever is left out is announced.

Tokens are counted as characters / 4, which for English text and JSON is on the safe side.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

CHARACTERS_PER_TOKEN = 4
MAX_TOKENS = 10_000
BUDGET = MAX_TOKENS * CHARACTERS_PER_TOKEN - 2_000
"""How many characters a list may take, so that what is said beside it still fits."""

LONG_TEXT = 20_000
"""How many characters of one long text are shown where it is the matter of the reply."""

MANY_IDS = 200


def tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def compact(value: object) -> str:
    """A value as JSON, without spaces and with characters as they are."""
    return msgspec.json.encode(value).decode()


def shorten(text: str, most: int = LONG_TEXT, offset: int = 0, rest: str = "") -> str:
    """At most `most` characters of a text from `offset` on; tells how many are left out, and by which call to read on.

    `rest` is that call without its offset, or empty if there is none.
    """
    if len(text) - offset <= most:
        return text[offset:]
    end = offset + most
    return f"{text[offset:end]}… [{len(text) - end} characters left out{f': {rest} offset={end}' if rest else ''}]"


def joined(ids: Sequence[str], mark: str = "") -> str:
    """Ids as a list for reading; a very long one is cut."""
    shown = ", ".join(mark + one for one in ids[:MANY_IDS])
    return shown if len(ids) <= MANY_IDS else f"{shown} and {len(ids) - MANY_IDS} more"


def fitting(items: Iterable[T], render: Callable[[T], Any], budget: int = BUDGET) -> tuple[list[Any], int]:
    """What is rendered of the first items, as far as they fit, and how many are left out.

    Args:
        budget: Upper limit for the rendered items, in characters.
    """
    shown: list[Any] = []
    left_out = 0
    for item in items:
        if not left_out:
            one = render(item)
            budget -= 1 + len(one if isinstance(one, str) else compact(one))
            if budget >= 0:
                shown.append(one)
                continue
        left_out += 1
    return shown, left_out


def more(left_out: int, offset: int, tool: str) -> str:
    """The sentence about the tasks that did not fit."""
    return f"{left_out} more tasks are left out: call {tool} with offset={offset} for them"
