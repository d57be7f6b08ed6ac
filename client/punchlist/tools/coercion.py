"""Takes what a model sent for what it meant: near-miss names, lists and integers as text, empty bodies.

Only the form is repaired. What is missing, unknown or of the wrong kind is a problem that names the argument and what
would be right.
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

from punchlist.tools.model import CLEARS, HIDDEN, Arguments, Problem, Tool, choices
from punchlist.tools.refusals import plainly

_TASK_NAMES = frozenset({"id", "task", "taskid", "tasknumber", "todoid", "todotaskid"})
"""What models call the argument that names a task, without case and punctuation."""

_IDS = _TASK_NAMES | {"parent"}
"""Arguments that name one task."""

_LISTS = (ListType, VarTupleType)


def arguments_of(kind: type[Arguments], given: object) -> Any:
    """The arguments of a tool.

    Args:
        given: What the model sent: an object, JSON text of one, or nothing.

    Raises:
        Problem: They can't be meant for this tool; the text says which one and why.
    """
    values = _object(kind, _body(given))
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise _complaint(str(error)) from None


_COMPLAINT = re.compile(r"Expected (.*?)(?:, got `([^`]*)`)?(?: - at `\$\.?([^`]*)`)?", re.DOTALL)


def _complaint(text: str) -> Problem:
    """What the conversion said, about the argument as the model knows it."""
    match = _COMPLAINT.fullmatch(text)
    if match is None or not match[3]:
        return _wrong(f"invalid arguments: {text}")
    got = f", not {plainly(match[2])}" if match[2] else ""
    return _wrong(f"{match[3]} is wrong: expected {plainly(match[1])}{got}", match[3])


def user_of(tool: Tool, given: object) -> str | None:
    """The user whom the arguments of a call name; None where the tool takes none, or would refuse them anyway."""
    try:
        return getattr(arguments_of(tool.arguments, given), "user_id", None)
    except Problem:
        return None


def _body(given: object) -> dict[str, Any]:
    if isinstance(given, str):
        given = _parsed(given)
    given = _clean(given)
    if given in (None, "", []):
        return {}
    if not isinstance(given, dict):
        raise _wrong("the arguments must be a JSON object")
    return cast("dict[str, Any]", given)


def _clean(given: object) -> object:
    """The same as JSON can hold it: half characters are marked as such."""
    try:
        msgspec.json.encode(given)
    except UnicodeEncodeError:
        text = json.dumps(given, ensure_ascii=False).encode("utf-8", "replace").decode()
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise _wrong("the arguments must be a JSON object") from None
    return given


def _object(kind: type[Any], given: dict[str, Any]) -> dict[str, Any]:
    fields = _fields(kind)
    values: dict[str, Any] = {}
    for name in sorted(given, key=lambda name: name not in fields):  # an exact name wins over a near one
        field = fields.get(name) or _near(fields, name)
        if field.encode_name in values or given[name] is None:
            continue
        value = _value(field.type, field.encode_name, given[name])
        if value is not None and (value != "" or _is_marked(field.type, CLEARS)):
            values[field.encode_name] = value
    for name, field in fields.items():
        value = values.get(name, "")
        if field.required and isinstance(value, str) and not value.strip():
            raise Problem("invalid_arguments", f"{name} is required", {"field": name})
    return values


def argument_names(kind: type[Arguments]) -> frozenset[str]:
    found: set[str] = set()
    kinds: list[Any] = [kind]
    while kinds:
        for field in _fields(kinds.pop()).values():
            found.add(field.encode_name)
            bare = _bare(field.type)
            inner = _bare(bare.item_type) if isinstance(bare, _LISTS) else bare
            kinds += [inner.cls] if isinstance(inner, StructType) else []
    return frozenset(found)


@cache
def _fields(kind: type[Any]) -> dict[str, Field]:
    info = type_info(kind)
    assert isinstance(info, StructType), "arguments are structs"
    return {field.encode_name: field for field in info.fields}


def _near(fields: dict[str, Field], name: str) -> Field:
    plain = _plain(name)
    for field in fields.values():
        known = _plain(field.encode_name)
        if plain in (known, known + "json") or (known in _TASK_NAMES and plain in _TASK_NAMES):
            return field
    shown = [one.encode_name for one in fields.values() if not _is_marked(one.type, HIDDEN)]
    close = get_close_matches(name, shown, n=1)
    hint = f"; did you mean {close[0]}?" if close else f"; known are: {', '.join(shown) or 'none'}"
    raise Problem("invalid_arguments", f"unknown argument: {name[:60]}{hint}", {"field": name[:60]})


def _is_marked(kind: Type, mark: str) -> bool:
    extra: dict[str, Any] | None = cast(Any, kind).extra_json_schema if isinstance(kind, Metadata) else None
    return bool(extra and extra.get(mark))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _value(kind: Type, name: str, value: Any) -> Any:
    """The value in the form that its type asks for; what can't be helped is left to the conversion."""
    bare = _bare(kind)
    repair = next((how for types, how in _REPAIRS if isinstance(bare, types)), None)
    return repair(bare, name, value) if repair else value


def _bare(kind: Type) -> Type:
    """The type without its annotations, and without null."""
    if isinstance(kind, Metadata):
        return _bare(kind.type)
    if isinstance(kind, UnionType):
        return _bare(next(one for one in kind.types if not isinstance(one, NoneType)))
    return kind


def _text(kind: Type, name: str, value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(int(value) if isinstance(value, float) and value.is_integer() else value)
    return _id(value, name) if _plain(name) in _IDS else value


def _id(value: Any, name: str) -> str:
    """A task's id, which models also bring as `#3`."""
    if not isinstance(value, str):
        raise _wrong(f"{name} is wrong: expected the id of one task", name)
    return value.strip().removeprefix("#") or value


def _number(kind: Type, name: str, value: Any) -> Any:
    if isinstance(value, str):
        value = value.strip().removeprefix("#")
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", value):
            raise _wrong(f"{name} must be an integer, not {value[:60]!r}", name)
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _choice(kind: Any, name: str, value: Any) -> Any:
    words = choices(kind.values)
    plain = str(value).strip().lower().replace("-", "_").replace(" ", "_")
    if plain in ("", *words):
        return plain
    options = ", ".join(words[:-1]) + f", or {words[-1]}"
    raise _wrong(f"invalid {name}: {str(value)[:60]} (must be {options})", name)


def _truth(kind: Type, name: str, value: Any) -> Any:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    return words.get(value.strip().lower(), value) if isinstance(value, str) else value


def _mapping(kind: Type, name: str, value: Any) -> Any:
    return _parsed(value) if isinstance(value, str) else value


def _list(kind: Any, name: str, value: Any) -> Any:
    item: Type = kind.item_type
    if isinstance(value, str):
        value = _json_or_text(value, name)
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    if isinstance(_bare(item), StrType):
        return [_id(_text(item, name, one), name) for one in values if one not in (None, "", {})]
    return [_value(item, f"{name}[{at}]", one) for at, one in enumerate(values)]


def _struct(kind: Any, name: str, value: Any) -> Any:
    if isinstance(value, str):
        parsed = _json_or_text(value, name)
        # Text in the place of a task is its title: the first member.
        value = cast(Any, parsed) if isinstance(parsed, dict) else {next(iter(_fields(kind.cls))): value}
    if not isinstance(value, dict):
        return value
    try:
        return _object(kind.cls, cast("dict[str, Any]", value))
    except Problem as problem:
        raise _wrong(f"{name}: {problem.text}", name) from None


_REPAIRS: tuple[tuple[Any, Callable[[Any, str, Any], Any]], ...] = (
    (StrType, _text),
    (IntType, _number),
    (BoolType, _truth),
    (LiteralType, _choice),
    (DictType, _mapping),
    (_LISTS, _list),
    (StructType, _struct),
)


_BEGINNINGS = ("[{", '["', "['", "[[", '{"', "{'")


def _json_or_text(text: str, name: str) -> Any:
    value = _parsed(text)
    if isinstance(value, str) and "".join(text[:80].split()).startswith(_BEGINNINGS):
        raise _wrong(f"{name} is not valid JSON: {text[:60]!r}; pass it as a value of the call, not as text", name)
    return value


def _parsed(text: str) -> Any:
    """The JSON value in a text, or the text itself, where it holds none."""
    if not text.strip():
        return ""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _wrong(text: str, name: str = "") -> Problem:
    return Problem("invalid_arguments", text, {"field": name} if name else None)
