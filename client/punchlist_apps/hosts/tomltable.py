"""Edits one table of a TOML file in place: all other bytes are kept. Pure functions.

Each result is parsed and compared with the expected value. If a table can't be changed safely as text, the file is
rejected.
"""

import json
import re
import tomllib
from collections.abc import Sequence
from typing import Any, cast

_LINE = re.compile(r"at line (\d+)")


class TomlError(Exception):
    """A file that can't be parsed or changed safely. `line` starts at 1; 0 if unknown."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


def put(text: str, path: Sequence[str], values: dict[str, Any]) -> str:
    """Return the text with the table at `path` replaced by these strings, booleans, numbers and lists of strings.

    Raises:
        TomlError: The file can't be parsed, or the table is written in a way that can't be changed.
    """
    document = _load(text)
    if _get_at(document, path) == values:
        return text
    bare = remove(text, path)
    gap = "" if not bare or bare.endswith("\n\n") else "\n" if bare.endswith("\n") else "\n\n"
    lines = [f"[{'.'.join(path)}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
    changed = bare + gap + "\n".join(lines) + "\n"
    return _verify(changed, _replace_table(document, path, values))


def remove(text: str, path: Sequence[str]) -> str:
    """Return the text without the table at `path` and its subtables."""
    document = _load(text)
    if _get_at(document, path) is None:
        return text
    name = r"\s*\.\s*".join(f"(?:{re.escape(key)}|\"{re.escape(key)}\"|'{re.escape(key)}')" for key in path)
    header = re.compile(rf"\s*\[\s*{name}\s*(?:\.[^\]]*)?\]\s*(?:#.*)?$")
    lines: list[str] = []
    pending: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            was, inside = inside, bool(header.match(line.rstrip("\r\n")))
            if inside and not was and lines and not lines[-1].strip():
                lines.pop()  # remove the empty line before the table
        if not inside:
            lines += [*pending, line]
            pending = []
        elif line.strip() and not line.lstrip().startswith("#"):
            pending = []
        else:
            pending.append(line)  # comments between two tables belong to the second table
    return _verify("".join([*lines, *pending]), _replace_table(document, path, None))


def _load(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = _LINE.search(str(error))
        raise TomlError(f"not TOML: {error}", int(line[1]) if line else 0) from error


def _verify(text: str, expected: dict[str, Any]) -> str:
    try:
        is_expected = _prune(tomllib.loads(text)) == _prune(expected)
    except tomllib.TOMLDecodeError:
        is_expected = False
    if not is_expected:
        raise TomlError("the table is written in a way that can't be changed safely; change it by hand")
    return text


def _get_at(document: Any, path: Sequence[str]) -> Any:
    for key in path:
        document = _as_table(document).get(key)
    return document


def _as_table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _replace_table(document: dict[str, Any], path: Sequence[str], values: dict[str, Any] | None) -> dict[str, Any]:
    key, *rest = path
    inner = _replace_table(_as_table(document.get(key)), rest, values) if rest else values
    return {**{name: value for name, value in document.items() if name != key}, **({key: inner} if inner else {})}


def _prune(value: Any) -> Any:
    """Return the value without empty tables, which a removal may leave."""
    if not isinstance(value, dict):
        return value
    inner = {key: _prune(item) for key, item in _as_table(value).items()}
    return {key: item for key, item in inner.items() if item != {}}
