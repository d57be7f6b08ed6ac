"""Replaces lines of a text file. All other bytes stay: encoding, byte order mark, line ends and invalid characters."""

import re
from collections import Counter
from collections.abc import Sequence

from punchlist_apps.files.importers.document import find_encoding
from punchlist_apps.files.importers.wrong import FormatError
from punchlist_apps.files.mirror.plan_text import NewLine

_FALLBACK = "cp1252"
_END = r"(\r\n|\r|\n)"


def check_encoding(data: bytes, name: str) -> None:
    """Reject a text that is UTF-8 except for a few bytes. Read as Windows-1252, each of its accents would change.

    Raises:
        FormatError: Most of the bytes that aren't ASCII are UTF-8, but not all.
    """
    if find_encoding(data)[0] != _FALLBACK:
        return
    text = data.decode("utf-8", "surrogateescape")
    strays = re.findall("[\udc80-\udcff]", text)
    if len(strays) * 2 < sum(not character.isascii() for character in text):
        line = text.count("\n", 0, text.index(strays[0])) + 1
        byte = f"byte 0x{ord(strays[0]) & 0xFF:02x} in line {line}"
        raise FormatError(f"{byte} is not UTF-8, unlike the rest; correct it", name)


def replace_lines(data: bytes, old: Sequence[str], lines: Sequence[NewLine], name: str) -> bytes:
    """Return the bytes of a file with new lines. `old` are the lines of its text.

    Raises:
        FormatError: The file's encoding lacks a character of a new line.
    """
    encoding, start = find_encoding(data)
    if encoding.startswith(("utf-16", "utf-32")):
        parts = [part.encode(encoding) for part in re.split(_END, data[start:].decode(encoding))]
    else:
        parts = re.split(_END.encode(), data[start:])
    ends = parts[1::2]
    common = Counter(ends).most_common(1)[0][0] if ends else "\n".encode(encoding)
    result = [data[:start]]
    for number, line in enumerate(lines, 1):
        is_old = line.source >= 0 and line.text == old[line.source]
        try:
            result.append(parts[2 * line.source] if is_old else line.text.encode(encoding))
        except UnicodeEncodeError as error:
            missing = line.text[error.start : error.end]
            raise FormatError(f"its encoding {encoding} has no “{missing}”; save it as UTF-8", name) from error
        if number < len(lines):
            result.append(ends[line.source] if 0 <= line.source < len(ends) else common)
    return b"".join(result)
