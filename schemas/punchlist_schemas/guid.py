"""Spellings of a GUID, all of which name one list. Any other name has one spelling."""

import re

_FORM = re.compile(r"\{?([0-9a-f]{8})(-?)([0-9a-f]{4})\2([0-9a-f]{4})\2([0-9a-f]{4})\2([0-9a-f]{12})\}?", re.IGNORECASE)

BRACED_PATTERN = r"^\{[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\}(?![\s\S])"
"""A GUID in braces: it can name a list, but not be a list's id."""


def spellings(name: str) -> tuple[str, ...]:
    """Return all spellings of a GUID that can be a list's id: first lower case with dashes, which new lists get.

    Empty if the name is not a GUID: 32 hexadecimal digits, with or without dashes, or with dashes and in braces.
    """
    match = _FORM.fullmatch(name) if name.isascii() else None
    if match is None or name.startswith("{") != name.endswith("}") or (name.startswith("{") and not match[2]):
        return ()
    parts = [part.lower() for part in (match[1], *match.groups()[2:])]
    dashed, digits = "-".join(parts), "".join(parts)
    return dashed, digits, dashed.upper(), digits.upper()


def canonical(name: str) -> str:
    """Return the spelling of a GUID that new lists get; any other name as it is."""
    found = spellings(name)
    return found[0] if found else name
