"""The checklist form: `.agents/tasks/ID.json` for each conversation, `{"tasks": [{id, title, …, done}]}`. Pure."""

from collections.abc import Iterable
from typing import Any, cast

from punchlist.taskfiles.file_format import (
    FOREIGN_ID,
    MEMBER,
    Document,
    Fields,
    Origin,
    Unreadable,
    digest_of,
    id_in,
    load_object,
    origin_in,
    text_in,
    title_in,
    write,
)
from punchlist.taskfiles.file_names import conversation_of, stems_of
from punchlist_schemas.things import Task


class Checklist:
    """The whole list in one file, as `ListTasks` and its siblings show it."""

    name = "checklist"
    is_single = True

    def stems(self, conversation: str) -> tuple[str, ...]:
        return stems_of(conversation)

    def conversation(self, stem: str) -> str | None:
        return conversation_of(stem)

    def folder(self, stem: str) -> tuple[str, ...]:
        return (".agents", "tasks")

    def is_document(self, name: str, stem: str) -> bool:
        return name == f"{stem}.json"

    def render(self, origin: Origin, tasks: Iterable[Task], stem: str) -> dict[str, bytes]:
        shown = list(tasks)
        ids = file_ids(shown)
        items = [{"id": ids[task.id], **self.fields(task)} for task in shown]
        said = {"conversation": origin.conversation, "epoch": origin.epoch, "version": origin.version}
        return {f"{stem}.json": write({"tasks": items, MEMBER: {**said, "digest": digest_of(items)}})}

    def merge_foreign_members(self, data: bytes, present: bytes) -> bytes:
        """The file with members that only the present one has: its own, and those of each task by its id."""
        try:
            ours, theirs = load_object(data), load_object(present)
            found: Any = theirs.get("tasks")
            items = cast("list[Any]", found) if isinstance(found, list) else []
            objects = [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
            known = {id_in(item): item for item in objects}
            tasks = [{**known.get(item["id"], {}), **item} for item in ours["tasks"]]
            made = write({**theirs, **ours, "tasks": tasks})
            load_object(made)
        except (Unreadable, RecursionError):
            return data  # nothing was kept in it, or nothing that could be read again
        return made

    def parse(self, name: str, data: bytes) -> Document:
        value = load_object(data)
        items = value.get("tasks")
        if not isinstance(items, list):
            raise Unreadable("tasks: expected a list")
        tasks: dict[str, Fields] = {}
        shown: list[dict[str, Any]] = []
        for item in cast("list[Any]", items):
            if not isinstance(item, dict):
                raise Unreadable("tasks: expected objects")
            fields = _fields(cast("dict[str, Any]", item))
            found = id_in(cast("dict[str, Any]", item))
            shown.append({"id": found, **fields})
            # An id that is missing, or copied with its line, is a new task.
            tasks[found if found and found not in tasks else f" {digest_of([len(tasks), fields])}"] = fields
        return Document(tasks, origin_in(value), digest_of(shown), is_whole=True)

    def fields(self, task: Task) -> Fields:
        return {"title": task.title, "description": task.description, "done": task.status == "completed"}


def file_ids(tasks: Iterable[Task]) -> dict[str, str]:
    """Task id → the id that files call it by: that of whoever added it in a file, where it is unmistakable."""
    shown = list(tasks)
    taken = {task.id for task in shown}
    ids: dict[str, str] = {}
    for task in shown:
        foreign = task.metadata.get(FOREIGN_ID)
        fits = isinstance(foreign, str) and bool(foreign) and foreign not in taken
        ids[task.id] = foreign if fits and isinstance(foreign, str) else task.id
        taken.add(ids[task.id])
    return ids


def _fields(item: dict[str, Any]) -> dict[str, Any]:
    done = item.get("done", False)
    if not isinstance(done, bool):
        raise Unreadable("done: expected true or false")
    return {"title": title_in(item, "title"), "description": text_in(item, "description"), "done": done}
