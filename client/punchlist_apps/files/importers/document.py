"""Reads files without blocking, decodes various encodings, and parses JSON with line numbers in errors."""

import codecs
import json
import os
import stat
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from punchlist_apps.files.importers.wrong import FormatError

MAX_BYTES = 64 << 20
"""Maximum size of a file, in bytes."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""Byte order marks. Each mark precedes any shorter mark that is its prefix."""

_FALLBACK = "cp1252"
_SAMPLE_BYTES = 4_096
STDIN = "standard input"


class Document(NamedTuple):
    """A file's text, its name for messages, and its encoding unless that is UTF-8."""

    name: str
    text: str
    encoding: str = ""

    @property
    def stem(self) -> str:
        return os.path.splitext(os.path.basename(self.name))[0]

    @property
    def suffix(self) -> str:
        return os.path.splitext(self.name)[1].lower()


def read_file(path: str) -> Document:
    """Read a file, or standard input for `-`.

    Raises:
        FormatError: The input isn't a regular file, is too large, or isn't text.
        OSError: The input can't be read.
    """
    if path == "-":
        return decode(sys.stdin.buffer.read(MAX_BYTES + 1), STDIN)
    # Without O_NONBLOCK, opening a named pipe would block.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise FormatError("not a regular file", path)
        if status.st_size > MAX_BYTES:
            raise FormatError(
                f"{status.st_size >> 20} MiB is too large; the limit is {MAX_BYTES >> 20} MiB; split the file", path
            )
        return decode(file.read(MAX_BYTES + 1), path)


def decode(data: bytes, name: str) -> Document:
    """Decode by the byte order mark. Without a mark, try UTF-16, UTF-8 and Windows-1252.

    Raises:
        FormatError: The data is too large, truncated within a character, or binary.
    """
    if len(data) > MAX_BYTES:
        raise FormatError(f"larger than the limit of {MAX_BYTES >> 20} MiB; split the file", name)
    encoding, start = find_encoding(data)
    try:
        text = data[start:].decode(encoding, "replace" if encoding == _FALLBACK else "strict")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, start + error.start) + 1
        raise FormatError(f"not {encoding.upper()}: {error.reason}", name, line) from error
    if encoding == _FALLBACK:
        at = _find_invalid(data)
        line = data.count(b"\n", 0, at) + 1
        encoding = f"Windows-1252, since byte 0x{data[at]:02x} in line {line} is not UTF-8"
    if "\0" in text:
        raise FormatError("not text: it contains NUL bytes", name, text.count("\n", 0, text.index("\0")) + 1)
    text = text.removeprefix("\ufeff")  # Converting a file's encoding can leave a second mark.
    return Document(name, text.replace("\r\n", "\n").replace("\r", "\n"), "" if encoding == "utf-8" else encoding)


def find_encoding(data: bytes) -> tuple[str, int]:
    """Return the encoding of a text, and the length of its byte order mark."""
    if mark := next(((encoding, len(bom)) for bom, encoding in _MARKS if data.startswith(bom)), None):
        return mark
    encoding = _detect_utf16(data[:_SAMPLE_BYTES]) or "utf-8"
    return _FALLBACK if encoding == "utf-8" and _find_invalid(data) >= 0 else encoding, 0


def _find_invalid(data: bytes) -> int:
    """Return the position of the first byte that isn't UTF-8, or -1."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start
    return -1


def _detect_utf16(sample: bytes) -> str:
    """Detect UTF-16 without a byte order mark, in which every other byte of most text is zero."""
    even, odd = sample[::2], sample[1::2]
    if odd.count(0) > len(odd) // 2 and not even.count(0):
        return "utf-16-le"
    return "utf-16-be" if even.count(0) > len(even) // 2 and not odd.count(0) else ""


def parse_json(document: Document) -> Any:
    return _load_json(document.text, document.name, 0)


def parse_json_lines(document: Document) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of JSON lines with their line numbers, or the objects of a JSON list with 0 as line number.

    A comma at the end of a line is accepted, since some programs write a list without its brackets.

    Raises:
        FormatError: A line isn't a complete JSON object.
    """
    text = document.text.lstrip()
    if text.startswith("["):
        for index, value in enumerate(expect_list(parse_json(document), "the file", document.name)):
            yield 0, expect_object(value, f"[{index}]", document.name)
        return
    for number, line in enumerate(document.text.split("\n"), 1):
        if line.strip():
            yield (
                number,
                expect_object(_load_json(line.rstrip().rstrip(","), document.name, number), "", document.name, number),
            )


def _load_json(text: str, name: str, line: int) -> Any:
    try:
        return json.loads(text, parse_constant=_reject_constant)
    except json.JSONDecodeError as error:
        where = line or error.lineno
        is_truncated = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")
        ends = "; the file is truncated" if is_truncated else ""
        raise FormatError(f"not JSON: {error.msg}{ends} (column {error.colno})", name, where) from error
    except RecursionError as error:
        raise FormatError("nested too deeply", name, line) from error
    except ValueError as error:
        raise FormatError(f"not JSON: {error}", name, line) from error


def _reject_constant(name: str) -> float:
    raise ValueError(f"{name} isn't JSON")


def expect_object(value: Any, where: str, name: str, line: int = 0) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FormatError(f"{where + ': ' if where else ''}expected an object", name, line)
    return cast("dict[str, Any]", value)


def to_object(value: Any) -> dict[str, Any]:
    """Return `value` if it is a JSON object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def expect_list(value: Any, where: str, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise FormatError(f"{where}: expected a list", name)
    return cast("list[Any]", value)


def to_list(value: Any) -> list[Any]:
    """Return a JSON list, or a list that contains the value; null becomes an empty list."""
    return cast("list[Any]", value) if isinstance(value, list) else [] if value is None else [value]


def to_text(value: Any) -> str:
    """Convert a JSON value to text. Null becomes an empty string, a number its digits, and a list its joined items."""
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, list):
        return ", ".join(filter(None, map(to_text, cast("list[Any]", value))))
    return value if isinstance(value, str) else str(value) if isinstance(value, int | float) else json.dumps(value)


def to_texts(value: Any) -> list[str]:
    """Convert a list or comma-separated words to strings. Objects become their `name`, `login`, `title` or `id`."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    texts: list[str] = []
    for item in cast("list[Any]", value) if isinstance(value, list) else []:
        record = cast("dict[str, Any]", item) if isinstance(item, dict) else {"name": item}
        text = to_text(next((record[key] for key in ("name", "login", "title", "id") if record.get(key)), None))
        texts += [text] if text else []
    return texts
