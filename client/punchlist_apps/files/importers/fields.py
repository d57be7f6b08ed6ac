"""Reads records of any origin, which are JSON objects or rows of a table, by the names of their members."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from punchlist.base.text import clip, one_line
from punchlist_apps.files.importers import words
from punchlist_apps.files.importers.document import expect_object, to_list, to_object, to_text, to_texts
from punchlist_apps.files.importers.draft import Draft, Item, Note, join_sections
from punchlist_apps.files.importers.wrong import FormatError

TITLES: Sequence[str] = (
    "title|task|task name|card name|issue title|work item|subject|headline|name|feature|story|user story|todo|to do"
    "|step|item|action|content|summary|summary description|description"
).split("|")
"""Names of the title, best first."""

_NAMES = {
    "key": "id|key|task id|card id|issue id|issue key|story id|ticket|gid|iid|number|uuid",
    "status": "status|state|progress status|task status",
    "lane": "list name|list|lane|column|section column|section|bucket|bucket name|board column|stage",
    "done": "done|is done|passes|passed|completed|complete|is complete|is completed|due complete|checked|finished"
    "|completed at|completed on|completed date|date completed|closed|closed at|closed at utc|closed date",
    "archived": "archived|is archived|deleted|is deleted",
    "description": "body|desc|card description|issue description",
    "section": "acceptance criteria|acceptance|steps|repro steps|test steps|test strategy|validation|verification"
    "|verification criteria|definition of done|implementation guide|analysis result|related files|details|design"
    "|requirements|rationale|problems identified",
    "note": "note|notes|comment|comments|remark|remarks",
    "result": "result|result summary|resolution|close reason|outcome",
    "priority": "priority|prio|importance|urgency",
    "owner": "owner|assignee|assignees|assigned to|assign|assignee name|member|members|responsible|person",
    "due": "due|due date|due on|due at|deadline|target date|end date",
    "not_before": "start|start date|start on|defer until|not before|available from",
    "labels": "label|labels|tag|tags",
    "kind": "type|issue type|work item type|kind",
    "url": "url|link|web url|html url|card url|permalink|permalink url|attachments",
    "parent": "parent|parent id|parent task|parent task id|parent issue|parent key|parent item",
    "blocked_by": "blocked by|blocked by dependencies|depends on|dependencies|dependency|predecessor|predecessors"
    "|waits for|blockers",
    "blocks": "blocks|blocking|blocking dependencies|successors",
    "related": "related to|related|relates to|duplicate of",
    "points": "points|story points|weight|estimate|size",
    "hours": "hours|estimate hours|estimated hours|estimated time hours",
    "duration": "original estimate|time estimate",
    "active": "active form",
    "children": "subtasks|sub tasks|children",
    **{f"label:{name}": name for name in "category component milestone phase sprint".split()},
    "label:project": "project|projects|project name",
    "label:epic": "epic|epic title|epic name",
    "label:iteration": "iteration|iteration path",
    "label:area": "area|area path",
    "derived": "updated|updated at|updated at utc|last modified|modified|modified at|last activity date|list id"
    "|board id|board name|order|pos|position|rank|row|assignee email|assignee username|author username|etag|self link"
    "|version|project id|creator id|node id|workspace gid|workspace name",
}
FIELDS = {name: field for field, names in _NAMES.items() for name in names.split("|")}
"""Normalized name of a member or column → the field of the task. Derived members are skipped without a remark."""

_SINGLE = frozenset("key status lane priority due not_before parent points hours duration active".split())
"""Fields of which a task has one value. Members beyond the first are skipped."""

_RELATIONS = ("parent", "blocked_by", "blocks", "related")
EVIDENCE = frozenset(("status", "done", "due", "priority", "owner", "parent", "blocked_by", "lane", "labels"))
"""Fields that distinguish a table of tasks from other tables with a title."""

_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOTHING = frozenset(("-", "–", "—", "none", "null", "n/a"))
"""Words in cells without a value."""

_NO = frozenset(("", "false", "no", "n", "unchecked", "☐", "incomplete", "uncompleted", "not done", "not complete"))
_YES = frozenset(("true", "yes", "y", "x", "checked", "☑", "✓", "✔", "✅"))
_NUMBER = re.compile(r"(\d{1,3}(?:[.,]\d{1,9})?)\s?(%?)")
_TIME = re.compile(r"(?<!\d)(?:(?:19|20)\d\d|\d{10,13})(?!\d)")
"""Matches a year, or a time in seconds or milliseconds since 1970."""

_AFTER_NAME = re.compile(r"(?:<[^<>]*>|\(\d+\))$")
"""The address or number that Azure DevOps and Todoist write after a user's name."""

_PLAIN_KINDS = frozenset(("", "task", "issue", "sub-task", "subtask"))
_SEPARATOR = re.compile(r"[,;\n]")
_NUMBERED = re.compile(r"[A-Z#]{1,8}-?0{0,8}(\d{1,8})")
_MIN_GLOBAL_ID = 12
"""Minimum length of an id that is unique in all files, in characters."""


@lru_cache(maxsize=256)
def normalize(name: str) -> str:
    """Return a name in lowercase words: `dueDate`, `due_date` and `Due Date` become `due date`."""
    return " ".join(_WORD.findall(_CAMEL.sub(" ", name))).lower()


def parse_share(value: Any) -> float | None:
    """Return how far a value means yes, from 0 to 1, or None if it isn't known.

    A checked box, 100% and the time at which a task was completed mean 1. A number without a percent sign is a share up
    to 1, and a percentage above.
    """
    if isinstance(value, bool):
        return float(value)
    text = to_text(value).strip().lower()
    if match := _NUMBER.fullmatch(text):
        number = float(match[1].replace(",", "."))
        return min(number / 100 if match[2] or number > 1 else number, 1)
    status = words.get_status(text)
    if text in _NO or status not in ("", "completed"):
        return 0
    is_time = _TIME.search(text) is not None or words.parse_moment(text) is not None
    return 1 if text in _YES or status or is_time else None


def find_title(names: list[str]) -> str:
    """Return the name that is most likely the title's, or an empty string."""
    return min((name for name in names if name in TITLES), key=TITLES.index, default="")


Fields = dict[str, dict[str, Any]]
"""Field -> normalized member name -> value."""


class Reader:
    """Adds records to a draft.

    Args:
        names: Fields of this form's members that differ from `FIELDS`.
        scope: Prefix of the ids, if they are unique only in a project. None if even the project is unknown: tasks are
            then matched by title, unless their ids are long or in their addresses.
        title: Normalized name of the title; by default the best of each record.
        convert_day: Rewrites the text of a date.
        priorities: This form's words for priorities that differ from the usual ones.
    """

    def __init__(  # noqa: PLR0913 - differences between programs
        self,
        draft: Draft,
        names: Mapping[str, str] | None = None,
        *,
        scope: str | None = None,
        title: str = "",
        convert_day: Callable[[str], str] = str,
        priorities: Mapping[str, str] | None = None,
    ) -> None:
        self._draft = draft
        self._fields = FIELDS | dict(names or {})
        self._scope = scope
        self._title = title
        self._convert_day = convert_day
        self._priorities = priorities or {}
        self._refs: dict[str, str] = {}
        self._added: list[tuple[Item, Fields]] = []

    def add(self, record: Mapping[str, Any], where: str = "", line: int = 0, parent: str = "") -> Item | None:
        """Add a task.

        Args:
            where: The record's path in the file, for errors.
            parent: The `ref` of the parent, for nested records.

        Raises:
            FormatError: The title isn't text.
        """
        draft = self._draft
        title, fields = self._sort_members(record, where, line)
        if self._read_share(fields, "archived", line) == 1:
            draft.skip("archived tasks", line)
            return None
        raw = _first(fields, "key")
        url = next(iter(_list_urls(fields)), "")
        state, lane_labels = self._read_state(fields, line)
        result = _join(fields, "result")
        is_done = state["status"] == "completed"
        owners = _list_owners(fields)
        if len(owners) > 1:
            draft.skip("assignees beyond the first", line, len(owners) - 1)
        sections = {name.replace(" ", "_"): _to_lines(value) for name, value in fields.get("section", {}).items()}
        item = draft.add(
            title,
            key=self._build_key(raw, url),
            ref=raw,
            line=line,
            description=join_sections(_join(fields, "description"), **sections),
            active_form=_first(fields, "active"),
            notes=[
                *(note for value in fields.get("note", {}).values() for note in _list_notes(value)),
                *([Note(result)] if result and not is_done else []),
            ],
            result_summary=result if is_done else "",
            priority=self._read_priority(_first(fields, "priority"), line),
            owner=owners[0] if owners else "",
            due=self._read_when(fields, "due", line),
            not_before=self._read_when(fields, "not_before", line),
            estimate_ms=_read_estimate(fields),
            links=[("url", link) for link in _list_urls(fields)],
            metadata={"points": _first(fields, "points")},
            state=state,
            labels=[*_list_labels(fields), *lane_labels],
            parent=parent,
        )
        if item is not None:
            self._added.append((item, {name: fields[name] for name in _RELATIONS if name in fields}))
            if raw:
                self._refs.setdefault(raw, item.ref)
            # A title that occurs twice identifies no task.
            self._refs[f"\0{item.title}"] = "" if f"\0{item.title}" in self._refs else item.ref
        return item

    def add_all(self, records: list[Any], container: str) -> None:
        """Add the objects of a JSON list and those nested in them. A text is a task with this title."""
        waiting = [(value, f"{container}[{index}]", "") for index, value in enumerate(records)][::-1]
        while waiting:
            value, where, parent = waiting.pop()
            record = expect_object({"title": value} if isinstance(value, str) else value, where, self._draft.name)
            item = self.add(record, where, parent=parent)
            for member, value in record.items():
                children = to_list(value) if self._fields.get(normalize(member)) == "children" else []
                if item is not None:
                    nested = enumerate(children)
                    waiting += [(child, f"{where}.{member}[{index}]", item.ref) for index, child in nested][::-1]
                elif children:
                    self._draft.skip("subtasks of skipped tasks", count=len(children))

    def finish(self) -> Draft:
        """Resolve the relations, which name tasks by their ids or titles."""
        for item, fields in self._added:
            if not item.parent and (above := _first(fields, "parent")):
                item.parent = self._resolve(above)
            item.blocked_by += self._resolve_all(fields, "blocked_by")
            item.relations += [("relates-to", ref) for ref in self._resolve_all(fields, "related")]
            for ref in self._resolve_all(fields, "blocks"):
                if (blocked := self._draft.find(ref)) is not None:
                    blocked.blocked_by.append(item.ref)
                else:
                    self._draft.skip("dependencies on tasks that are not in the file", item.line)
        return self._draft.finish()

    def _sort_members(self, record: Mapping[str, Any], where: str, line: int) -> tuple[str, Fields]:
        """Return the title, and the other members by field and normalized name. Count those without a field."""
        names = {name: normalize(name) for name in record}
        filled = [normalized for name, normalized in names.items() if record[name]]
        own = [name for name in filled if self._fields.get(name) == "title"]
        title_name = self._title or (own[0] if own else find_title(filled))
        title, fields = "", Fields()
        for name, written in record.items():
            normalized = names[name]
            value = "" if isinstance(written, str) and written.strip().lower() in _NOTHING else written
            field = self._fields.get(normalized, "")
            if normalized == title_name and not title:
                if not isinstance(value, str | list | None):
                    raise FormatError(f"{where}.{name}: expected a string", self._draft.name, line)
                title = to_text(written)
            elif field in ("", "title") and normalized in ("description", "summary", "content"):
                fields.setdefault("description", {})[normalized] = value
            elif field and field != "title" and not (field in _SINGLE and _first(fields, field)):
                fields.setdefault(field, {})[normalized] = value
            else:
                self._draft.skip_unread({name: value}, (), line)
        return title, fields

    def _build_key(self, raw: str, url: str) -> str:
        # Issues are numbered in each repository, and the address names the repository.
        if raw and url.rpartition("/")[2] == raw:
            return url.partition("://")[2]
        if self._scope == "" or len(raw) >= _MIN_GLOBAL_ID:
            return raw
        return f"{self._scope}/{raw}" if raw and self._scope else ""

    def _read_state(self, fields: Fields, line: int) -> tuple[dict[str, Any], list[str]]:
        word, lane = _first(fields, "status"), _first(fields, "lane")
        is_state = not word and words.get_status(lane) != ""
        state = words.parse_status(self._draft, lane if is_state else word, line)
        share = self._read_share(fields, "done", line)
        if share == 1 and state["status"] != "completed":
            state = {"status": "completed"}
        elif share and state["status"] == "pending":
            state = {"status": "in_progress"}
        return state, [f"list:{lane}"] if lane and not is_state else []

    def _read_share(self, fields: Fields, field: str, line: int) -> float:
        """Return the largest share of a field's values. Unknown values mean no, with a remark."""
        shares = [0.0]
        for name, value in fields.get(field, {}).items():
            share = parse_share(value)
            if share is None:
                self._draft.note_change(f"`{name}` “{clip(one_line(to_text(value)), 40)}”, read as no", line)
            shares.append(share or 0)
        return max(shares)

    def _read_priority(self, text: str, line: int) -> str:
        if text in self._priorities:
            return self._priorities[text]
        return words.parse_priority(self._draft, f"p{text}" if text.isdecimal() else text, line)

    def _read_when(self, fields: Fields, field: str, line: int) -> Any:
        for name, value in fields.get(field, {}).items():
            text = value if isinstance(value, int | float) else self._convert_day(to_text(value).strip())
            if text:
                return words.parse_when(self._draft, text, name, line, midnight_is_day=True)
        return None

    def _resolve(self, name: str) -> str:
        """Return the `ref` of the task with this id or title. The id 7 may also be written as F7 or #7."""
        number = _NUMBERED.fullmatch(name)
        return (
            self._refs.get(name)
            or self._refs.get(f"\0{name}")
            or (self._refs.get(number[1]) if number else "")
            or f"?{name}"
        )

    def _resolve_all(self, fields: Fields, field: str) -> list[str]:
        refs: list[str] = []
        for value in fields.get(field, {}).values():
            for other in to_list(value):
                record = to_object(other)
                ids = (record[name] for name in ("taskId", "id", "name", "title") if record.get(name))
                text = to_text(next(ids, other)).strip()
                parts = [text] if self._resolve(text)[:1] != "?" else _SEPARATOR.split(text)
                refs += [self._resolve(part.strip()) for part in parts if part.strip()]
        return refs


def _first(fields: Fields, field: str) -> str:
    """Return the first non-empty text of a field."""
    for value in fields.get(field, {}).values():
        first = next(iter(to_list(value)), None)
        record = to_object(first)
        if text := to_text(next((record[key] for key in ("id", "title", "name") if record.get(key)), first)).strip():
            return text
    return ""


def _join(fields: Fields, field: str) -> str:
    return "\n\n".join(filter(None, (_to_lines(value).strip() for value in fields.get(field, {}).values())))


def _to_lines(value: Any) -> str:
    """Convert a value to text. A list becomes a list of lines, and an object the values of its members."""
    if not isinstance(value, list):
        return to_text(value)
    items = ((to_object(item), item) for item in to_list(value))
    lines = (
        " · ".join(filter(None, map(to_text, record.values()))) if record else to_text(item) for record, item in items
    )
    return "\n".join(f"- {line}" for line in lines if line)


def _list_notes(value: Any) -> list[Note]:
    notes: list[Note] = []
    for item in to_list(value):
        record = to_object(item) or {"text": item}
        text = next((record[name] for name in ("text", "body", "content", "note") if record.get(name)), "")
        author = "".join(to_texts([record.get("author") or record.get("user")]))
        at = next((record[name] for name in ("at", "created_at", "createdAt", "date") if record.get(name)), "")
        notes.append(words.build_note(to_text(text), author, at))
    return notes


def _list_owners(fields: Fields) -> list[str]:
    owners: dict[str, None] = {}
    for name, value in fields.get("owner", {}).items():
        # Only plural columns contain several names: a single one may be “Doe, Jane”.
        is_one = isinstance(value, str) and not name.endswith("s")
        texts = to_texts(to_list(value) if is_one or isinstance(value, dict) else value)
        owners |= dict.fromkeys(_AFTER_NAME.sub("", owner.strip()).strip() for owner in texts)
    return [owner for owner in owners if owner]


def _list_labels(fields: Fields) -> list[str]:
    labels: list[str] = []
    for field in sorted(fields, key=lambda name: name != "labels"):
        for value in fields[field].values():
            texts = _SEPARATOR.split(value) if isinstance(value, str) else to_texts(to_list(value))
            names = [text.strip() for text in texts if text.strip()]
            if field == "kind":
                labels += [name.lower() for name in names if name.lower() not in _PLAIN_KINDS]
            elif field == "labels" or field.startswith("label:"):
                labels += [f"{field[6:]}:{name}" if field != "labels" else name for name in names]
    return labels


def _list_urls(fields: Fields) -> list[str]:
    texts: list[str] = []
    for value in fields.get("url", {}).values():
        for item in to_list(value):
            texts.append(to_text(to_object(item).get("url") or to_object(item).get("link") or item).strip())
    return [text for text in texts if text]


def _read_estimate(fields: Fields) -> int | None:
    hours = _first(fields, "hours")
    if hours.replace(".", "", 1).isdecimal():
        return round(min(float(hours), 1e9) * 3_600_000)
    return words.parse_duration_ms(_first(fields, "duration"))
