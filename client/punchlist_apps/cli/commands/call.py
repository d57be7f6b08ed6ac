"""`punch daemon call`: call any method in the table, with parameters as NAME=VALUE arguments or JSON."""

from difflib import get_close_matches
from typing import Any, cast

import msgspec

from punchlist.base.text import safe_block
from punchlist_apps.cli.calling.context import Context, parse_loose_value
from punchlist_apps.cli.parsing.arguments import Argument, Usage, flag
from punchlist_apps.cli.printing import stored
from punchlist_apps.cli.printing.failure import UsageError
from punchlist_schemas.methods import METHODS

COMMANDS = {
    "call": Usage(
        (
            Argument(("method",), "the method to call", {"nargs": "?"}, "method"),
            Argument(
                ("params",),
                "the parameters: NAME=VALUE, where VALUE is JSON or a word, or one JSON object",
                {"nargs": "*"},
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
        raise UsageError("no method given; see all methods: punch daemon call --list")
    row = METHODS.get(args.method)
    if row is None:
        near = get_close_matches(args.method, list(METHODS), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"no method named {args.method!r}{hint}")
    fields = {field.name: field for field in msgspec.structs.fields(row.params)}
    params = _parse_params(args.params, {name: field.type for name, field in fields.items()})
    if "conversation" in fields and (args.conversation or fields["conversation"].required):
        params.setdefault("conversation", context.conversation)
    if "actor" in fields and args.actor:
        params.setdefault("actor", args.actor)
    result = context.caller.call(row.name, params)
    stored.record_call(row.name, params, result)
    if args.json or not context.style.terminal:
        context.print_json(result)
    else:
        context.print_lines([safe_block(msgspec.json.format(msgspec.json.encode(result)).decode())])
    return 0


def _parse_params(words: list[str], types: dict[str, Any]) -> dict[str, Any]:
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        value = parse_loose_value(words[0])
        if not isinstance(value, dict):
            raise UsageError("invalid parameters; give NAME=VALUE or one JSON object")
        return cast("dict[str, Any]", value)
    params: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise UsageError(f"invalid parameter {word!r}; give NAME=VALUE or one JSON object")
        params[name] = _parse_value(value, types.get(name, Any))
    return params


def _parse_value(word: str, type_: Any) -> Any:
    """Parse an argument as JSON, unless the parameter accepts only the unparsed text, such as `3` for a task id."""
    value = parse_loose_value(word)
    return word if _has_type(word, type_) and not _has_type(value, type_) else value


def _has_type(value: Any, type_: Any) -> bool:
    try:
        msgspec.convert(value, type_)
    except msgspec.ValidationError:
        return False
    return True
