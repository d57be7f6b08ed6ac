"""JSON with comments, changed in place: everything that is not ours keeps its bytes, comments and commas included.

Pure. A text is parsed into nodes that know where they stand; a change is an insertion or a removal of text.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

_DECODER = json.JSONDecoder()
_MAX_DEPTH = 100
_SPACE = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*|/\*(?:.*?\*/|.*)", re.DOTALL)
_TAIL = re.compile(r"(?:[ \t]*(?://[^\n]*|/\*.*?\*/))*", re.DOTALL)
_NEXT_LINE = re.compile(r"[ \t\r]*\n")
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null")


class JsoncError(Exception):
    """A text that can't be read, or does not have the shape that a change needs. `line` counts from 1; 0: unknown."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


class Member(NamedTuple):
    """A member of an object, or (with an empty key) an item of an array; `comma` is the offset of the one behind it."""

    key: str
    start: int
    node: "Node"
    comma: int | None


class Node(NamedTuple):
    """A value and where it stands."""

    value: Any
    start: int
    end: int
    members: tuple[Member, ...] = ()

    def member(self, key: str) -> Member | None:
        return next((member for member in self.members if member.key == key), None)


def parse(text: str) -> Node:
    """The value of a text; comments and trailing commas are allowed, and an empty text counts as an empty object.

    Raises:
        JsoncError: It is something else; tells the line.
    """
    reader = _Reader(text)
    start = reader.skip(0)
    if start == len(text):
        return Node({}, start, start)
    node = reader.value(start, 0)
    end = reader.skip(node.end)
    if end != len(text):
        raise reader.error("there is more after the end", end)
    return node


def put(text: str, path: Sequence[str], value: Any) -> str:
    """The text with the member at `path` set to `value`; objects on the way are made.

    Raises:
        JsoncError: What stands on the way is no object.
    """
    root = parse(text)
    if root.start == root.end:
        return text + json.dumps(_nested(path, value), indent=2, ensure_ascii=False) + "\n"
    node, depth = _descend(text, root, path)
    if depth == len(path):
        if node.value == value:
            return text
        return text[: node.start] + _dump(text, value, _indent_of_line(text, node.start)) + text[node.end :]
    _expect(text, node, dict, path[:depth])
    return _insert(text, node, path[depth], _nested(path[depth + 1 :], value))


def append(text: str, path: Sequence[str], value: Any) -> str:
    """The text with `value` as an item of the array at `path`, unless it is one already; the array is made.

    Raises:
        JsoncError: What stands there is no array, or on the way no object.
    """
    root = parse(text)
    node, depth = _descend(text, root, path)
    if depth < len(path) or root.start == root.end:
        return put(text, path, [value])
    _expect(text, node, list, path)
    return text if value in node.value else _insert(text, node, "", value)


def remove(text: str, path: Sequence[str]) -> str:
    """The text without the member at `path`; unchanged if there is none."""
    parent, depth = _descend(text, parse(text), path[:-1])
    member = parent.member(path[-1]) if depth == len(path) - 1 else None
    return text if member is None else _cut(text, parent, member)


def remove_items(text: str, path: Sequence[str], unwanted: Callable[[Any], bool]) -> str:
    """The text without the unwanted items of the array at `path`."""
    while True:
        node, depth = _descend(text, parse(text), path)
        is_array = depth == len(path) and isinstance(node.value, list)
        found = next((item for item in node.members if unwanted(item.node.value)), None) if is_array else None
        if found is None:
            return text
        text = _cut(text, node, found)


def find(text: str, path: Sequence[str]) -> Any:
    node, depth = _descend(text, parse(text), path)
    return node.value if depth == len(path) else None


def _descend(text: str, node: Node, path: Sequence[str]) -> tuple[Node, int]:
    """The deepest node there is on the way, and how many steps lead to it."""
    for depth, key in enumerate(path):
        member = node.member(key)
        if member is None or not isinstance(node.value, dict):
            _expect(text, node, dict, path[:depth])
            return node, depth
        node = member.node
    return node, len(path)


def _expect(text: str, node: Node, kind: type, path: Sequence[str]) -> None:
    if not isinstance(node.value, kind):
        what = "an object" if kind is dict else "an array"
        line = text.count("\n", 0, node.start) + 1
        raise JsoncError(f"{'.'.join(path) or 'the file'}: expected {what}", line)


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _insert(text: str, parent: Node, key: str, value: Any) -> str:
    named = f"{json.dumps(key, ensure_ascii=False)}: " if isinstance(parent.value, dict) else ""
    outer = _indent_of_line(text, parent.start)
    if not parent.members:
        inner = outer + _unit(text)
        rest = "" if "\n" in text[parent.start : parent.end] else "\n" + outer
        at = parent.start + 1
        return f"{text[:at]}\n{inner}{named}{_dump(text, value, inner)}{rest}{text[at:]}"
    first, last = parent.members[0], parent.members[-1]
    end = last.node.end
    behind, before, after = (end, ",", "") if last.comma is None else (last.comma + 1, "", ",")
    # A comment on the last member's line is about that member and stays with it.
    found = _TAIL.match(text, behind)
    at = found.end() if found else behind
    is_inline = "\n" not in text[parent.start : first.start]
    if is_inline and at == behind:
        new = f" {named}{json.dumps(value, ensure_ascii=False)}{after}"
    else:
        inner = outer + _unit(text) if is_inline else _indent_of_line(text, first.start)
        new = f"\n{inner}{named}{_dump(text, value, inner)}{after}"
    return text[:end] + before + text[end:at] + new + text[at:]


def _cut(text: str, parent: Node, member: Member) -> str:
    index = parent.members.index(member)
    before = parent.members[index - 1] if index else None
    begin = len(text[: member.start].rstrip(" \t\r\n"))
    rest = text[member.node.end :]
    if member.comma is not None:
        rest = text[member.node.end : member.comma] + text[member.comma + 1 :]
    kept = text[:begin]
    if member.comma is None and before is not None and before.comma is not None:
        kept = text[: before.comma] + text[before.comma + 1 : begin]
    comments = _COMMENT.findall(text, before.node.end if before else parent.start + 1, begin)
    if comments and comments[-1].startswith("//") and kept.endswith(comments[-1]) and not _NEXT_LINE.match(rest):
        kept += "\n"  # what follows must not become a part of the comment
    return kept + rest


def _dump(text: str, value: Any, indent: str) -> str:
    lines = json.dumps(value, indent=_unit(text), ensure_ascii=False).split("\n")
    return f"\n{indent}".join(lines)


def _unit(text: str) -> str:
    found = re.search(r"[\[{][^\n\[{]*+\n([ \t]++)\S", text)
    return found[1] if found else "  "


def _indent_of_line(text: str, offset: int) -> str:
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    return line[: len(line) - len(line.lstrip(" \t"))]


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def error(self, message: str, offset: int) -> JsoncError:
        return JsoncError(message, self.text.count("\n", 0, offset) + 1)

    def skip(self, offset: int) -> int:
        found = _SPACE.match(self.text, offset)
        return found.end() if found else offset

    def value(self, offset: int, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise self.error("nested too deeply", offset)
        char = self.text[offset : offset + 1]
        if char in ("{", "["):
            return self._container(offset, depth, "}" if char == "{" else "]")
        if char == '"':
            value, end = self._string(offset)
            return Node(value, offset, end)
        found = _SCALAR.match(self.text, offset)
        if not found:
            raise self.error("expected a value", offset)
        return Node(json.loads(found[0]), offset, found.end())

    def _string(self, offset: int) -> tuple[str, int]:
        try:
            return _DECODER.raw_decode(self.text, offset)
        except json.JSONDecodeError as error:
            raise JsoncError(error.msg, error.lineno) from error

    def _container(self, start: int, depth: int, close: str) -> Node:
        members: list[Member] = []
        at = self.skip(start + 1)
        while self.text[at : at + 1] != close:
            if members and members[-1].comma is None:
                raise self.error(f"expected , or {close}", at)
            member = self._member(at, depth, named=close == "}")
            if close == "}" and any(one.key == member.key for one in members):
                raise self.error(f"{member.key!r} appears twice", at)
            at = self.skip(member.node.end)
            if self.text[at : at + 1] == ",":
                member = member._replace(comma=at)
                at = self.skip(at + 1)
            members.append(member)
        values = {one.key: one.node.value for one in members} if close == "}" else [one.node.value for one in members]
        return Node(values, start, at + 1, tuple(members))

    def _member(self, at: int, depth: int, *, named: bool) -> Member:
        if not named:
            return Member("", at, self.value(at, depth + 1), None)
        if self.text[at : at + 1] != '"':
            raise self.error("expected a name in quotes", at)
        key, end = self._string(at)
        colon = self.skip(end)
        if self.text[colon : colon + 1] != ":":
            raise self.error("expected :", colon)
        return Member(key, at, self.value(self.skip(colon + 1), depth + 1), None)
