"""A file's text: read without blocking, decoded from what people's programs write, parsed as JSON with line numbers."""

import codecs
import json
import os
import stat
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from punchlist_apps.files.importers.wrong import FormatError

MAX_BYTES = 64 << 20
"""Largest file that is read, in bytes."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""Byte order marks, the longer ones before those that they begin with."""

_SAMPLE = 4_096
_STDIN = "standard input"


class Document(NamedTuple):
    """A text, the name to use for it in messages, and how it was decoded if not as UTF-8."""

    name: str
    text: str
    encoding: str = ""

    @property
    def stem(self) -> str:
        return os.path.splitext(os.path.basename(self.name))[0]

    @property
    def suffix(self) -> str:
        return os.path.splitext(self.name)[1].lower()


def read(path: str) -> Document:
    """A file, or with `-` standard input.

    Raises:
        FormatError: It is no regular file, too large, or no text.
        OSError: It can't be read.
    """
    if path == "-":
        return decoded(sys.stdin.buffer.read(MAX_BYTES + 1), _STDIN)
    # Not blocking: opening a named pipe must not hang the import.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise FormatError("not a regular file", path)
        if found.st_size > MAX_BYTES:
            raise FormatError(f"{found.st_size >> 20} MiB; at most {MAX_BYTES >> 20} MiB are read at once", path)
        return decoded(file.read(MAX_BYTES + 1), path)


def decoded(data: bytes, name: str) -> Document:
    """Bytes as text: UTF-8, or what a byte order mark says, or UTF-16 without one, or else Windows-1252.

    Raises:
        FormatError: Too large, half a character in Unicode, or no text at all.
    """
    if len(data) > MAX_BYTES:
        raise FormatError(f"larger than {MAX_BYTES >> 20} MiB, which is the most that is read at once", name)
    encoding, start = next(((form, len(bom)) for bom, form in _MARKS if data.startswith(bom)), ("", 0))
    if not encoding:
        encoding = _utf16(data[:_SAMPLE]) or "utf-8"
    try:
        text = data[start:].decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, start + error.start) + 1
        if encoding != "utf-8" or start:
            raise FormatError(f"not {encoding.upper()}: {error.reason}", name, line) from error
        text = data.decode("cp1252", "replace")
        encoding = f"Windows-1252, since byte 0x{data[error.start]:02x} in line {line} is not UTF-8"
    if "\0" in text:
        raise FormatError("no text: it has NUL bytes", name, text.count("\n", 0, text.index("\0")) + 1)
    text = text.removeprefix("\ufeff")  # a second mark: a file with one that was converted
    return Document(name, text.replace("\r\n", "\n").replace("\r", "\n"), "" if encoding == "utf-8" else encoding)


def _utf16(sample: bytes) -> str:
    """UTF-16 without a mark: every other byte of plain text is zero."""
    even, odd = sample[::2], sample[1::2]
    if odd.count(0) > len(odd) // 2 and not even.count(0):
        return "utf-16-le"
    return "utf-16-be" if even.count(0) > len(even) // 2 and not odd.count(0) else ""


def json_value(document: Document) -> Any:
    """The JSON value of a document."""
    return _loaded(document.text, document.name, 0)


def json_lines(document: Document) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of JSON lines, or of one JSON list, with their lines (0 in a list that is not spread over lines).

    A comma at the end of a line is tolerated: some programs write a list without its brackets.

    Raises:
        FormatError: A line is no JSON object, also one that ends in the middle.
    """
    text = document.text.lstrip()
    if text.startswith("["):
        for index, value in enumerate(as_list(json_value(document), "the file", document.name)):
            yield 0, as_object(value, f"[{index}]", document.name)
        return
    for number, line in enumerate(document.text.split("\n"), 1):
        if line.strip():
            yield (
                number,
                as_object(_loaded(line.rstrip().rstrip(","), document.name, number), "", document.name, number),
            )


def _loaded(text: str, name: str, line: int) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        where = line or error.lineno
        cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")
        ends = "; the file ends in the middle" if cut else ""
        raise FormatError(f"not JSON: {error.msg}{ends} (column {error.colno})", name, where) from error
    except RecursionError as error:
        raise FormatError("nested too deeply", name, line) from error
    except ValueError as error:
        raise FormatError(f"not JSON: {error}", name, line) from error


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def as_object(value: Any, where: str, name: str, line: int = 0) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FormatError(f"{where + ': ' if where else ''}expected an object", name, line)
    return cast("dict[str, Any]", value)


def object_of(value: Any) -> dict[str, Any]:
    """`value` if it is a JSON object, otherwise an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: Any, where: str, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise FormatError(f"{where}: expected a list", name)
    return cast("list[Any]", value)


def text_of(value: Any) -> str:
    """A JSON value as text: null is empty, a number is its digits, a list of words is joined."""
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, list):
        return ", ".join(filter(None, map(text_of, cast("list[Any]", value))))
    return value if isinstance(value, str) else str(value) if isinstance(value, int | float) else json.dumps(value)


def texts_of(value: Any) -> list[str]:
    """A JSON list, or words with commas between, as texts; objects by their `name`, `login` or `title`."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    found: list[str] = []
    for one in cast("list[Any]", value) if isinstance(value, list) else []:
        named = cast("dict[str, Any]", one) if isinstance(one, dict) else {"name": one}
        text = text_of(next((named[key] for key in ("name", "login", "title", "id") if named.get(key)), None))
        found += [text] if text else []
    return found
