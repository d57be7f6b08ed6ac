"""taskwarrior: what `task export` prints, as a JSON list or one object a line."""

import re
from collections.abc import Sequence
from typing import Any, cast

from punchlist_apps.files.importers import words
from punchlist_apps.files.importers.document import Document, json_lines, object_of, text_of, texts_of
from punchlist_apps.files.importers.draft import Draft

_PRIORITIES = {"H": "high", "M": "normal", "L": "low", "": "normal"}
_READ = frozenset(
    "uuid description status project tags priority due wait scheduled start annotations depends estimate est".split()
)
_COUNTED = frozenset(("id", "urgency", "modified", "mask", "imask", "rtype", "parent"))
_URL = re.compile(r"https?://\S+")


def read(documents: Sequence[Document]) -> Draft:
    """The tasks of an export; deleted ones and the templates of recurring ones are passed over."""
    document = documents[0]
    draft = Draft("taskwarrior", document.name)
    for line, task in json_lines(document):
        state = text_of(task.get("status"))
        if state in ("deleted", "recurring"):
            passed = "deleted tasks" if state == "deleted" else "templates of recurring tasks (each task is imported)"
            draft.pass_over(passed, line)
            continue
        project = text_of(task.get("project"))
        listed: Any = task.get("annotations")
        annotations = map(object_of, cast("list[Any]", listed) if isinstance(listed, list) else ())
        notes = [words.note(one.get("description"), at=one.get("entry")) for one in annotations if one]
        waits = [words.when(draft, task.get(name), name, line, midnight_is_day=True) for name in ("wait", "scheduled")]
        draft.pass_over_rest(task, _READ | _COUNTED, line)
        status = "in_progress" if task.get("start") and state != "completed" else state
        draft.add(
            task.get("description"),
            key=text_of(task.get("uuid")),
            line=line,
            priority=_PRIORITIES.get(text_of(task.get("priority")), "normal"),
            due=words.when(draft, task.get("due"), "due", line, midnight_is_day=True),
            not_before=max((one for one in waits if one), key=lambda one: one.at, default=None),
            estimate_ms=words.duration_ms(task.get("estimate") or task.get("est")),
            notes=notes,
            links=[("url", url) for note in notes for url in _URL.findall(note.text)],
            state=words.status(draft, status, line),
            labels=[*texts_of(task.get("tags")), *([f"project:{project}"] if project else [])],
            blocked_by=texts_of(task.get("depends")),
        )
    return draft.finish()
