"""Listing of conversations, shared by all stores: searchable text and cursors.

Conversations are ordered by the position of their newest event, newest first, then by id. Timestamps are not used. A
cursor contains the sort key of a page's last conversation, so later changes don't shift the next page.
"""

import base64
import binascii

import msgspec

from punchlist_schemas.things import Counts, Settings
from punchlistd.store.port import BadCursor


class _Titled(msgspec.Struct):
    title: str = ""


class _Summary(msgspec.Struct):
    settings: Settings = Settings()
    counts: Counts = Counts()
    wakes_at: int | None = None


_decode_title = msgspec.json.Decoder(_Titled).decode
_decode_summary = msgspec.json.Decoder(_Summary).decode


def fold(text: str) -> str:
    return text.casefold()


def search_text(conversation: str, summary: bytes) -> str:
    """Return the text that queries are matched against: the id, and the title on a second line."""
    title = _decode_title(summary).title if summary else ""
    return fold(f"{conversation}\n{title}")


def is_timed(summary: bytes, unfinished: int) -> bool:
    """Whether a conversation has deferred tasks, or has only finished tasks and clears itself when idle."""
    try:
        decoded = _decode_summary(summary)
    except msgspec.MsgspecError:
        return True  # the summary is damaged, so load the conversation's events to find out
    is_finished = not unfinished and bool(decoded.counts.completed or decoded.counts.failed)
    return decoded.wakes_at is not None or (decoded.settings.auto_clear == "idle" and is_finished)


def format_cursor(seq: int, conversation: str) -> str:
    return base64.urlsafe_b64encode(f"{seq}:{conversation}".encode()).decode().rstrip("=")


def parse_cursor(cursor: str) -> tuple[int, str]:
    """Return the position of the newest event of the cursor's conversation, and the conversation's id.

    Raises:
        BadCursor: The cursor was not returned by `format_cursor`.
    """
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        seq, _, conversation = text.partition(":")
        place = int(seq), conversation
    except (binascii.Error, ValueError) as error:
        raise BadCursor("the cursor is unknown") from error
    if format_cursor(*place) != cursor or not 0 <= place[0] < 1 << 63:
        raise BadCursor("the cursor is unknown")
    return place
