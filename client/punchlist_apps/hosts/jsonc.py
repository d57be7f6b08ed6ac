"""Edits JSON with comments in place: all other bytes are kept, including comments and commas.

Pure functions. The text is parsed into nodes with offsets; a change inserts or removes text.
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
    """Text that can't be parsed, or a path that leads to a value of another type. `line` starts at 1; 0 if unknown."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


class Member(NamedTuple):
    """A member of an object, or an item of an array; the key of an item is empty.

    `comma` is the offset of the comma after it.
    """

    key: str
    start: int
    node: "Node"
    comma: int | None


class Node(NamedTuple):
    """A value with its offsets."""

    value: Any
    start: int
    end: int
    members: tuple[Member, ...] = ()

    def member(self, key: str) -> Member | None:
        return next((member for member in self.members if member.key == key), None)


def parse(text: str) -> Node:
    """Parse JSON with comments and trailing commas. Empty text is parsed as an empty object.

    Raises:
        JsoncError: The text is invalid; the error contains the line.
    """
    parser = _Parser(text)
    start = parser.skip_space(0)
    if start == len(text):
        return Node({}, start, start)
    node = parser.parse_value(start, 0)
    end = parser.skip_space(node.end)
    if end != len(text):
        raise parser.build_error("unexpected text after the end", end)
    return node


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with the member at `path` set to `value`. Missing objects on the path are created.

    Raises:
        JsoncError: A value on the path has another type.
    """
    root = parse(text)
    if root.start == root.end:
        return text + json.dumps(_nest(path, value), indent=2, ensure_ascii=False) + "\n"
    node, depth = _descend(text, root, path)
    if depth == len(path):
        if node.value == value:
            return text
        return text[: node.start] + _dump(text, value, _get_line_indent(text, node.start)) + text[node.end :]
    _expect(text, node, dict, path[:depth])
    return _insert(text, node, path[depth], _nest(path[depth + 1 :], value))


def append(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with `value` added to the array at `path`. A missing array is created.

    Raises:
        JsoncError: A value on the path or at its end has another type.
    """
    root = parse(text)
    node, depth = _descend(text, root, path)
    if depth < len(path) or root.start == root.end:
        return put(text, path, [value])
    _expect(text, node, list, path)
    return text if value in node.value else _insert(text, node, "", value)


def remove(text: str, path: Sequence[str]) -> str:
    """Return the text without the member at `path`, which may be missing."""
    parent, depth = _descend(text, parse(text), path[:-1])
    member = parent.member(path[-1]) if depth == len(path) - 1 else None
    return text if member is None else _remove_member(text, parent, member)


def remove_items(text: str, path: Sequence[str], matches: Callable[[Any], bool]) -> str:
    """Return the text without the items of the array at `path` that match."""
    while True:
        node, depth = _descend(text, parse(text), path)
        is_array = depth == len(path) and isinstance(node.value, list)
        member = next((item for item in node.members if matches(item.node.value)), None) if is_array else None
        if member is None:
            return text
        text = _remove_member(text, node, member)


def find(text: str, path: Sequence[str]) -> Any:
    node, depth = _descend(text, parse(text), path)
    return node.value if depth == len(path) else None


def _descend(text: str, node: Node, path: Sequence[str]) -> tuple[Node, int]:
    """Return the deepest existing node on the path, and its depth."""
    for depth, key in enumerate(path):
        member = node.member(key)
        if member is None or not isinstance(node.value, dict):
            _expect(text, node, dict, path[:depth])
            return node, depth
        node = member.node
    return node, len(path)


def _expect(text: str, node: Node, kind: type, path: Sequence[str]) -> None:
    if not isinstance(node.value, kind):
        name = "an object" if kind is dict else "an array"
        line = text.count("\n", 0, node.start) + 1
        raise JsoncError(f"{'.'.join(path) or 'the file'}: expected {name}", line)


def _nest(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _insert(text: str, parent: Node, key: str, value: Any) -> str:
    label = f"{json.dumps(key, ensure_ascii=False)}: " if isinstance(parent.value, dict) else ""
    outer = _get_line_indent(text, parent.start)
    if not parent.members:
        inner = outer + _detect_indent(text)
        rest = "" if "\n" in text[parent.start : parent.end] else "\n" + outer
        at = parent.start + 1
        return f"{text[:at]}\n{inner}{label}{_dump(text, value, inner)}{rest}{text[at:]}"
    first, last = parent.members[0], parent.members[-1]
    end = last.node.end
    tail_start, before, after = (end, ",", "") if last.comma is None else (last.comma + 1, "", ",")
    # A comment on the last member's line belongs to that member.
    tail = _TAIL.match(text, tail_start)
    at = tail.end() if tail else tail_start
    is_inline = "\n" not in text[parent.start : first.start]
    if is_inline and at == tail_start:
        new = f" {label}{json.dumps(value, ensure_ascii=False)}{after}"
    else:
        inner = outer + _detect_indent(text) if is_inline else _get_line_indent(text, first.start)
        new = f"\n{inner}{label}{_dump(text, value, inner)}{after}"
    return text[:end] + before + text[end:at] + new + text[at:]


def _remove_member(text: str, parent: Node, member: Member) -> str:
    index = parent.members.index(member)
    before = parent.members[index - 1] if index else None
    begin = len(text[: member.start].rstrip(" \t\r\n"))
    rest = text[member.node.end :]
    if member.comma is not None:
        rest = text[member.node.end : member.comma] + text[member.comma + 1 :]
    head = text[:begin]
    if member.comma is None and before is not None and before.comma is not None:
        head = text[: before.comma] + text[before.comma + 1 : begin]
    comments = _COMMENT.findall(text, before.node.end if before else parent.start + 1, begin)
    if comments and comments[-1].startswith("//") and head.endswith(comments[-1]) and not _NEXT_LINE.match(rest):
        head += "\n"  # otherwise the rest of the text would become part of the comment
    return head + rest


def _dump(text: str, value: Any, indent: str) -> str:
    lines = json.dumps(value, indent=_detect_indent(text), ensure_ascii=False).split("\n")
    return f"\n{indent}".join(lines)


def _detect_indent(text: str) -> str:
    match = re.search(r"[\[{][^\n\[{]*+\n([ \t]++)\S", text)
    return match[1] if match else "  "


def _get_line_indent(text: str, offset: int) -> str:
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    return line[: len(line) - len(line.lstrip(" \t"))]


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text

    def build_error(self, message: str, offset: int) -> JsoncError:
        return JsoncError(message, self.text.count("\n", 0, offset) + 1)

    def skip_space(self, offset: int) -> int:
        match = _SPACE.match(self.text, offset)
        return match.end() if match else offset

    def parse_value(self, offset: int, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise self.build_error("nested too deeply", offset)
        char = self.text[offset : offset + 1]
        if char in ("{", "["):
            return self._parse_container(offset, depth, "}" if char == "{" else "]")
        if char == '"':
            value, end = self._parse_string(offset)
            return Node(value, offset, end)
        scalar = _SCALAR.match(self.text, offset)
        if not scalar:
            raise self.build_error("expected a value", offset)
        return Node(json.loads(scalar[0]), offset, scalar.end())

    def _parse_string(self, offset: int) -> tuple[str, int]:
        try:
            return _DECODER.raw_decode(self.text, offset)
        except json.JSONDecodeError as error:
            raise JsoncError(error.msg, error.lineno) from error

    def _parse_container(self, start: int, depth: int, close: str) -> Node:
        members: list[Member] = []
        at = self.skip_space(start + 1)
        while self.text[at : at + 1] != close:
            if members and members[-1].comma is None:
                raise self.build_error(f"expected , or {close}", at)
            member = self._parse_member(at, depth, named=close == "}")
            if close == "}" and any(other.key == member.key for other in members):
                raise self.build_error(f"{member.key!r} appears twice", at)
            at = self.skip_space(member.node.end)
            if self.text[at : at + 1] == ",":
                member = member._replace(comma=at)
                at = self.skip_space(at + 1)
            members.append(member)
        is_object = close == "}"
        value = {item.key: item.node.value for item in members} if is_object else [item.node.value for item in members]
        return Node(value, start, at + 1, tuple(members))

    def _parse_member(self, at: int, depth: int, *, named: bool) -> Member:
        if not named:
            return Member("", at, self.parse_value(at, depth + 1), None)
        if self.text[at : at + 1] != '"':
            raise self.build_error("expected a name in quotes", at)
        key, end = self._parse_string(at)
        colon = self.skip_space(end)
        if self.text[colon : colon + 1] != ":":
            raise self.build_error("expected :", colon)
        return Member(key, at, self.parse_value(self.skip_space(colon + 1), depth + 1), None)
