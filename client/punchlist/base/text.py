"""Sanitizes text for display: escapes unsafe characters, truncates long text, joins lines.

Imports nothing, because shell prompts load this module. `punchlist_packages.words` generates the tables for the web
page and the editors from these constants.
"""

_BYTE = 0x100
_BMP = 0x10000
IGNORABLE = (
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2800, 0x2800),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0D),
    (0xFFA0, 0xFFA0),
    (0xE0000, 0xE0FFF),
)
"""Code points that are invisible although Python considers them printable (Default_Ignorable_Code_Point, blank
Braille).

U+FE0E and U+FE0F, which select the text or emoji form of the preceding character, are not included.
"""

SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""Space separators that are harmless on a terminal although Python does not consider them printable."""

MARKS = ((0x0300, 0x036F), (0x0483, 0x0489), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF), (0x20D0, 0x20FF), (0xFE20, 0xFE2F))
"""Blocks of combining marks."""

JOINERS = "\u00ad\u200c\u200d"
"""Soft hyphen, ZWNJ and ZWJ: invisible, but required by Persian, Indic scripts and emoji."""

SELECTORS = ((0xFE00, 0xFE0D), (0xE0100, 0xE01EF))
"""Variation selectors, which select the form of the preceding character, except U+FE0E and U+FE0F."""

MAX_MARKS = 4
"""Maximum number of combining marks on one character. Real text needs no more, and long sequences of marks cover other
lines.
"""


def escape(char: str) -> str:
    r"""Return the escape sequence for a character: `\x1b`, `\u202e`, `\U000e0041`."""
    code = ord(char)
    if code < _BYTE:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _BMP else f"\\U{code:08x}"


def is_safe(char: str) -> bool:
    """Return whether a character is harmless on a terminal. Newline and tab are not; callers may allow them."""
    if char in SPACES:
        return True
    code = ord(char)
    return char.isprintable() and not _is_within(code, IGNORABLE)


def safe(text: str, keep: str = "") -> str:
    """Escape all characters that could control a terminal or deceive its user, except those in `keep`.

    Keeps a joiner between two letters or emoji, and a variation selector after one, because normal text needs them.
    """
    if text.isascii() and text.isprintable():
        return text
    parts: list[str] = []
    marks = 0
    before = ""
    for place, char in enumerate(text):
        marks = marks + 1 if _is_combining(char) else 0
        harmless = char in keep or (is_safe(char) and marks <= MAX_MARKS)
        if not harmless and _is_writing(before):
            after = text[place + 1 : place + 2]
            harmless = _is_writing(after) if char in JOINERS else _is_selector(char)
        parts.append(char if harmless else escape(char))
        before = char
    return "".join(parts)


def _is_writing(char: str) -> bool:
    """Return whether a joiner is normal next to this character: a letter, digit, mark or emoji."""
    return char.isalnum() or (char > "\xff" and is_safe(char) and char not in SPACES)


def _is_selector(char: str) -> bool:
    return _is_within(ord(char), SELECTORS)


def safe_block(text: str) -> str:
    """Escape as `safe` does, but keep newlines and tabs."""
    return safe(text, "\n\t")


def safe_json(text: str) -> str:
    r"""Return JSON with the same value, in which all unsafe characters are written as `\uXXXX`."""
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(char if char in "\n\r\t" or is_safe(char) else _json_escape(ord(char)) for char in text)


def one_line(text: str) -> str:
    """Replace each run of white space with one space."""
    return " ".join(text.split())


def joined_text(title: str, description: str, between: str) -> str:
    """Join a title and a description. The title is left out if the description's first line starts with it."""
    if not description:
        return title
    first = one_line(description.splitlines()[0]) if description.strip() else ""
    return description if first.startswith(title) else f"{title}{between}{description}"


def clip(text: str, most: int) -> str:
    """Truncate text to `most` characters, ending in `…` if it was longer."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def task_id(text: str) -> str:
    """Return the id in a task reference as people write it: `3` or `#3`."""
    return text.removeprefix("#")


def _is_combining(char: str) -> bool:
    return _is_within(ord(char), MARKS)


def _is_within(code: int, ranges: "tuple[tuple[int, int], ...]") -> bool:
    """Return whether a code point is in one of these ranges, which must be sorted."""
    for low, high in ranges:
        if code <= high:
            return code >= low
    return False


def _json_escape(code: int) -> str:
    if code < _BMP:
        return f"\\u{code:04x}"
    code -= _BMP
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
