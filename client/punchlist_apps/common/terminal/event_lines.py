"""Events as sentences: `#3 pending → completed by claude · 12:03:11`. Pure; works on the values of the wire."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from punchlist.base.text import clip, one_line, safe
from punchlist_apps.common.terminal.render import FACTS, cells, cut, cut_painted
from punchlist_apps.common.terminal.style import Style

Event = dict[str, Any]
_SHOWN_VALUE = 40


class EventFormatter:
    """Turns events into lines; remembers titles, so that every line can say which task is meant.

    A line is no wider than the style, less `margin` columns that the caller puts in front of it. With `versions` it
    begins with the version that the event made, by which `punch undo` and `--at` know it.
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

    def line(self, recorded: dict[str, Any]) -> str:
        event: Event = recorded["event"]
        conversation = str(recorded["conversation"])
        self._learn(conversation, event)
        sentence = _SENTENCES.get(str(event.get("type")), _unknown)
        text = sentence(event, self._style)
        task = event.get("task")
        if isinstance(task, str):
            title = safe(self._titles.get((conversation, task), ""))
            text = f"#{safe(task)} {text}" + (f"  {self._style.paint('dim', title)}" if title else "")
        where = f"{safe(conversation)}  " if self._named else ""
        if self._versions:
            where += self._style.paint("dim", f"{recorded['version']:>4}  ")
        if told := self._taken_back(conversation, recorded):
            text += self._style.paint("dim", f"  ({told})")
        dot = self._style.glyphs["dot"]
        when = self._when(int(recorded["at"]))
        return self._fitted(where + text, f"  by {safe(str(recorded['actor']))} {dot} {when}")

    def _taken_back(self, conversation: str, recorded: dict[str, Any]) -> str:
        """What the call of an event takes back, told with its first event."""
        calls: list[int] = recorded.get("undoes") or []
        if recorded.get("reverts_to") is not None:
            return f"back to version {recorded['reverts_to']}"
        if not calls:
            return ""
        again = any((conversation, call) in self._undos for call in calls)
        if not again:
            self._undos.add((conversation, int(recorded["version"])))
        return f"{'redo' if again else 'undo'} of {', '.join(map(str, calls))}"

    def _fitted(self, text: str, tail: str) -> str:
        """Both parts in the width there is; who and when get up to half of it."""
        dots = self._style.glyphs["cut"]
        if self._style.width:
            width = max(self._style.width - self._margin, 2)
            tail = cut(tail, width // 2, dots)
            text = cut_painted(text, width - cells(tail), dots)
        return text + self._style.paint("dim", tail)

    def _learn(self, conversation: str, event: Event) -> None:
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


def _opened(event: Event, style: Style) -> str:
    return "opened" + (f" {safe(str(event['title']))}" if event.get("title") else "")


def _configured(event: Event, style: Style) -> str:
    words = [f"{name} {_short(event[name])}" for name in ("title", "attached", "detached") if name in event]
    words += [f"{key} {_short(value)}" for key, value in event.get("settings", {}).items()]
    return "configured " + ", ".join(words)


def _added(event: Event, style: Style) -> str:
    task = event["task"]
    edges = "".join(f" #{safe(str(one))}" for one in task.get("blocked_by", ()))
    waits = style.paint("dim", f"  {style.glyphs['arrow']}{edges}") if edges else ""
    return f"#{safe(str(task['id']))} added  {safe(str(task['title']))}{waits}"


def _edited(event: Event, style: Style) -> str:
    words: list[str] = []
    for member in event:
        if member in ("type", "task") or not _is_told(event, member):
            continue
        name, form = _FORMS.get(member, (safe(member), str))
        value = event[member]
        told = (
            "none"
            if value is None
            else clip(one_line(form(value)), _SHOWN_VALUE)
            if member in _FORMS
            else _short(value)
        )
        words.append(f"{name} {told or '(cleared)'}")
    return "edited " + ", ".join(words)


def _is_told(event: Event, member: str) -> bool:
    """Return whether to list a member. Of a day and its moment, list one."""
    moment, is_day, _ = member.partition("_day")
    return bool(event[member]) or moment not in event if is_day else not event.get(f"{member}_day")


def _moved(event: Event, style: Style) -> str:
    return f"moved in front of #{safe(str(event['before']))}" if event.get("before") else "moved to the end"


def _status(event: Event, style: Style) -> str:
    words = f"{safe(str(event['from']))} {style.glyphs['to']} {style.paint(str(event['to']), safe(str(event['to'])))}"
    if event["from"] == event["to"] == "paused" and event.get("waits_for"):
        return f"passed the check, waits for a {safe(str(event['waits_for']))}"
    words += f", waits for a {safe(str(event['waits_for']))}" if event.get("waits_for") else ""
    reasons = [str(event[name]) for name in ("result_summary", "fail_reason") if event.get(name)]
    return words + (f" ({_short(reasons[0])})" if reasons else "")


def _edge(word: str) -> Callable[[Event, Style], str]:
    return lambda event, style: f"{word} #{safe(str(event.get('blocker')))}"


def _message(event: Event, style: Style) -> str:
    instead = f", instead of {safe(str(event['supersedes']))}" if event.get("supersedes") else ""
    return f"message {safe(str(event['message']))} from {safe(str(event['role']))}{instead}: {_short(event['content'])}"


def _retracted(event: Event, style: Style) -> str:
    reason = f" ({_short(event['reason'])})" if event.get("reason") else ""
    return f"message {safe(str(event['message']))} retracted{reason}"


def _unknown(event: Event, style: Style) -> str:
    return f"{safe(str(event.get('type', 'event')))} (not known to this version)"


def _written_by(event: Event) -> str:
    return f" of {safe(str(event['author']))}" if event.get("author") else ""


def _short(value: Any) -> str:
    return clip(
        safe(one_line(value) if isinstance(value, str) else "none" if value is None else str(value)), _SHOWN_VALUE
    )


def _links(links: list[dict[str, Any]]) -> str:
    return ", ".join(f"{safe(str(one['kind']))} {safe(str(one['to']))}" for one in links)


_FORMS: dict[str, tuple[str, Callable[[Any], str]]] = {
    **{member: (name, form) for name, member, form in FACTS},
    "links": ("links", _links),
}
"""How an edited member is called and shown: as `punch show` does it."""

_SENTENCES: dict[str, Callable[[Event, Style], str]] = {
    "ConversationOpened": _opened,
    "ConversationConfigured": _configured,
    "ConversationDeleted": lambda event, style: "erased",
    "TaskAdded": _added,
    "TaskEdited": _edited,
    "TaskMoved": _moved,
    "StatusChanged": _status,
    "NoteAdded": lambda event, style: f"note{_written_by(event)}: {_short(event['text'])}",
    "NoteRemoved": lambda event, style: "note taken back",
    "TaskWoken": lambda event, style: "is no longer deferred",
    "Deleted": lambda event, style: "deleted",
    "DependencyAdded": _edge("waits for"),
    "DependencyRemoved": _edge("no longer waits for"),
    "Claimed": lambda event, style: f"claimed by {safe(str(event['owner']))}",
    "Released": lambda event, style: f"released by {safe(str(event['owner']))} ({safe(str(event['reason']))})",
    "ListCleared": lambda event, style: "list cleared",
    "MessageAppended": _message,
    "MessageRetracted": _retracted,
    "EventLost": lambda event, style: "lost to damage",
}
