"""Turns decoder errors into rejections that contain the field, the expected type and the closest known name.

The module is slow to import, so it is imported only for rejections.
"""

import difflib
import re
from collections.abc import Iterable
from typing import Any, cast

from msgspec import inspect

from punchlist_schemas.errors import Rejection
from punchlist_schemas.methods import METHODS
from punchlist_schemas.params import Params

_PATH = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]*)`")
_EXPECTED = re.compile(r"Expected (?P<expected>.*?)(?:, got `(?P<got>[^`]*)`)?", re.DOTALL)
_STEP = re.compile(r"\.([A-Za-z_]+)|\[[^\[\]]*\]")

_PLAIN = (
    (r"\bstr of length <= (\d+)", r"at most \1 characters"),
    (r"\bstr of length >= 1\b", "at least 1 character"),
    (r"\barray of length <= (\d+)", r"at most \1 entries"),
    (r"\barray of length >= 1\b", "at least 1 entry"),
    (r"\bstr\b", "string"),
    (r"\bint\b", "integer"),
)
"""Patterns in the decoder's messages, and their replacements in JSON terms."""

_LONGEST_NAME = 64
"""Maximum length of names in errors. Longer names are truncated, and not compared with known ones, because the cost of
a comparison is proportional to the product of both lengths."""

_WORDS: dict[type[inspect.Type], str] = {
    inspect.AnyType: "any JSON value",
    inspect.NoneType: "null",
    inspect.BoolType: "boolean",
    inspect.IntType: "integer",
    inspect.StrType: "string",
    inspect.DictType: "object",
    inspect.StructType: "object",
    inspect.VarTupleType: "array",
}


def unknown_method(name: str) -> Rejection:
    data: dict[str, Any] = {"method": name[:_LONGEST_NAME], **_nearest(name, METHODS)}
    hint = f"; did you mean {data['nearest']}?" if "nearest" in data else "; rpc.discover lists them all."
    return Rejection("method_not_found", "Unknown method" + hint, data)


def invalid_params(params: type[Params], complaint: str) -> Rejection:
    path = ""
    if at := _PATH.search(complaint):
        path, complaint = at["path"].removeprefix("."), complaint[: at.start()]
    if unknown := _UNKNOWN.fullmatch(complaint):
        return _unknown_field(params, path, unknown["name"])
    if missing := _MISSING.fullmatch(complaint):
        path = f"{path}.{missing['name']}" if path else missing["name"]
        return _rejection(path, _describe(_type_at(params, path)), "is missing")
    return _rejection(path, _describe_expected(params, path, complaint), "is wrong")


def _rejection(field: str, expected: str, fault: str) -> Rejection:
    data = {"field": field or "params", "expected": expected}
    return Rejection("invalid_params", f"{field or 'params'} {fault}: expected {expected}.", data)


def _unknown_field(params: type[Params], path: str, name: str) -> Rejection:
    structs = _structs(_type_at(params, path))
    known = list(dict.fromkeys(field.encode_name for owner in structs for field in owner.fields))
    near = _nearest(name, known)
    cut = name[:_LONGEST_NAME]
    field = f"{path}.{cut}" if path else cut
    if near:
        hint = f"did you mean {near['nearest']}?"
    else:
        hint = "known are " + ", ".join(known) + "." if known else "none is allowed here."
    data: dict[str, Any] = {"field": field, "expected": "a known name", **near}
    return Rejection("invalid_params", f"Unknown parameter; {hint}", data)


def _describe_expected(params: type[Params], path: str, complaint: str) -> str:
    match = _EXPECTED.fullmatch(complaint)
    if match is None or "matching regex" in complaint or not path:
        return _describe(_type_at(params, path))
    expected = match["expected"].replace("`", "")
    for pattern, words in _PLAIN:
        expected = re.sub(pattern, words, expected)
    return expected


def _nearest(name: str, known: Iterable[str]) -> dict[str, str]:
    if len(name) > _LONGEST_NAME:
        return {}
    matches = difflib.get_close_matches(name, known, 1)
    return {"nearest": matches[0]} if matches else {}


def _type_at(params: type[Params], path: str) -> inspect.Type:
    """Return the declared type at a path such as `tasks[3].title`, or of its longest declared prefix."""
    kind: inspect.Type = inspect.type_info(params)
    for step in _STEP.finditer("." + path if path and not path.startswith("[") else path):
        inner = _member(kind, step[1])
        if inner is None:
            break
        kind = inner
    return kind


def _member(kind: inspect.Type, name: str | None) -> inspect.Type | None:
    if name is not None and (tags := [struct.tag for struct in _structs(kind) if struct.tag_field == name]):
        return inspect.LiteralType(tuple(tag for tag in tags if tag is not None))
    for choice in _choices(kind):
        if isinstance(choice, inspect.VarTupleType) and name is None:
            return choice.item_type
        if isinstance(choice, inspect.StructType):
            for field in choice.fields:
                if field.encode_name == name:
                    return field.type
    return None


def _choices(kind: inspect.Type) -> list[inspect.Type]:
    if isinstance(kind, inspect.Metadata):
        return _choices(kind.type)
    if isinstance(kind, inspect.UnionType):
        return [choice for member in kind.types for choice in _choices(member)]
    return [kind]


def _structs(kind: inspect.Type) -> list[inspect.StructType]:
    return [choice for choice in _choices(kind) if isinstance(choice, inspect.StructType)]


def _describe(kind: inspect.Type) -> str:
    if isinstance(kind, inspect.Metadata):
        schema = cast(dict[str, str], kind.extra_json_schema or {})
        return schema.get("description") or _describe(kind.type)
    if isinstance(kind, inspect.UnionType):
        return " or ".join(_describe(choice) for choice in kind.types)
    if isinstance(kind, inspect.LiteralType):
        return "one of " + ", ".join(str(value) for value in kind.values)
    return _WORDS[type(kind)]
