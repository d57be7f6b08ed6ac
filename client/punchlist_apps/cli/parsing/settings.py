"""A list's settings with their values and meanings, and the parser for arguments such as `execution=serial`."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, NamedTuple

from punchlist_schemas.things import Settings

TITLE = "title"
_MAX_ATTEMPTS = 1_000
_MAX_RATE = 1_000_000
_MAX_TITLE = 500
_MAX_LEAVE_GRACE = 86_400


class Setting(NamedTuple):
    """A setting.

    Attributes:
        values: Value → its meaning; empty if the value is a number or text.
        max_value: Upper limit for a number.
    """

    name: str
    meaning: str
    values: dict[str, str]
    max_value: int = 0


SETTINGS = (
    Setting(TITLE, "name of the list", {}),
    Setting(
        "execution",
        "how tasks are worked on",
        {"manual": "workers start them", "serial": "one at a time; the end of a task starts the next"},
    ),
    Setting(
        "on_failure",
        "what happens to the others when a task fails",
        {"continue": "nothing", "stop": "no task is started until the failed one is reopened, completed or deleted"},
    ),
    Setting(
        *("max_attempts", f"attempts before a task counts as failed, 0 to {_MAX_ATTEMPTS}"),
        values={},
        max_value=_MAX_ATTEMPTS,
    ),
    Setting(
        "auto_clear",
        "when a finished list is emptied",
        {
            "never": "only by hand",
            "when_done": "with its last completion",
            "idle": "10 s after its last change, or at the end of a turn",
        },
    ),
    Setting(
        "complete_parents",
        "which tasks are completed with the last task below them",
        {
            "headings": "those imported as headings; others become ready",
            "auto": "all",
            "never": "none; headings are completed by hand, and others become ready",
        },
    ),
    Setting("rate_limit", "maximum number of changes per minute for each actor, 0 for no limit", {}, _MAX_RATE),
    Setting("leave_grace", "seconds that a session's claims last after it has left", {}, _MAX_LEAVE_GRACE),
)
_BY_NAME = {setting.name: setting for setting in SETTINGS}


class WrongSetting(ValueError):
    """Unknown name of a setting, or invalid value. The message lists the valid ones."""


def list_settings(title: str, settings: Settings) -> dict[str, Any]:
    """Return the settings of a list by name, in the order of the table."""
    values = {setting.name: getattr(settings, setting.name) for setting in SETTINGS if setting.name != TITLE}
    return {TITLE: title, **values}


def describe_setting(name: str, value: Any) -> str:
    setting = _BY_NAME[name]
    value_meaning = setting.values.get(str(value))
    return f"{setting.meaning}: {value_meaning}" if value_meaning else setting.meaning


def parse_changes(words: Iterable[str]) -> dict[str, Any]:
    """Parse NAME=VALUE arguments into parameters for `conversation.configure`.

    Raises:
        WrongSetting: A name or value is invalid, or a name occurs twice.
    """
    values: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            advice = f"; write {name}=VALUE" if name in _BY_NAME else _suggest(name)
            raise WrongSetting(f"{word!r} is not NAME=VALUE{advice}")
        if name not in _BY_NAME:
            raise WrongSetting(f"unknown setting {name!r}{_suggest(name)}")
        if name in values:
            raise WrongSetting(f"{name} is given twice")
        values[name] = _parse_value(_BY_NAME[name], value)
    title = {TITLE: values.pop(TITLE)} if TITLE in values else {}
    return {**title, **({"settings": values} if values else {})}


def _parse_value(setting: Setting, text: str) -> str | int:
    if setting.name == TITLE:
        if len(text) > _MAX_TITLE:
            raise WrongSetting(f"title is at most {_MAX_TITLE} characters")
        return text
    if not setting.values:
        if text.isascii() and text.isdecimal() and int(text) <= setting.max_value:
            return int(text)
        raise WrongSetting(f"{setting.name} is a number from 0 to {setting.max_value}, not {text!r}")
    if text not in setting.values:
        near = get_close_matches(text, setting.values, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise WrongSetting(f"{setting.name} is one of {', '.join(setting.values)}, not {text!r}{hint}")
    return text


def _suggest(name: str) -> str:
    near = get_close_matches(name, _BY_NAME, n=1)
    return f"; did you mean {near[0]}?" if near else f"; choose from {', '.join(_BY_NAME)}"
