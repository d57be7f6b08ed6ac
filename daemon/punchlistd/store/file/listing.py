"""What the stores agree on about listing conversations: the text that is searched, and cursors.

The order is newest changed first, by the position of the newest event and not by the clock, ties by id. A cursor names
the last conversation of a page by its place in that order, so a page stays right whatever is added before it.
"""

import base64
import binascii

import msgspec

from punchlist_schemas.things import Counts, Settings
from punchlistd.store.port import BadCursor


class _Titled(msgspec.Struct):
    title: str = ""


class _Shown(msgspec.Struct):
    settings: Settings = Settings()
    counts: Counts = Counts()
    wakes_at: int | None = None


_decode = msgspec.json.Decoder(_Titled).decode
_decode_shown = msgspec.json.Decoder(_Shown).decode


def fold(text: str) -> str:
    return text.casefold()


def search_text(conversation: str, summary: bytes) -> str:
    """What a query is looked for in: the id and, on a line of its own, the title."""
    title = _decode(summary).title if summary else ""
    return fold(f"{conversation}\n{title}")


def is_timed(summary: bytes, unfinished: int) -> bool:
    """Whether a conversation has deferred tasks, or has finished ones alone and clears itself when idle.

    Of one whose summary is spoiled too: its events tell.
    """
    try:
        shown = _decode_shown(summary)
    except msgspec.MsgspecError:
        return True
    is_finished = not unfinished and bool(shown.counts.completed or shown.counts.failed)
    return shown.wakes_at is not None or (shown.settings.auto_clear == "idle" and is_finished)


def cursor_of(seq: int, conversation: str) -> str:
    return base64.urlsafe_b64encode(f"{seq}:{conversation}".encode()).decode().rstrip("=")


def place_of(cursor: str) -> tuple[int, str]:
    """The position of the newest event of the cursor's conversation, and its id.

    Raises:
        BadCursor: It is none of ours.
    """
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        seq, _, conversation = text.partition(":")
        place = int(seq), conversation
    except (binascii.Error, ValueError) as error:
        raise BadCursor("the cursor is none that was given out") from error
    if cursor_of(*place) != cursor or not 0 <= place[0] < 1 << 63:
        raise BadCursor("the cursor is none that was given out")
    return place
