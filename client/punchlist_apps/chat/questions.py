"""Questions to the person: requests to confirm pending calls, and requests for missing details."""

from typing import Any

import msgspec

from punchlist.base.text import one_line
from punchlist.tools.phrases import format_actor
from punchlist_apps.chat.rules.reading import Intent
from punchlist_apps.chat.toolset import ToolCall, task_ids_of

_MAX_OWNERS = 5
"""Maximum number of owners named in a question."""

_ACTIONS = {
    "delete_todo_task": ("delete", "delete"),
    "update_todo_task": ("update", "rename"),
    "complete_todo_task": ("complete", "complete"),
    "start_todo_task": ("start", "start"),
    "reopen_todo_task": ("reopen", "reopen"),
    "approve_todo_task": ("approve", "approve"),
    "assign_todo_task": ("assign", "assign"),
    "set_todo_priority": ("priority", "change the priority of"),
}
"""Tool that may need confirmation → its intent and the verb to use in the question."""


class NamedTask(msgspec.Struct, frozen=True):
    """A task named in a message, as it was when the message was sent.

    Attributes:
        owner: The agent or person working on it at that time; empty if that is this person or one of their chats.
    """

    title: str
    created_at: int
    owner: str = ""


class Question(msgspec.Struct, frozen=True):
    """An open question: its text, the calls to make after a yes, and the tasks that they affect.

    Attributes:
        intent: Name of the intent that the question is about; empty if the calls are of several kinds.
        need: Empty if the question waits for yes or no. Otherwise the detail that `intent` lacks: `which` of the tasks,
            or the `title`. Such a question has no calls.
    """

    text: str
    calls: tuple[ToolCall, ...]
    tasks: dict[str, NamedTask]
    intent: str
    ids: tuple[str, ...] = ()
    title: str = ""
    priority: str = ""
    need: str = ""

    @property
    def pending_intent(self) -> Intent:
        return Intent(self.intent, self.ids, title=self.title, priority=self.priority, need=self.need)

    @property
    def about(self) -> list[str]:
        renames = [call for call in self.calls if call.tool == "update_todo_task"]
        new_titles = {
            id: one_line(str(call.arguments.get("title", ""))) for call in renames for id in task_ids_of(call)
        }
        return [
            f"#{id} {one_line(task.title)}" + (f" → {new_titles[id]}" if id in new_titles else "")
            for id, task in self.tasks.items()
        ]


def build_question(calls: list[ToolCall], tasks: dict[str, NamedTask], count: int) -> Question:
    """Build one question for all calls in a step that need confirmation. `count` is the number of tasks in the list."""
    doomed = list(dict.fromkeys(id for call in calls if call.tool == "delete_todo_task" for id in task_ids_of(call)))
    others = [call for call in calls if call.tool != "delete_todo_task"]
    waiting: list[ToolCall] = []
    parts: list[str] = []
    if doomed:
        first, *also = doomed
        arguments: dict[str, Any] = {"task_id": first, **({"also": also} if also else {})}
        waiting.append(ToolCall("d", "delete_todo_task", arguments))
        if len(doomed) > 1 and len(doomed) == count:
            parts.append(f"delete all {count} tasks")
            waiting.append(ToolCall("l", "list_todo_tasks"))
        else:
            parts.append(f"delete task{'s' if len(doomed) > 1 else ''} {', '.join(doomed)}")
    for call in others:
        waiting.append(call)
        parts.append(f"{_ACTIONS[call.tool][1]} task {', '.join(task_ids_of(call))}")
    ids = (*doomed, *(id for call in others for id in task_ids_of(call)))
    intents = {_ACTIONS[call.tool][0] for call in calls}
    owners = [
        f"{format_actor(tasks[id].owner)} is working on task {id}. " for id in doomed if id in tasks and tasks[id].owner
    ]
    more = f"Others are working on {len(owners) - _MAX_OWNERS} more. " if len(owners) > _MAX_OWNERS else ""
    return Question(
        text=f"{''.join(owners[:_MAX_OWNERS])}{more}Are you sure you want to {' and '.join(parts)}? (yes/no)",
        calls=tuple(waiting),
        tasks={id: tasks[id] for id in ids if id in tasks},
        intent=intents.pop() if len(intents) == 1 else "",
        ids=ids,
        title=str(calls[0].arguments.get("title", "")) if len(calls) == 1 else "",
        priority=str(calls[0].arguments.get("priority", "")) if len(calls) == 1 else "",
    )


def build_missing_question(missing: Intent, text: str, tasks: dict[str, NamedTask]) -> Question | None:
    """Build the question for a missing detail, or return None if the next message can't supply it."""
    if missing.need not in ("which", "title"):
        return None
    return Question(
        text, (), tasks, missing.goal, missing.ids, missing.title, priority=missing.priority, need=missing.need
    )


def parse_question(answer: dict[str, Any] | None) -> Question | None:
    """Return an answer's open question. `asks` waits for yes or no, `needs` for a missing detail."""
    content: Any = None if answer is None else answer.get("asks") or answer.get("needs")
    try:
        return msgspec.convert(content, Question) if content else None
    except msgspec.ValidationError:
        return None
