"""Agents that work on shared lists at random, and the judge of what became of the tasks."""

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from punchlist import Client, connect


class Told(NamedTuple):
    """What a tool answered."""

    text: str
    data: Any
    refused: bool


CallTool = Callable[[str, dict[str, Any]], Awaitable[Told]]


class Worker:
    """One agent: what it adds, what it has, what it has finished, checked against every reply."""

    def __init__(self, name: str, place: str, chance: random.Random) -> None:
        self.name = name
        self.place = place
        """Every title begins with it: nothing of another place may be seen."""
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
        """Work until nothing is left but what others have."""
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


def judged(client: Client, name: str, workers: list[Worker]) -> int:
    """Every task of a list was completed, once, by the worker that had it and with its result; how many."""
    tasks = {task.id: task for task in client.conversation(name).list()}
    done = Counter(task for worker in workers for task in worker.done)
    assert set(done.values()) <= {1}, done
    assert {task.id for task in tasks.values() if task.status == "completed"} == set(done) == set(tasks)
    assert len(tasks) == sum(worker.added for worker in workers)
    assert {task.title.split(" ")[0] for task in tasks.values()} <= {workers[0].place}
    owners: list[str] = []
    for worker in workers:
        assert {tasks[one].result_summary for one in worker.done} <= {f"by {worker.name}"}
        names = {tasks[one].owner for one in worker.done}
        assert len(names) <= 1, (worker.name, names)
        owners += names
    assert len(owners) == len(set(owners)), "two sessions, two names"
    return len(done)


def judged_all(socket: str, workers: list[Worker], users: tuple[str, ...]) -> int:
    """The lists of all places: of users' own, and of repositories; how many tasks are completed."""
    done = 0
    for place in dict.fromkeys(worker.place for worker in workers):
        here = [one for one in workers if one.place == place]
        user: Any = {"user": place} if place in users else {}
        with connect(socket=socket, autostart=False, **user) as client:
            lists = {"my:default"} if user else {one.list for one in here}
            assert len(lists) == 1, "a worktree shares its repository's list"
            done += judged(client, lists.pop(), here)
    return done
