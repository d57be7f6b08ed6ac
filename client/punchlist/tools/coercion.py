"""Parses tool arguments leniently: accepts similar names, lists and integers as text, and empty arguments.

Only the form of arguments is repaired. Missing, unknown and mistyped arguments raise a problem that names the argument
and the expected value.
"""

import json
import re
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from typing import Any, cast

import msgspec
from msgspec.inspect import (
    BoolType,
    DictType,
    Field,
    IntType,
    ListType,
    LiteralType,
    Metadata,
    NoneType,
    StrType,
    StructType,
    Type,
    UnionType,
    VarTupleType,
    type_info,
)

from punchlist.tools.model import CLEARS, HIDDEN, Arguments, Problem, Tool, order_choices
from punchlist.tools.refusals import simplify

_TASK_NAMES = frozenset({"id", "task", "taskid", "tasknumber", "todoid", "todotaskid"})
"""Names that models use for the argument with a task's id, normalized."""

_ID_NAMES = _TASK_NAMES | {"parent"}
"""Normalized names of arguments with one task's id."""

_LIST_TYPES = (ListType, VarTupleType)


def parse_arguments(kind: type[Arguments], arguments: object) -> Any:
    """Return the arguments of a tool.

    Args:
        arguments: The arguments from the model: an object, its JSON text, or None.

    Raises:
        Problem: An argument is missing, unknown or invalid.
    """
    values = _coerce_object(kind, _parse_body(arguments))
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise _explain_conversion(str(error)) from None


_COMPLAINT = re.compile(r"Expected (.*?)(?:, got `([^`]*)`)?(?: - at `\$\.?([^`]*)`)?", re.DOTALL)


def _explain_conversion(text: str) -> Problem:
    """Convert the message of a validation error."""
    match = _COMPLAINT.fullmatch(text)
    if match is None or not match[3]:
        return _invalid(f"invalid arguments: {text}")
    got = f", not {simplify(match[2])}" if match[2] else ""
    return _invalid(f"{match[3]} is wrong: expected {simplify(match[1])}{got}", match[3])


def find_user(tool: Tool, arguments: object) -> str | None:
    """Return the `user_id` in a call's arguments; None if the tool doesn't take it, or the arguments are invalid."""
    try:
        return getattr(parse_arguments(tool.arguments, arguments), "user_id", None)
    except Problem:
        return None


def _parse_body(body: object) -> dict[str, Any]:
    if isinstance(body, str):
        body = _parse_json(body)
    body = _sanitize(body)
    if body in (None, "", []):
        return {}
    if not isinstance(body, dict):
        raise _invalid("the arguments must be a JSON object")
    return cast("dict[str, Any]", body)


def _sanitize(value: object) -> object:
    """Return the value with lone surrogates replaced, because JSON in UTF-8 can't contain them."""
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        text = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise _invalid("the arguments must be a JSON object") from None
    return value


def _coerce_object(kind: type[Any], members: dict[str, Any]) -> dict[str, Any]:
    fields = _get_fields(kind)
    values: dict[str, Any] = {}
    for name in sorted(members, key=lambda name: name not in fields):  # exact names take precedence over similar ones
        field = fields.get(name) or _match_field(fields, name)
        if field.encode_name in values or members[name] is None:
            continue
        value = _coerce(field.type, field.encode_name, members[name])
        if value is not None and (value != "" or _is_marked(field.type, CLEARS)):
            values[field.encode_name] = value
    for name, field in fields.items():
        value = values.get(name, "")
        if field.required and isinstance(value, str) and not value.strip():
            raise Problem("invalid_arguments", f"{name} is required", {"field": name})
    return values


def list_argument_names(kind: type[Arguments]) -> frozenset[str]:
    """Return the names of all arguments, including those of structs inside them."""
    names: set[str] = set()
    kinds: list[Any] = [kind]
    while kinds:
        for field in _get_fields(kinds.pop()).values():
            names.add(field.encode_name)
            plain = _strip_type(field.type)
            inner = _strip_type(plain.item_type) if isinstance(plain, _LIST_TYPES) else plain
            kinds += [inner.cls] if isinstance(inner, StructType) else []
    return frozenset(names)


@cache
def _get_fields(kind: type[Any]) -> dict[str, Field]:
    info = type_info(kind)
    assert isinstance(info, StructType), "arguments are structs"
    return {field.encode_name: field for field in info.fields}


def _match_field(fields: dict[str, Field], name: str) -> Field:
    normalized = _normalize(name)
    for field in fields.values():
        field_name = _normalize(field.encode_name)
        is_task = field_name in _TASK_NAMES and normalized in _TASK_NAMES
        if is_task or normalized in (field_name, field_name + "json"):
            return field
    advertised = [field.encode_name for field in fields.values() if not _is_marked(field.type, HIDDEN)]
    close = get_close_matches(name, advertised, n=1)
    hint = f"; did you mean {close[0]}?" if close else f"; known are: {', '.join(advertised) or 'none'}"
    raise Problem("invalid_arguments", f"unknown argument: {name[:60]}{hint}", {"field": name[:60]})


def _is_marked(kind: Type, mark: str) -> bool:
    extra: dict[str, Any] | None = cast(Any, kind).extra_json_schema if isinstance(kind, Metadata) else None
    return bool(extra and extra.get(mark))


def _normalize(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _coerce(kind: Type, name: str, value: Any) -> Any:
    """Return the value in the form of its type, or unchanged if that fails; `msgspec.convert` reports the error."""
    plain = _strip_type(kind)
    coerce = next((coerce for types, coerce in _COERCIONS if isinstance(plain, types)), None)
    return coerce(plain, name, value) if coerce else value


def _strip_type(kind: Type) -> Type:
    """Return the type without annotations and null."""
    if isinstance(kind, Metadata):
        return _strip_type(kind.type)
    if isinstance(kind, UnionType):
        return _strip_type(next(option for option in kind.types if not isinstance(option, NoneType)))
    return kind


def _coerce_text(kind: Type, name: str, value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(int(value) if isinstance(value, float) and value.is_integer() else value)
    return _parse_id(value, name) if _normalize(name) in _ID_NAMES else value


def _parse_id(value: Any, name: str) -> str:
    """Return a task's id. Models may send `#3`."""
    if not isinstance(value, str):
        raise _invalid(f"{name} is wrong: expected the id of one task", name)
    return value.strip().removeprefix("#") or value


def _coerce_integer(kind: Type, name: str, value: Any) -> Any:
    if isinstance(value, str):
        value = value.strip().removeprefix("#")
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", value):
            raise _invalid(f"{name} must be an integer, not {value[:60]!r}", name)
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _coerce_choice(kind: Any, name: str, value: Any) -> Any:
    words = order_choices(kind.values)
    plain = str(value).strip().lower().replace("-", "_").replace(" ", "_")
    if plain in ("", *words):
        return plain
    options = ", ".join(words[:-1]) + f", or {words[-1]}"
    raise _invalid(f"invalid {name}: {str(value)[:60]} (must be {options})", name)


def _coerce_boolean(kind: Type, name: str, value: Any) -> Any:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    return words.get(value.strip().lower(), value) if isinstance(value, str) else value


def _coerce_mapping(kind: Type, name: str, value: Any) -> Any:
    return _parse_json(value) if isinstance(value, str) else value


def _coerce_list(kind: Any, name: str, value: Any) -> Any:
    item: Type = kind.item_type
    if isinstance(value, str):
        value = _parse_json_or_text(value, name)
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    if isinstance(_strip_type(item), StrType):
        return [_parse_id(_coerce_text(item, name, value), name) for value in values if value not in (None, "", {})]
    return [_coerce(item, f"{name}[{index}]", value) for index, value in enumerate(values)]


def _coerce_struct(kind: Any, name: str, value: Any) -> Any:
    if isinstance(value, str):
        parsed = _parse_json_or_text(value, name)
        # Text passed instead of a task is used as its title, which is the task's first member.
        value = cast(Any, parsed) if isinstance(parsed, dict) else {next(iter(_get_fields(kind.cls))): value}
    if not isinstance(value, dict):
        return value
    try:
        return _coerce_object(kind.cls, cast("dict[str, Any]", value))
    except Problem as problem:
        raise _invalid(f"{name}: {problem.text}", name) from None


_COERCIONS: tuple[tuple[Any, Callable[[Any, str, Any], Any]], ...] = (
    (StrType, _coerce_text),
    (IntType, _coerce_integer),
    (BoolType, _coerce_boolean),
    (LiteralType, _coerce_choice),
    (DictType, _coerce_mapping),
    (_LIST_TYPES, _coerce_list),
    (StructType, _coerce_struct),
)


_JSON_PREFIXES = ("[{", '["', "['", "[[", '{"', "{'")


def _parse_json_or_text(text: str, name: str) -> Any:
    value = _parse_json(text)
    if isinstance(value, str) and "".join(text[:80].split()).startswith(_JSON_PREFIXES):
        raise _invalid(f"{name} is not valid JSON: {text[:60]!r}; pass it as a value of the call, not as text", name)
    return value


def _parse_json(text: str) -> Any:
    """Return the JSON value in text, or the text itself if it isn't JSON."""
    if not text.strip():
        return ""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _invalid(text: str, name: str = "") -> Problem:
    return Problem("invalid_arguments", text, {"field": name} if name else None)
