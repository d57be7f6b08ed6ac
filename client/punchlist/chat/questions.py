"""What the person has to agree to: the question, the calls that wait for it, and whether they still mean the same."""

from typing import Any

import msgspec

from punchlist.chat.rules.reading import Intent
from punchlist.chat.toolset import Wanted, tasks_named
from punchlist.tools.claims import name_of

_NAMED = 5
"""How many of those who work on tasks a question names."""


class Known(msgspec.Struct, frozen=True):
    """A task as it was when somebody spoke of it. `owner` is who was working on it, if it was somebody else."""

    title: str
    created_at: int
    owner: str = ""


class Question(msgspec.Struct, frozen=True):
    """An open question: its text, the calls that a yes makes, the tasks they are about, and what may follow them."""

    text: str
    calls: tuple[Wanted, ...]
    tasks: dict[str, Known]
    intent: str
    ids: tuple[str, ...] = ()
    title: str = ""

    @property
    def pending(self) -> Intent:
        """The question as the rules for answers see it."""
        return Intent(self.intent, self.ids, title=self.title)

    @property
    def about(self) -> list[str]:
        """The tasks, to be shown beside the question."""
        return [f"#{id} {task.title}" for id, task in self.tasks.items()]


def question_of(calls: list[Wanted], tasks: dict[str, Known], count: int) -> Question:
    """One question for all calls of a step that have to be asked about.

    Args:
        calls: The calls, at least one. Deletions become one call.
        tasks: The tasks that they are about.
        count: How many tasks the list has.
    """
    doomed = list(dict.fromkeys(id for one in calls if one.tool == "delete_todo_task" for id in tasks_named(one)))
    renames = [one for one in calls if one.tool == "update_todo_task"]
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
    for one in renames:
        waiting.append(one)
        parts.append(f"rename task {', '.join(tasks_named(one))}")
    ids = (*doomed, *(id for one in renames for id in tasks_named(one)))
    only = renames[0] if len(renames) == 1 and not doomed else None
    at_work = [
        f"{name_of(tasks[id].owner)} is working on task {id}. " for id in doomed if id in tasks and tasks[id].owner
    ]
    more = f"Others are working on {len(at_work) - _NAMED} more. " if len(at_work) > _NAMED else ""
    return Question(
        text=f"{''.join(at_work[:_NAMED])}{more}Are you sure you want to {' and '.join(parts)}? (yes/no)",
        calls=tuple(waiting),
        tasks={id: tasks[id] for id in ids if id in tasks},
        intent="update" if only is not None else "delete",
        ids=ids,
        title="" if only is None else str(only.arguments.get("title", "")),
    )


def open_question(answer: dict[str, Any] | None) -> Question | None:
    """The question that an answer has left open."""
    if answer is None or not answer.get("asks"):
        return None
    try:
        return msgspec.convert(answer["asks"], Question)
    except msgspec.ValidationError:
        return None
