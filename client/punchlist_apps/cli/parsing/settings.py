"""The settings of a list for people and models: their names, values and meanings as one table, and how they are read.

Tool dialects and `punch set` go by it: `parse_changes` turns words such as `execution=serial` into what
`conversation.configure` takes.
"""

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
    """One setting. `values` and what each means; none: the value is a number up to `max_value`, or a text."""

    name: str
    meaning: str
    values: dict[str, str]
    max_value: int = 0


SETTINGS = (
    Setting(TITLE, "what the list is called", {}),
    Setting(
        "execution",
        "how tasks are worked on",
        {"manual": "whoever works starts them", "serial": "one at a time; each end starts the next one"},
    ),
    Setting(
        "on_failure",
        "what a failed task does to the others",
        {"continue": "nothing", "stop": "no task is started until the failed one is reopened, completed or deleted"},
    ),
    Setting(
        *("max_attempts", f"how often a task is tried before its failure counts, 0 to {_MAX_ATTEMPTS}"),
        values={},
        max_value=_MAX_ATTEMPTS,
    ),
    Setting(
        "auto_clear",
        "when a finished list is emptied",
        {
            "never": "by hand alone",
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
    Setting("rate_limit", "how many changes each actor may make per minute, 0 for any number", {}, _MAX_RATE),
    Setting("leave_grace", "how many seconds a session's claims last after it has left", {}, _MAX_LEAVE_GRACE),
)
_BY_NAME = {setting.name: setting for setting in SETTINGS}


class WrongSetting(ValueError):
    """A name or value that no setting has; the message says which ones there are."""


def list_settings(title: str, settings: Settings) -> dict[str, Any]:
    """The value of each setting of a list, in the table's order."""
    values = {setting.name: getattr(settings, setting.name) for setting in SETTINGS if setting.name != TITLE}
    return {TITLE: title, **values}


def describe_setting(name: str, value: Any) -> str:
    setting = _BY_NAME[name]
    told = setting.values.get(str(value))
    return f"{setting.meaning}: {told}" if told else setting.meaning


def parse_changes(words: Iterable[str]) -> dict[str, Any]:
    """Words NAME=VALUE as parameters of `conversation.configure`: `title` and `settings`, as far as they were named.

    Raises:
        WrongSetting: A name or value is wrong, or a name stands there twice.
    """
    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            known = f"; write {name}=VALUE" if name in _BY_NAME else _suggest(name)
            raise WrongSetting(f"{word!r} is not NAME=VALUE{known}")
        if name not in _BY_NAME:
            raise WrongSetting(f"there is no setting {name!r}{_suggest(name)}")
        if name in found:
            raise WrongSetting(f"{name} is given twice")
        found[name] = _parse_value(_BY_NAME[name], value)
    title = {TITLE: found.pop(TITLE)} if TITLE in found else {}
    return {**title, **({"settings": found} if found else {})}


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
        meant = f"; did you mean {near[0]}?" if near else ""
        raise WrongSetting(f"{setting.name} is one of {', '.join(setting.values)}, not {text!r}{meant}")
    return text


def _suggest(name: str) -> str:
    near = get_close_matches(name, _BY_NAME, n=1)
    return f"; did you mean {near[0]}?" if near else f": there are {', '.join(_BY_NAME)}"
