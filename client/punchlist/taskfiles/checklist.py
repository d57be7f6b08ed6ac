"""The checklist format: `.agents/tasks/ID.json` for each conversation, `{"tasks": [{id, title, …, done}]}`. No I/O."""

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
    """One file with the whole list, as `ListTasks` and related tools return it."""

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
        tasks = list(tasks)
        ids = file_ids(tasks)
        items = [{"id": ids[task.id], **self.fields(task)} for task in tasks]
        source = {"conversation": origin.conversation, "epoch": origin.epoch, "version": origin.version}
        return {f"{stem}.json": write({"tasks": items, MEMBER: {**source, "digest": digest_of(items)}})}

    def merge_foreign_members(self, data: bytes, present: bytes) -> bytes:
        """Return `data` with the members that only the existing file has, at top level and in tasks with equal ids."""
        try:
            new, old = load_object(data), load_object(present)
            value: Any = old.get("tasks")
            items = cast("list[Any]", value) if isinstance(value, list) else []
            objects = [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
            old_tasks = {id_in(item): item for item in objects}
            tasks = [{**old_tasks.get(item["id"], {}), **item} for item in new["tasks"]]
            merged = write({**old, **new, "tasks": tasks})
            load_object(merged)
        except (Unreadable, RecursionError):
            return data  # the existing file, or the merged one, can't be read
        return merged

    def parse(self, name: str, data: bytes) -> Document:
        value = load_object(data)
        items = value.get("tasks")
        if not isinstance(items, list):
            raise Unreadable("tasks: expected a list")
        tasks: dict[str, Fields] = {}
        contents: list[dict[str, Any]] = []
        for item in cast("list[Any]", items):
            if not isinstance(item, dict):
                raise Unreadable("tasks: expected objects")
            fields = _fields(cast("dict[str, Any]", item))
            id = id_in(cast("dict[str, Any]", item))
            contents.append({"id": id, **fields})
            # A task without an id, or with the id of an earlier task (a copied line), is new.
            tasks[id if id and id not in tasks else f" {digest_of([len(tasks), fields])}"] = fields
        return Document(tasks, origin_in(value), digest_of(contents), is_whole=True)

    def fields(self, task: Task) -> Fields:
        return {"title": task.title, "description": task.description, "done": task.status == "completed"}


def file_ids(tasks: Iterable[Task]) -> dict[str, str]:
    """Map task ids to their ids in files. If a program added the task to a file under a unique id, use that id."""
    tasks = list(tasks)
    taken = {task.id for task in tasks}
    ids: dict[str, str] = {}
    for task in tasks:
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
