"""task-master: `.taskmaster/tasks/tasks.json`, either in the old format with one list or in the tagged format."""

from collections.abc import Sequence
from typing import Any, cast

from punchlist_apps.files.importers import words
from punchlist_apps.files.importers.document import Document, expect_list, expect_object, parse_json, to_text
from punchlist_apps.files.importers.draft import Draft, Item, join_sections

_MAIN = "master"
_READ = frozenset(
    "id title description details testStrategy acceptanceCriteria status priority dependencies subtasks"
    " assignee".split()
)
_DERIVED = frozenset(("parentId", "parentTaskId", "updatedAt", "previousStatus"))


def read(documents: Sequence[Document]) -> Draft:
    """Read the tasks of all tags. Tags other than `master` become labels, and subtasks become children."""
    document = documents[0]
    draft = Draft("taskmaster", document.name)
    value = expect_object(parse_json(document), "the file", document.name)
    if isinstance(value.get("tasks"), list):
        # A file of the old format that a later version changed has both the plain list and tags.
        name = "tasks" if _MAIN in value else _MAIN
        value = {name: {"tasks": value["tasks"]}} | {tag: value[tag] for tag in value if tag != "tasks"}
    for tag, holder in value.items():
        if not isinstance(holder, dict) or "tasks" not in holder:
            draft.skip_unread({tag: holder}, ())
            continue
        tasks = expect_list(cast("dict[str, Any]", holder)["tasks"], f"{tag}.tasks", document.name)
        _Tag(draft, tag, document.name).read(tasks)
    return draft.finish()


class _Tag:
    """Reads the tasks of one tag. Each tag numbers its tasks from 1."""

    def __init__(self, draft: Draft, tag: str, name: str) -> None:
        self._draft = draft
        self._prefix = "" if tag == _MAIN else f"{tag}/"
        self._labels = [] if tag == _MAIN else [tag]
        self._name = name
        self._dependencies: list[tuple[Item, Any, str]] = []

    def read(self, tasks: list[Any]) -> None:
        for index, value in enumerate(tasks):
            task = expect_object(value, f"tasks[{index}]", self._name)
            parent = self._add(task, to_text(task.get("id")))
            for number, child in enumerate(expect_list(task.get("subtasks") or [], "subtasks", self._name)):
                subtask = expect_object(child, f"tasks[{index}].subtasks[{number}]", self._name)
                above = to_text(task.get("id"))
                ident = to_text(subtask.get("id"))
                whole = ident if not ident or ident.startswith(f"{above}.") else f"{above}.{ident}"
                self._add(subtask, whole, above, parent)
        for item, dependencies, above in self._dependencies:
            for other in cast("list[Any]", dependencies) if isinstance(dependencies, list) else []:
                # A plain number in a subtask refers to the sibling with this number, or else to a task.
                sibling = f"{self._prefix}{above}.{to_text(other)}"
                is_sibling = bool(above) and sibling != item.ref and self._draft.find(sibling) is not None
                item.blocked_by.append(sibling if is_sibling else f"{self._prefix}{to_text(other)}")

    def _add(self, task: dict[str, Any], ident: str, above: str = "", parent: Item | None = None) -> Item | None:
        draft = self._draft
        draft.skip_unread(task, _READ | _DERIVED)
        state = words.parse_status(draft, to_text(task.get("status")))
        item = draft.add(
            task.get("title") or task.get("description"),
            key=f"{self._prefix}{ident}" if ident else "",
            description=join_sections(
                to_text(task.get("description")),
                details=to_text(task.get("details")),
                test_strategy=to_text(task.get("testStrategy")),
                acceptance_criteria=to_text(task.get("acceptanceCriteria")),
            ),
            priority=words.parse_priority(draft, to_text(task.get("priority"))),
            owner=to_text(task.get("assignee")),
            state=state,
            labels=self._labels,
            parent=parent.ref if parent else "",
        )
        if item is not None:
            self._dependencies.append((item, task.get("dependencies"), above))
        return item
