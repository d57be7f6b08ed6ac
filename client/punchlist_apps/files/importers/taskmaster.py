"""task-master: `.taskmaster/tasks/tasks.json`, the old form with one list and the tagged one."""

from collections.abc import Sequence
from typing import Any, cast

from punchlist_apps.files.importers import words
from punchlist_apps.files.importers.document import Document, as_list, as_object, json_value, text_of
from punchlist_apps.files.importers.draft import Draft, Item, sections

_MAIN = "master"
_READ = frozenset(
    "id title description details testStrategy acceptanceCriteria status priority dependencies subtasks"
    " assignee".split()
)
_COUNTED = frozenset(("parentId", "parentTaskId", "updatedAt", "previousStatus"))


def read(documents: Sequence[Document]) -> Draft:
    """The tasks of all tags; a tag other than `master` is a label. Subtasks are parts of their task."""
    document = documents[0]
    draft = Draft("taskmaster", document.name)
    value = as_object(json_value(document), "the file", document.name)
    lists = {_MAIN: value} if "tasks" in value else value
    for tag, holder in lists.items():
        if not isinstance(holder, dict) or "tasks" not in holder:
            draft.pass_over(f"`{tag}`")
            continue
        tasks = as_list(cast("dict[str, Any]", holder)["tasks"], f"{tag}.tasks", document.name)
        _Tag(draft, tag, document.name).read(tasks)
    return draft.finish()


class _Tag:
    """The tasks of one tag: their ids count from 1 in each."""

    def __init__(self, draft: Draft, tag: str, name: str) -> None:
        self._draft = draft
        self._prefix = "" if tag == _MAIN else f"{tag}/"
        self._labels = [] if tag == _MAIN else [tag]
        self._name = name
        self._waits: list[tuple[Item, Any, str]] = []

    def read(self, tasks: list[Any]) -> None:
        for index, one in enumerate(tasks):
            task = as_object(one, f"tasks[{index}]", self._name)
            parent = self._add(task, text_of(task.get("id")))
            for number, child in enumerate(as_list(task.get("subtasks") or [], "subtasks", self._name)):
                part = as_object(child, f"tasks[{index}].subtasks[{number}]", self._name)
                above = text_of(task.get("id"))
                below = text_of(part.get("id"))
                self._add(part, below if below.startswith(f"{above}.") else f"{above}.{below}", above, parent)
        for item, waits, above in self._waits:
            for other in cast("list[Any]", waits) if isinstance(waits, list) else []:
                # A subtask's plain number is its sibling's, or else a task's.
                near = f"{self._prefix}{above}.{text_of(other)}"
                is_near = bool(above) and near != item.ref and self._draft.find(near) is not None
                item.blocked_by.append(near if is_near else f"{self._prefix}{text_of(other)}")

    def _add(self, task: dict[str, Any], ident: str, above: str = "", parent: Item | None = None) -> Item | None:
        draft = self._draft
        draft.pass_over_rest(task, _READ | _COUNTED)
        state = words.status(draft, text_of(task.get("status")))
        item = draft.add(
            task.get("title") or task.get("description"),
            key=f"{self._prefix}{ident}",
            description=sections(
                text_of(task.get("description")),
                details=text_of(task.get("details")),
                test_strategy=text_of(task.get("testStrategy")),
                acceptance_criteria=text_of(task.get("acceptanceCriteria")),
            ),
            priority=words.priority(draft, text_of(task.get("priority"))),
            owner=text_of(task.get("assignee")),
            state=state,
            labels=self._labels,
            parent=parent.ref if parent else "",
        )
        if item is not None:
            self._waits.append((item, task.get("dependencies"), above))
        return item
