"""One table of a TOML file, changed in place: everything else keeps its bytes. Pure.

Every result is read back and compared with what it should mean; a file in which the table can't be changed safely as
text is refused instead.
"""

import json
import re
import tomllib
from collections.abc import Sequence
from typing import Any, cast

_LINE = re.compile(r"at line (\d+)")


class TomlError(Exception):
    """A file that can't be read, or not changed safely. `line` counts from 1; 0: unknown."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


def put(text: str, path: Sequence[str], values: dict[str, Any]) -> str:
    """The text with the table at `path` holding exactly these strings, booleans and lists of strings.

    Raises:
        TomlError: The file can't be read, or the table is written in a way that can't be changed.
    """
    whole = _load(text)
    if _at(whole, path) == values:
        return text
    bare = remove(text, path)
    gap = "" if not bare or bare.endswith("\n\n") else "\n" if bare.endswith("\n") else "\n\n"
    lines = [f"[{'.'.join(path)}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
    changed = bare + gap + "\n".join(lines) + "\n"
    return _verified(changed, _with(whole, path, values))


def remove(text: str, path: Sequence[str]) -> str:
    """The text without the table at `path` and the tables inside it."""
    whole = _load(text)
    if _at(whole, path) is None:
        return text
    name = r"\s*\.\s*".join(f"(?:{re.escape(key)}|\"{re.escape(key)}\"|'{re.escape(key)}')" for key in path)
    header = re.compile(rf"\s*\[\s*{name}\s*(?:\.[^\]]*)?\]\s*(?:#.*)?$")
    kept: list[str] = []
    behind: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            was, inside = inside, bool(header.match(line.rstrip("\r\n")))
            if inside and not was and kept and not kept[-1].strip():
                kept.pop()  # the empty line in front of the table
        if not inside:
            kept += [*behind, line]
            behind = []
        elif line.strip() and not line.lstrip().startswith("#"):
            behind = []
        else:
            behind.append(line)  # what stands between two tables belongs to the next one
    return _verified("".join([*kept, *behind]), _with(whole, path, None))


def _load(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _LINE.search(str(error))
        raise TomlError(f"not TOML: {error}", int(found[1]) if found else 0) from error


def _verified(text: str, meaning: dict[str, Any]) -> str:
    try:
        right = _pruned(tomllib.loads(text)) == _pruned(meaning)
    except tomllib.TOMLDecodeError:
        right = False
    if not right:
        raise TomlError("the table is written in a way that can't be changed safely; change it by hand")
    return text


def _at(whole: Any, path: Sequence[str]) -> Any:
    for key in path:
        whole = _table(whole).get(key)
    return whole


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _with(whole: dict[str, Any], path: Sequence[str], values: dict[str, Any] | None) -> dict[str, Any]:
    key, *rest = path
    inner = _with(_table(whole.get(key)), rest, values) if rest else values
    return {**{name: value for name, value in whole.items() if name != key}, **({key: inner} if inner else {})}


def _pruned(value: Any) -> Any:
    """The value without empty tables, which a removal may or may not leave behind."""
    if not isinstance(value, dict):
        return value
    inner = {key: _pruned(one) for key, one in _table(value).items()}
    return {key: one for key, one in inner.items() if one != {}}
