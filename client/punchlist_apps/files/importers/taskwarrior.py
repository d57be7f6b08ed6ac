"""taskwarrior: the output of `task export`, as a JSON list or one object per line."""

import re
from collections.abc import Sequence
from typing import Any, cast

from punchlist_apps.files.importers import words
from punchlist_apps.files.importers.document import Document, parse_json_lines, to_object, to_text, to_texts
from punchlist_apps.files.importers.draft import Draft

_PRIORITIES = {"H": "high", "M": "normal", "L": "low", "": "normal"}
_READ = frozenset(
    "uuid description status project tags priority due wait scheduled start annotations depends estimate est".split()
)
_DERIVED = frozenset(("id", "urgency", "modified", "mask", "imask", "rtype", "parent"))
_URL = re.compile(r"https?://\S+")


def read(documents: Sequence[Document]) -> Draft:
    """Read the tasks of an export. Deleted tasks and templates of recurring ones are skipped."""
    document = documents[0]
    draft = Draft("taskwarrior", document.name)
    for line, task in parse_json_lines(document):
        state = to_text(task.get("status"))
        if state in ("deleted", "recurring"):
            text = "deleted tasks" if state == "deleted" else "templates of recurring tasks (each task is imported)"
            draft.skip(text, line)
            continue
        project = to_text(task.get("project"))
        values: Any = task.get("annotations")
        annotations = map(to_object, cast("list[Any]", values) if isinstance(values, list) else ())
        notes = [words.build_note(note.get("description"), at=note.get("entry")) for note in annotations if note]
        deferrals = [
            words.parse_when(draft, task.get(name), name, line, midnight_is_day=True) for name in ("wait", "scheduled")
        ]
        draft.skip_unread(task, _READ | _DERIVED, line)
        status = "in_progress" if task.get("start") and state != "completed" else state
        draft.add(
            task.get("description"),
            key=to_text(task.get("uuid")),
            line=line,
            priority=_PRIORITIES.get(to_text(task.get("priority")), "normal"),
            due=words.parse_when(draft, task.get("due"), "due", line, midnight_is_day=True),
            not_before=max((time for time in deferrals if time), key=lambda time: time.at, default=None),
            estimate_ms=words.parse_duration_ms(task.get("estimate") or task.get("est")),
            notes=notes,
            links=[("url", url) for note in notes for url in _URL.findall(note.text)],
            state=words.parse_status(draft, status, line),
            labels=[*to_texts(task.get("tags")), *([f"project:{project}"] if project else [])],
            blocked_by=to_texts(task.get("depends")),
        )
    return draft.finish()
