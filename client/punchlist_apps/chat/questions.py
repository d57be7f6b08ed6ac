"""What waits for the person: the question, the calls that wait for its answer, and whether they still mean the same."""

from typing import Any

import msgspec

from punchlist.base.text import one_line
from punchlist.tools.phrases import format_actor
from punchlist_apps.chat.rules.reading import Intent
from punchlist_apps.chat.toolset import Wanted, tasks_named

_NAMED = 5
"""How many of those who work on tasks a question names."""

_DOES = {
    "delete_todo_task": ("delete", "delete"),
    "update_todo_task": ("update", "rename"),
    "complete_todo_task": ("complete", "complete"),
    "start_todo_task": ("start", "start"),
    "reopen_todo_task": ("reopen", "reopen"),
    "approve_todo_task": ("approve", "approve"),
    "assign_todo_task": ("assign", "assign"),
    "set_todo_priority": ("priority", "change the priority of"),
}
"""Tool that may be asked about → the intent, and the verb of the question."""


class Known(msgspec.Struct, frozen=True):
    """A task as it was when somebody spoke of it. `owner` is who was working on it, if it was somebody else."""

    title: str
    created_at: int
    owner: str = ""


class Question(msgspec.Struct, frozen=True):
    """An open question: its text, the calls that a yes makes, the tasks they are about, and what may follow them.

    `intent` is empty if the calls are of several kinds. `need` is empty if the question waits for yes or no; else it is
    what is missing to do `intent`: `which` of the tasks, or the `title`. No calls wait for that.
    """

    text: str
    calls: tuple[Wanted, ...]
    tasks: dict[str, Known]
    intent: str
    ids: tuple[str, ...] = ()
    title: str = ""
    priority: str = ""
    need: str = ""

    @property
    def pending(self) -> Intent:
        return Intent(self.intent, self.ids, title=self.title, priority=self.priority, need=self.need)

    @property
    def about(self) -> list[str]:
        renames = [one for one in self.calls if one.tool == "update_todo_task"]
        new = {id: one_line(str(one.arguments.get("title", ""))) for one in renames for id in tasks_named(one)}
        return [
            f"#{id} {one_line(task.title)}" + (f" → {new[id]}" if id in new else "") for id, task in self.tasks.items()
        ]


def question_of(calls: list[Wanted], tasks: dict[str, Known], count: int) -> Question:
    """One question for all calls of a step that have to be asked about."""
    doomed = list(dict.fromkeys(id for one in calls if one.tool == "delete_todo_task" for id in tasks_named(one)))
    others = [one for one in calls if one.tool != "delete_todo_task"]
    waiting: list[Wanted] = []
    parts: list[str] = []
    if doomed:
        first, *also = doomed
        arguments: dict[str, Any] = {"task_id": first, **({"also": also} if also else {})}
        waiting.append(Wanted("d", "delete_todo_task", arguments))
        if len(doomed) > 1 and len(doomed) == count:
            parts.append(f"delete all {count} tasks")
            waiting.append(Wanted("l", "list_todo_tasks"))
        else:
            parts.append(f"delete task{'s' if len(doomed) > 1 else ''} {', '.join(doomed)}")
    for one in others:
        waiting.append(one)
        parts.append(f"{_DOES[one.tool][1]} task {', '.join(tasks_named(one))}")
    ids = (*doomed, *(id for one in others for id in tasks_named(one)))
    intents = {_DOES[one.tool][0] for one in calls}
    at_work = [
        f"{format_actor(tasks[id].owner)} is working on task {id}. " for id in doomed if id in tasks and tasks[id].owner
    ]
    more = f"Others are working on {len(at_work) - _NAMED} more. " if len(at_work) > _NAMED else ""
    return Question(
        text=f"{''.join(at_work[:_NAMED])}{more}Are you sure you want to {' and '.join(parts)}? (yes/no)",
        calls=tuple(waiting),
        tasks={id: tasks[id] for id in ids if id in tasks},
        intent=intents.pop() if len(intents) == 1 else "",
        ids=ids,
        title=str(calls[0].arguments.get("title", "")) if len(calls) == 1 else "",
        priority=str(calls[0].arguments.get("priority", "")) if len(calls) == 1 else "",
    )


def question_for(missing: Intent, text: str, tasks: dict[str, Known]) -> Question | None:
    """The question for what is missing, if its answer can be told from another message."""
    if missing.need not in ("which", "title"):
        return None
    return Question(
        text, (), tasks, missing.goal, missing.ids, missing.title, priority=missing.priority, need=missing.need
    )


def open_question(answer: dict[str, Any] | None) -> Question | None:
    """The question that an answer has left open: `asks` waits for yes or no, `needs` for what is missing."""
    given: Any = None if answer is None else answer.get("asks") or answer.get("needs")
    try:
        return msgspec.convert(given, Question) if given else None
    except msgspec.ValidationError:
        return None
