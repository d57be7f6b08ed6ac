"""`punch list set`: show and change the settings of a list."""

from collections.abc import Iterable
from typing import Any

import msgspec

from punchlist.base.text import safe
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.parsing.arguments import Argument, Usage
from punchlist_apps.cli.parsing.settings import WrongSetting, describe_setting, list_settings, parse_changes
from punchlist_apps.cli.printing.failure import UsageError
from punchlist_apps.common.terminal.style import Style
from punchlist_schemas.things import Conversation

COMMANDS = {
    "set": Usage(
        (
            Argument(
                ("settings",),
                "the settings to change (default: show all)",
                {"metavar": "NAME=VALUE", "nargs": "*"},
                "setting",
            ),
        ),
        (
            "punch list set",
            "punch set execution=serial on_failure=stop",
            'punch set auto_clear=idle title="Release 1.0"',
        ),
    ),
}


def run_set(context: Context) -> int:
    try:
        new = parse_changes(context.args.settings)
    except WrongSetting as error:
        raise UsageError(str(error)) from None
    if new:
        result = context.change("conversation.configure", **new)
    else:
        result = context.read("conversation.get")
    conversation = msgspec.convert(result["conversation"], Conversation)
    values = list_settings(conversation.title, conversation.settings)
    changed = {*new.get("settings", ()), *({"title"} & new.keys())} or values.keys()
    lines = _format_settings({name: values[name] for name in values if name in changed}, context.style)
    return context.answer({"conversation": conversation.conversation, **values}, lines)


def _format_settings(values: dict[str, Any], style: Style) -> Iterable[str]:
    texts = {name: f"{name}={safe(str(value))}" for name, value in values.items()}
    width = max(len(text) for name, text in texts.items() if name != "title") if len(texts) > 1 else 0
    for name, text in texts.items():
        yield f"{text:<{width}}  {style.paint('dim', describe_setting(name, values[name]))}"
