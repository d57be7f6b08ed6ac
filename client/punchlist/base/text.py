"""Text from others, made fit to show: unsafe characters become visible escapes, long text is cut, lines are joined.

Light enough for a shell prompt: imports nothing. `punchlist_packages.words` writes the tables for the page and the
editors.
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
"""Code points that count as printable and yet show nothing (Default_Ignorable_Code_Point and blank Braille).

U+FE0E and U+FE0F stay: they choose the text or emoji form of the character before them.
"""

SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""Space separators are not "printable" to Python and harmless to a terminal."""

MARKS = ((0x0300, 0x036F), (0x0483, 0x0489), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF), (0x20D0, 0x20FF), (0xFE20, 0xFE2F))
"""The blocks of combining marks."""

JOINERS = "\u00ad\u200c\u200d"
"""Soft hyphen, ZWNJ and ZWJ: they show nothing, and Persian, Indic scripts and emoji are not written without them."""

SELECTORS = ((0xFE00, 0xFE0D), (0xE0100, 0xE01EF))
"""Variation selectors beside U+FE0E and U+FE0F: they choose the form of the character before them."""

MAX_MARKS = 4
"""Combining marks shown on one base character; real writing needs no more, a heap of them paints other lines."""


def escape(char: str) -> str:
    r"""The visible form of one character: `\x1b`, `\u202e`, `\U000e0041`."""
    code = ord(char)
    if code < _BYTE:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _BMP else f"\\U{code:08x}"


def is_safe(char: str) -> bool:
    """Whether a character may reach a terminal as it is. Newline and tab are for the caller to allow."""
    if char in SPACES:
        return True
    code = ord(char)
    return char.isprintable() and not _is_within(code, IGNORABLE)


def safe(text: str, keep: str = "") -> str:
    """Escape everything in `text` that could steer or deceive a terminal, but for the characters in `keep`.

    Joiners and variation selectors stay where writing needs them: one between two letters or pictures, or behind one.
    """
    if text.isascii() and text.isprintable():
        return text
    shown: list[str] = []
    marks = 0
    before = ""
    for place, char in enumerate(text):
        marks = marks + 1 if _is_combining(char) else 0
        harmless = char in keep or (is_safe(char) and marks <= MAX_MARKS)
        if not harmless and _is_writing(before):
            after = text[place + 1 : place + 2]
            harmless = _is_writing(after) if char in JOINERS else _is_selector(char)
        shown.append(char if harmless else escape(char))
        before = char
    return "".join(shown)


def _is_writing(char: str) -> bool:
    """Whether a joiner may stand beside this character: a letter, a digit, a mark or a picture."""
    return char.isalnum() or (char > "\xff" and is_safe(char) and char not in SPACES)


def _is_selector(char: str) -> bool:
    return _is_within(ord(char), SELECTORS)


def safe_block(text: str) -> str:
    """As `safe`, for text of several lines: newline and tab stay."""
    return safe(text, "\n\t")


def safe_json(text: str) -> str:
    r"""The same JSON value with everything unsafe inside its strings written as `\uXXXX`."""
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(char if char in "\n\r\t" or is_safe(char) else _json_escape(ord(char)) for char in text)


def one_line(text: str) -> str:
    """The text on one line: each run of white space becomes one space."""
    return " ".join(text.split())


def joined_text(title: str, description: str, between: str) -> str:
    """A title and a description as one text; a description whose first line begins with the title stands alone."""
    if not description:
        return title
    first = one_line(description.splitlines()[0]) if description.strip() else ""
    return description if first.startswith(title) else f"{title}{between}{description}"


def clip(text: str, most: int) -> str:
    """At most `most` characters of a text; a text that was cut ends in `…`."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def task_id(text: str) -> str:
    """The id in a task's name as people write it: `3` or `#3`."""
    return text.removeprefix("#")


def _is_combining(char: str) -> bool:
    """Whether a character is painted onto the one before it."""
    return _is_within(ord(char), MARKS)


def _is_within(code: int, ranges: "tuple[tuple[int, int], ...]") -> bool:
    """Whether a code point lies in one of these ranges, which are in their order."""
    for low, high in ranges:
        if code <= high:
            return code >= low
    return False


def _json_escape(code: int) -> str:
    if code < _BMP:
        return f"\\u{code:04x}"
    code -= _BMP
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
