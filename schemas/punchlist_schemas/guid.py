"""Spellings of a GUID, all of which refer to the same list. Other names have one spelling."""

import re

_FORM = re.compile(r"\{?([0-9a-f]{8})(-?)([0-9a-f]{4})\2([0-9a-f]{4})\2([0-9a-f]{4})\2([0-9a-f]{12})\}?", re.IGNORECASE)

BRACED_PATTERN = r"^\{[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\}(?![\s\S])"
"""A GUID in braces: accepted as a name of a list, but not as its id."""


def spellings(name: str) -> tuple[str, ...]:
    """Return all spellings of a GUID that can be a list's id; the first, in lower case with dashes, is for new lists.

    Returns an empty tuple if the name is not a GUID: 32 hexadecimal digits, with or without dashes, or with dashes and
    braces.
    """
    match = _FORM.fullmatch(name) if name.isascii() else None
    if match is None or name.startswith("{") != name.endswith("}") or (name.startswith("{") and not match[2]):
        return ()
    parts = [part.lower() for part in (match[1], *match.groups()[2:])]
    dashed, digits = "-".join(parts), "".join(parts)
    return dashed, digits, dashed.upper(), digits.upper()


def canonical(name: str) -> str:
    """Return the spelling of a GUID for new lists, or any other name unchanged."""
    return (spellings(name) or (name,))[0]
