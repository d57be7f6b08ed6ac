"""`punch daemon call`: any method of the table, with parameters as words or as JSON."""

from difflib import get_close_matches
from typing import Any, cast

import msgspec

from punchlist.base.text import safe_block
from punchlist_apps.cli.calling.context import Context, loose_value
from punchlist_apps.cli.parsing.arguments import Argument, Usage, flag
from punchlist_apps.cli.printing.failure import UsageError
from punchlist_apps.common import wire
from punchlist_schemas.methods import METHODS

COMMANDS = {
    "call": Usage(
        (
            Argument(("method",), "the method to call", {"nargs": "?"}, "method"),
            Argument(
                ("params",), "its params: NAME=VALUE, with JSON or a word as value, or one JSON object", {"nargs": "*"}
            ),
            flag("--list", text="list the methods"),
        ),
        ("punch daemon call task.get task=3", "punch daemon call daemon.status", "punch daemon call --list"),
    ),
}


def run_call(context: Context) -> int:
    args = context.args
    if args.list:
        return context.answer(
            sorted(METHODS), [f"{row.name:24} {row.kind:8} {row.summary}" for row in METHODS.values()]
        )
    if not args.method:
        raise UsageError("name a method, or --list")
    row = METHODS.get(args.method)
    if row is None:
        near = get_close_matches(args.method, list(METHODS), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"there is no method {args.method!r}{hint}")
    fields = {field.name: field for field in msgspec.structs.fields(row.params)}
    params = _params(args.params, {name: field.type for name, field in fields.items()})
    if "conversation" in fields and (args.conversation or fields["conversation"].required):
        params.setdefault("conversation", context.conversation)
    if "actor" in fields and args.actor:
        params.setdefault("actor", args.actor)
    result = context.caller.call(row.name, params)
    wire.completed_calls.append((row.name, params, result))
    if args.json or not context.style.terminal:
        context.json(result)
    else:
        context.lines([safe_block(msgspec.json.format(msgspec.json.encode(result)).decode())])
    return 0


def _params(words: list[str], types: dict[str, Any]) -> dict[str, Any]:
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        value = loose_value(words[0])
        if not isinstance(value, dict):
            raise UsageError("the parameters are not a JSON object")
        return cast("dict[str, Any]", value)
    params: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise UsageError(f"parameters are NAME=VALUE or one JSON object, not {word!r}")
        params[name] = _value(value, types.get(name, Any))
    return params


def _value(word: str, wanted: Any) -> Any:
    """The JSON value of a word, or the word itself where only that fits: a task's id is text and yet looks like 3."""
    value = loose_value(word)
    return word if _fits(word, wanted) and not _fits(value, wanted) else value


def _fits(value: Any, wanted: Any) -> bool:
    try:
        msgspec.convert(value, wanted)
    except msgspec.ValidationError:
        return False
    return True
