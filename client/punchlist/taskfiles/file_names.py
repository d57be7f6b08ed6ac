"""Conversations as file names: an allow-list of harmless names, and a hash of everything else. Pure.

A UUID, however it is spelled, is its 32 hexadecimal digits, as older programs name their files. Daemons before 0.2 made
two conversations of two spellings of one UUID, so each also has a hash for a name, which no other conversation has.
What could be taken for another conversation's name (a hash, upper case on a disk that does not tell case apart) is
hashed.
"""

import hashlib
import re

_PLAIN = re.compile(r"[a-z0-9][a-z0-9-]{0,63}(?![\s\S])")
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![\s\S])")
_DIGITS = re.compile(r"[0-9a-f]{32}(?![\s\S])")
_HASHED = re.compile(r"h-[0-9a-f]{40}(?![\s\S])")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?![\s\S])")
"""Names that mean a device on other systems, to which a folder may be copied."""

_GROUPS = (8, 12, 16, 20)


def stems_of(conversation: str, *, keep_dashes: bool = False) -> tuple[str, ...]:
    """The file names, without their ending, that a conversation may have, the best one first.

    The last one is nobody else's; one before it is for whoever comes first. `keep_dashes`: a UUID is its own name.
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
    """The conversation that a file of this name belongs to, or None if the name does not tell."""
    if _DIGITS.match(stem) and not keep_dashes:
        parts = zip((0, *_GROUPS), (*_GROUPS, len(stem)), strict=True)
        return "-".join(stem[start:end] for start, end in parts)
    return stem if stems_of(stem, keep_dashes=keep_dashes) == (stem,) else None
