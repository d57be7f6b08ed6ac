"""Agents that work on shared lists at random, and checks of the resulting lists."""

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from punchlist import Client, connect


class ToolReply(NamedTuple):
    """Result of a tool call."""

    text: str
    data: Any
    refused: bool


CallTool = Callable[[str, dict[str, Any]], Awaitable[ToolReply]]


class Worker:
    """An agent that checks every reply against its own tasks.

    Attributes:
        place: Prefix of its tasks' titles. No title with another prefix may appear in a reply.
        task: Its task in progress.
        done: Tasks that it has completed.
        added: Number of tasks that it has added.
        list: Name of its list, from the last reply.
    """

    def __init__(self, name: str, place: str, chance: random.Random) -> None:
        self.name = name
        self.place = place
        self.chance = chance
        self.task: str | None = None
        self.done: list[str] = []
        self.added = 0
        self.list = ""

    async def step(self, call_tool: CallTool) -> None:
        calls: list[tuple[str, dict[str, Any]]] = [
            ("plan", {"tasks": [f"{self.place} {self.name} {self.added + number}" for number in (1, 2)]}),
            ("next", {}),
            ("next", {"result": f"by {self.name}"}),
            ("next", {"result": f"by {self.name}"}),
            ("tasks", {"since": "last"}),
        ]
        await self._call(call_tool, *self.chance.choice(calls))

    async def finish(self, call_tool: CallTool) -> None:
        """Work until no task is available."""
        await self._call(call_tool, "next", {"result": f"by {self.name}"} if self.task else {})
        while self.task is not None:
            await self._call(call_tool, "next", {"result": f"by {self.name}"})

    async def _call(self, call_tool: CallTool, tool: str, arguments: dict[str, Any]) -> None:
        text, data, refused = await call_tool(tool, arguments)
        if data is not None:
            self.list = data.get("conversation", self.list)
        for title in (line.split("] ")[-1] for line in text.splitlines() if line.startswith("#")):
            assert "done" in title or self.place in title, (self.name, text)
        if tool == "plan":
            assert not refused, (self.name, text)
            self.added += 2
        elif tool == "next":
            self._check(arguments, refused, data, text)

    def _check(self, arguments: dict[str, Any], refused: bool, data: Any, text: str) -> None:
        if refused:
            assert arguments and self.task is None, (self.name, self.task, text)
            assert "you have no task in progress" in text
            return
        if arguments:
            assert data["finished"] == self.task, (self.name, self.task, text)
            self.done.append(data["finished"])
            self.task = None
        following = data["next"] and data["next"]["id"]
        assert self.task in (None, following), (self.name, self.task, text)
        self.task = following


def check_list(client: Client, name: str, workers: list[Worker]) -> int:
    """Check that each task of a list was completed once, by its owner and with its result. Return the number of
    tasks."""
    tasks = {task.id: task for task in client.conversation(name).list()}
    done = Counter(task for worker in workers for task in worker.done)
    assert set(done.values()) <= {1}, done
    assert {task.id for task in tasks.values() if task.status == "completed"} == set(done) == set(tasks)
    assert len(tasks) == sum(worker.added for worker in workers)
    assert {task.title.split(" ")[0] for task in tasks.values()} <= {workers[0].place}
    owners: list[str] = []
    for worker in workers:
        assert {tasks[id].result_summary for id in worker.done} <= {f"by {worker.name}"}
        names = {tasks[id].owner for id in worker.done}
        assert len(names) <= 1, (worker.name, names)
        owners += names
    assert len(owners) == len(set(owners)), "two sessions, two names"
    return len(done)


def check_lists(socket: str, workers: list[Worker], users: tuple[str, ...]) -> int:
    """Check the lists of all places, which are users or repositories. Return the number of completed tasks."""
    done = 0
    for place in dict.fromkeys(worker.place for worker in workers):
        team = [worker for worker in workers if worker.place == place]
        user: Any = {"user": place} if place in users else {}
        with connect(socket=socket, autostart=False, **user) as client:
            lists = {"my:default"} if user else {worker.list for worker in team}
            assert len(lists) == 1, "a worktree shares its repository's list"
            done += check_list(client, lists.pop(), team)
    return done
