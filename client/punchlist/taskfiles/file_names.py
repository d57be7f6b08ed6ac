"""Maps conversations to file names. Harmless names are used unchanged, and all others are hashed. No I/O.

All spellings of a UUID become its 32 hexadecimal digits, as in older programs. Daemons before 0.2 treated two spellings
of a UUID as two conversations, so each spelling also has a unique hashed name. Names that could be confused with
another conversation's are hashed too: those that look like a hash, and those with upper-case letters, because some file
systems ignore case.
"""

import hashlib
import re

_PLAIN = re.compile(r"[a-z0-9][a-z0-9-]{0,63}(?![\s\S])")
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![\s\S])")
_DIGITS = re.compile(r"[0-9a-f]{32}(?![\s\S])")
_HASHED = re.compile(r"h-[0-9a-f]{40}(?![\s\S])")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?![\s\S])")
"""Device names on Windows, where a folder may be copied to."""

_GROUPS = (8, 12, 16, 20)


def stems_of(conversation: str, *, keep_dashes: bool = False) -> tuple[str, ...]:
    """Return the possible file names of a conversation, without extension, best first.

    Only the last one is unique. An earlier name belongs to the first conversation that uses it.

    Args:
        conversation: Id of the conversation.
        keep_dashes: Use a UUID itself as the name, instead of its digits.
    """
    hashed = "h-" + hashlib.sha256(conversation.encode("utf-8", "surrogatepass")).hexdigest()[:40]
    uuid = conversation.lower() if conversation.isascii() else ""
    if _UUID.match(uuid) or _DIGITS.match(uuid):
        if not keep_dashes:
            return (uuid.replace("-", ""), hashed)
        return (conversation if _UUID.match(conversation) else hashed,)
    if _PLAIN.match(conversation) and not any(form.match(conversation) for form in (_HASHED, _RESERVED)):
        return (conversation,)
    return (hashed,)


def conversation_of(stem: str, *, keep_dashes: bool = False) -> str | None:
    """Return the conversation of a file with this name, or None if the name does not determine it."""
    if _DIGITS.match(stem) and not keep_dashes:
        parts = zip((0, *_GROUPS), (*_GROUPS, len(stem)), strict=True)
        return "-".join(stem[start:end] for start, end in parts)
    return stem if stems_of(stem, keep_dashes=keep_dashes) == (stem,) else None
