"""Formats events as lines: `#3 pending → completed by claude · 12:03:11`. Works on JSON values from the wire."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from punchlist.base.text import clip, one_line, safe
from punchlist_apps.common.terminal.render import FACTS, count_columns, truncate, truncate_painted
from punchlist_apps.common.terminal.style import Style

Event = dict[str, Any]
_SHOWN_VALUE = 40


class EventFormatter:
    """Formats events as lines, with task titles remembered from earlier events.

    Args:
        style: Width and colors of the lines.
        name_conversations: Start each line with the list's name.
        dated: Show the date with the time.
        margin: Number of columns that the caller writes before each line.
        versions: Show the version of each event, which `punch undo` and `--at` accept.
    """

    def __init__(  # noqa: PLR0913 - how a line is laid out
        self,
        style: Style,
        *,
        name_conversations: bool = False,
        dated: bool = True,
        margin: int = 0,
        versions: bool = False,
    ) -> None:
        self._style = style
        self._versions = versions
        self._undos: set[tuple[str, int]] = set()
        self._margin = margin
        self._named = name_conversations
        self._dated = dated
        self._titles: dict[tuple[str, str], str] = {}

    def format(self, recorded: dict[str, Any]) -> str:
        event: Event = recorded["event"]
        conversation = str(recorded["conversation"])
        self._remember_title(conversation, event)
        sentence = _SENTENCES.get(str(event.get("type")), _describe_unknown)
        text = sentence(event, self._style)
        task = event.get("task")
        if isinstance(task, str):
            title = safe(self._titles.get((conversation, task), ""))
            text = f"#{safe(task)} {text}" + (f"  {self._style.paint('dim', title)}" if title else "")
        where = f"{safe(conversation)}  " if self._named else ""
        if self._versions:
            where += self._style.paint("dim", f"{recorded['version']:>4}  ")
        if undone := self._describe_undo(conversation, recorded):
            text += self._style.paint("dim", f"  ({undone})")
        dot = self._style.glyphs["dot"]
        when = self._when(int(recorded["at"]))
        return self._fit(where + text, f"  by {safe(str(recorded['actor']))} {dot} {when}")

    def _describe_undo(self, conversation: str, recorded: dict[str, Any]) -> str:
        """Return the text about the changes that an event undoes or redoes.

        The daemon marks only the first event of a call.
        """
        calls: list[int] = recorded.get("undoes") or []
        if recorded.get("reverts_to") is not None:
            return f"back to version {recorded['reverts_to']}"
        if not calls:
            return ""
        is_redo = any((conversation, call) in self._undos for call in calls)
        if not is_redo:
            self._undos.add((conversation, int(recorded["version"])))
        return f"{'redo' if is_redo else 'undo'} of {', '.join(map(str, calls))}"

    def _fit(self, text: str, tail: str) -> str:
        """Join both parts within the width. The tail (actor and time) gets at most half of the width."""
        dots = self._style.glyphs["cut"]
        if self._style.width:
            width = max(self._style.width - self._margin, 2)
            tail = truncate(tail, width // 2, dots)
            text = truncate_painted(text, width - count_columns(tail), dots)
        return text + self._style.paint("dim", tail)

    def _remember_title(self, conversation: str, event: Event) -> None:
        task = event.get("task")
        if event.get("type") == "TaskAdded":
            added: dict[str, Any] = event["task"]
            self._titles[conversation, str(added["id"])] = str(added["title"])
        elif isinstance(task, str) and "title" in event:
            self._titles[conversation, task] = str(event["title"])

    def _when(self, at: int) -> str:
        try:
            return datetime.fromtimestamp(at / 1000).strftime("%Y-%m-%d %H:%M:%S" if self._dated else "%H:%M:%S")
        except (OverflowError, ValueError, OSError):
            return str(at)


def _describe_opening(event: Event, style: Style) -> str:
    return "opened" + (f" {safe(str(event['title']))}" if event.get("title") else "")


def _describe_settings(event: Event, style: Style) -> str:
    words = [f"{name} {_shorten(event[name])}" for name in ("title", "attached", "detached") if name in event]
    words += [f"{key} {_shorten(value)}" for key, value in event.get("settings", {}).items()]
    return "configured " + ", ".join(words)


def _describe_addition(event: Event, style: Style) -> str:
    task = event["task"]
    edges = "".join(f" #{safe(str(blocker))}" for blocker in task.get("blocked_by", ()))
    waits = style.paint("dim", f"  {style.glyphs['arrow']}{edges}") if edges else ""
    return f"#{safe(str(task['id']))} added  {safe(str(task['title']))}{waits}"


def _describe_edit(event: Event, style: Style) -> str:
    words: list[str] = []
    for member in event:
        if member in ("type", "task") or not _is_listed(event, member):
            continue
        name, form = _FORMS.get(member, (safe(member), str))
        value = event[member]
        text = (
            "none"
            if value is None
            else clip(one_line(form(value)), _SHOWN_VALUE)
            if member in _FORMS
            else _shorten(value)
        )
        words.append(f"{name} {text or '(cleared)'}")
    return "edited " + ", ".join(words)


def _is_listed(event: Event, member: str) -> bool:
    """Return whether to list a member. A date is stored both as a day and as a time, but only one of them is listed."""
    moment, is_day, _ = member.partition("_day")
    return bool(event[member]) or moment not in event if is_day else not event.get(f"{member}_day")


def _describe_move(event: Event, style: Style) -> str:
    return f"moved before #{safe(str(event['before']))}" if event.get("before") else "moved to the end"


def _describe_status(event: Event, style: Style) -> str:
    words = f"{safe(str(event['from']))} {style.glyphs['to']} {style.paint(str(event['to']), safe(str(event['to'])))}"
    if event["from"] == event["to"] == "paused" and event.get("waits_for"):
        return f"passed the check, waits for a {safe(str(event['waits_for']))}"
    words += f", waits for a {safe(str(event['waits_for']))}" if event.get("waits_for") else ""
    reasons = [str(event[name]) for name in ("result_summary", "fail_reason") if event.get(name)]
    return words + (f" ({_shorten(reasons[0])})" if reasons else "")


def _describe_dependency(word: str) -> Callable[[Event, Style], str]:
    return lambda event, style: f"{word} #{safe(str(event.get('blocker')))}"


def _describe_message(event: Event, style: Style) -> str:
    instead = f", instead of {safe(str(event['supersedes']))}" if event.get("supersedes") else ""
    return (
        f"message {safe(str(event['message']))} from {safe(str(event['role']))}{instead}: {_shorten(event['content'])}"
    )


def _describe_retraction(event: Event, style: Style) -> str:
    reason = f" ({_shorten(event['reason'])})" if event.get("reason") else ""
    return f"message {safe(str(event['message']))} retracted{reason}"


def _describe_unknown(event: Event, style: Style) -> str:
    return f"{safe(str(event.get('type', 'event')))} (not known to this version)"


def _format_author(event: Event) -> str:
    return f" of {safe(str(event['author']))}" if event.get("author") else ""


def _shorten(value: Any) -> str:
    return clip(
        safe(one_line(value) if isinstance(value, str) else "none" if value is None else str(value)), _SHOWN_VALUE
    )


def _format_links(links: list[dict[str, Any]]) -> str:
    return ", ".join(f"{safe(str(link['kind']))} {safe(str(link['to']))}" for link in links)


_FORMS: dict[str, tuple[str, Callable[[Any], str]]] = {
    **{member: (name, form) for name, member, form in FACTS},
    "links": ("links", _format_links),
}
"""Member -> its name and formatter, as in `punch show`."""

_SENTENCES: dict[str, Callable[[Event, Style], str]] = {
    "ConversationOpened": _describe_opening,
    "ConversationConfigured": _describe_settings,
    "ConversationDeleted": lambda event, style: "erased",
    "TaskAdded": _describe_addition,
    "TaskEdited": _describe_edit,
    "TaskMoved": _describe_move,
    "StatusChanged": _describe_status,
    "NoteAdded": lambda event, style: f"note{_format_author(event)}: {_shorten(event['text'])}",
    "NoteRemoved": lambda event, style: "note taken back",
    "TaskWoken": lambda event, style: "is no longer deferred",
    "Deleted": lambda event, style: "deleted",
    "DependencyAdded": _describe_dependency("waits for"),
    "DependencyRemoved": _describe_dependency("no longer waits for"),
    "Claimed": lambda event, style: f"claimed by {safe(str(event['owner']))}",
    "Released": lambda event, style: f"released by {safe(str(event['owner']))} ({safe(str(event['reason']))})",
    "ListCleared": lambda event, style: "list cleared",
    "MessageAppended": _describe_message,
    "MessageRetracted": _describe_retraction,
    "EventLost": lambda event, style: "lost to damage",
}
