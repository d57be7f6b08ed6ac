"""`punch why`: what keeps a task from being started, as a short tree."""

from collections.abc import Iterator
from typing import Any

from punchlist.cli.context import Context, one_id
from punchlist.cli.look import Look
from punchlist.cli.render import FINISHED, cut, since
from punchlist.text import safe

Task = dict[str, Any]

_MOST_LINES = 40


def run_why(context: Context) -> int:
    """Tell why a task is not ready, or that it is and how many are before it."""
    wanted = one_id(str(context.args.task))
    task = context.ask("task.get", task=wanted)["task"]
    tasks: list[Task] = context.ask("task.list")["tasks"]
    conversation: dict[str, Any] = context.ask("conversation.get")["conversation"]
    reasons = Reasons(tasks, conversation.get("settings", {}), context.look)
    tree = list(reasons.tree(task))
    if not tree and task.get("status") == "pending":
        ready = context.ask("task.list", ready=True)["tasks"]
        tree = [(0, _place(task, ready))]
    look = context.look
    lines = [f"#{safe(wanted)} {safe(str(task['title']))}"]
    lines += [f"{'  ' * (depth + 1)}{look.glyphs['arrow']} {text}" for depth, text in tree[:_MOST_LINES]]
    if len(tree) > _MOST_LINES:
        lines.append(f"  {look.glyphs['cut']} {len(tree) - _MOST_LINES} more")
    value = {"task": wanted, "ready": not _keeps(task, tree), "reasons": [{"depth": d, "text": t} for d, t in tree]}
    return context.answer(value, [cut(line, look.width, look.glyphs["cut"]) for line in lines])


class Reasons:
    """What keeps tasks of one list from being started.

    Args:
        tasks: The list, as values of the wire.
        settings: The conversation's settings.
        look: Says how late it is.
    """

    def __init__(self, tasks: list[Task], settings: dict[str, Any], look: Look) -> None:
        self._tasks = {task["id"]: task for task in tasks}
        self._settings = settings
        self._look = look

    def tree(self, task: Task) -> Iterator[tuple[int, str]]:
        """Depth and sentence of each reason, causes below what they cause. A cause is told once."""
        seen: set[str] = {task["id"]}
        if task.get("status") == "pending":
            yield from ((0, text) for text in self._queue(task))
        stack = [(0, reason) for reason in reversed(self._reasons(task))]
        while stack:
            depth, (text, cause) = stack.pop()
            again = cause is not None and cause in seen
            yield depth, text + (" (see above)" if again else "")
            if cause is not None and not again and cause in self._tasks:
                seen.add(cause)
                stack.extend((depth + 1, reason) for reason in reversed(self._reasons(self._tasks[cause])))

    def _queue(self, task: Task) -> Iterator[str]:
        """What keeps the whole list from going on."""
        every = self._tasks.values()
        failed = [one for one in every if one.get("status") == "failed"]
        if failed and self._settings.get("on_failure") == "stop":
            yield f"the list stops at failures, and {_named(failed[0])} has failed: reopen, complete or delete it"
        running = [one for one in every if one.get("status") == "in_progress" and one["id"] != task["id"]]
        if running and self._settings.get("execution") == "serial":
            yield f"the list runs one task at a time, and {_named(running[0])} is {self._progress(running[0])}"

    def _reasons(self, task: Task) -> list[tuple[str, str | None]]:
        status = task.get("status")
        if status == "in_progress":
            return [(f"it is {self._progress(task)}", None)]
        if status == "paused":
            return [("it is paused: punch resume " + safe(task["id"]), None)]
        if status in FINISHED:
            return [(f"it is {status}: punch reopen {safe(task['id'])}", None)]
        reasons: list[tuple[str, str | None]] = [
            (f"waits for {_named(self._tasks[one])} ({safe(str(self._tasks[one]['status']))})", one)
            for one in task.get("open_blockers", ())
            if one in self._tasks
        ]
        parent = self._tasks.get(task.get("parent") or "")
        if parent is not None and parent.get("status") in ("paused", "failed"):
            reasons.append((f"its parent {_named(parent)} is {safe(str(parent['status']))}", None))
        return reasons

    def _progress(self, task: Task) -> str:
        words = ["in progress"]
        if task.get("owner"):
            words.append(f"with {safe(str(task['owner']))}")
        if task.get("lease_expires_at") and self._look.now:
            words.append(f"for another {since(task['lease_expires_at'] - self._look.now)} at least")
        if task.get("attempts", 0) > 1:
            words.append(f"(attempt {task['attempts']})")
        return " ".join(words)


def _named(task: Task) -> str:
    return f"#{safe(task['id'])} {safe(str(task['title']))}"


def _place(task: Task, ready: list[Task]) -> str:
    urgencies = ("urgent", "high", "normal", "low")
    ready = sorted(ready, key=lambda one: urgencies.index(one.get("priority", "normal")))
    before = [one["id"] for one in ready].index(task["id"]) if any(one["id"] == task["id"] for one in ready) else 0
    if not before:
        return "it is ready, and the next one to be claimed"
    return f"it is ready; {before} {'is' if before == 1 else 'are'} before it, {_named(ready[0])} first"


def _keeps(task: Task, tree: list[tuple[int, str]]) -> bool:
    return task.get("status") != "pending" or not any(text.startswith("it is ready") for _, text in tree)
