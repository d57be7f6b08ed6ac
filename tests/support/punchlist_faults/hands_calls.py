"""The clients of `together` that make calls: over a socket, with the tools of two dialects, and on the command line."""

import json
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from random import Random
from typing import Any, NamedTuple

import msgspec

from punchlist.clients.sync import Client
from punchlist.tools.toolbox import Toolbox, ToolCaller
from punchlist_faults.hands import LIST, TASKS, Act, Hand, Task
from punchlist_faults.options import Violation
from punchlist_faults.process import PATIENCE_S, PUNCH, environment
from punchlist_testing.daemon import Raw


class RawHand(Hand):
    """A client that sends JSON lines over a socket. It also deletes added tasks, to limit the list's size."""

    kind = "raw"

    def __init__(self, random: Random, count: int, seconds: float, socket: str) -> None:
        super().__init__(random, count, seconds)
        self._link = Raw(socket)
        self.end = self._link.close

    def acts(self) -> Sequence[tuple[Act, float]]:
        return (
            (lambda: self._write("task.edit", "title", task=self.any_task()), 5),
            (lambda: self._write("task.edit", "description", task=self.any_shared()), 1),
            (self._status, 2),
            (lambda: self._call("task.move", task=self.any_task(), before=self.any_task()), 1),
            (lambda: self._write("task.add", "title"), 0.5),
            (self._shrink, 0.7),
        )

    def _call(self, method: str, **params: Any) -> bool:
        return "error" in self._link.call(method, conversation=LIST, actor=self.kind, **params)

    def _write(self, method: str, member: str, **params: Any) -> None:
        self.write(lambda token: self._call(method, **{member: token}, **params))

    def _status(self) -> None:
        task, status = self.any_of_ours(), self.random.choice(["completed", "pending", "in_progress"])
        if status == "completed":
            self._write("task.set_status", "result_summary", task=task, status=status)
        else:
            self._call("task.set_status", task=task, status=status)

    def _shrink(self) -> None:
        added = [task["id"] for task in self._list_tasks() if int(task["id"]) > TASKS]
        for task in self.random.sample(added, max(0, len(added) - self.random.randint(0, 30))):
            self._call("task.delete", task=task)

    def _list_tasks(self) -> list[Task]:
        tasks: list[Task] = []
        while True:
            page = self._link.result("task.list", conversation=LIST, offset=len(tasks), limit=1_000)
            tasks += page["tasks"]
            if len(tasks) >= page["total"]:
                return tasks

    def tasks(self) -> list[tuple[Any, ...]]:
        return [
            (task["id"], task["title"], task.get("description", ""), task.get("status", "pending"))
            for task in self._list_tasks()
        ]


class ToolHand(Hand):
    """A client with the tools of a dialect, called in this process or over MCP.

    Attributes:
        listing: Tool that lists tasks, and the member with the title in its result.
    """

    listing = ("", "")

    def __init__(self, random: Random, count: int, seconds: float, tools: "Toolbox | Stdio") -> None:
        super().__init__(random, count, seconds)
        self._tools = tools

    def call(self, tool: str, **arguments: Any) -> Any:
        return self._tools.call(self.kind, tool, arguments)

    def write_by(self, tool: str, member: str, **arguments: Any) -> None:
        self.write(lambda token: self.call(tool, **{member: token}, **arguments).refused)

    def tasks(self) -> list[tuple[Any, ...]]:
        (tool, title), tasks = self.listing, list[tuple[Any, ...]]()
        while True:
            page: Any = self.call(tool, offset=len(tasks)).data
            tasks += [(task["id"], task[title], task["status"]) for task in page["tasks"]]
            if not page.get("omitted"):
                return tasks


class QueueHand(ToolHand):
    """A client with the dialect `queue`, as a library."""

    kind = "queue"
    listing = ("list_tasks", "description")

    def __init__(self, random: Random, count: int, seconds: float, socket: str) -> None:
        client = Client(socket=socket, autostart=False)
        super().__init__(random, count, seconds, Toolbox(client, ToolCaller(LIST, self.kind)))
        self.end = client.close

    def acts(self) -> Sequence[tuple[Act, float]]:
        priorities = ["urgent", "low"]
        return (
            (lambda: self.write_by("complete_task", "result_summary", task_id=self.any_of_ours()), 5),
            (lambda: self.write_by("add_task", "description"), 1),
            (lambda: self.call("pause_task", task_id=self.any_of_ours()), 1),
            (lambda: self.call("resume_task", task_id=self.any_of_ours()), 1),
            (
                lambda: self.call("prioritize_task", task_id=self.any_task(), priority=self.random.choice(priorities)),
                2,
            ),
            (lambda: self.call("list_tasks"), 1),
        )


class ClaudeHand(ToolHand):
    """A client with the dialect `claude`: through `punch agent mcp` if the MCP SDK is installed, else as a library."""

    kind = "claude"
    listing = ("TaskList", "subject")

    def __init__(self, random: Random, count: int, seconds: float, socket: str) -> None:
        if find_spec("mcp") is not None:
            self.way, host = "MCP over stdio", Stdio(socket, self.kind)
            super().__init__(random, count, seconds, host)
            self.end = host.end
        else:
            self.way, client = "in this process (the MCP SDK is not installed)", Client(socket=socket, autostart=False)
            super().__init__(random, count, seconds, Toolbox(client, ToolCaller(LIST, self.kind)))
            self.end = client.close

    def acts(self) -> Sequence[tuple[Act, float]]:
        statuses = ["pending", "in_progress", "completed"]
        return (
            (lambda: self.write_by("TaskUpdate", "subject", taskId=self.any_task()), 5),
            (lambda: self.write_by("TaskUpdate", "description", taskId=self.any_shared()), 1),
            (
                lambda: self.call("TaskUpdate", taskId=self.any_of_ours(), status=self.random.choice(statuses)),
                3,
            ),
            (lambda: self.write_by("TaskCreate", "subject", description="made"), 0.5),
            (lambda: self.call("TaskList"), 0.5),
            (lambda: self.call("TaskGet", taskId=self.any_task()), 0.5),
        )


class Answer(NamedTuple):
    """Response of a tool."""

    data: Any
    refused: bool


class Stdio:
    """A minimal MCP host with `punch agent mcp` as a child process."""

    def __init__(self, socket: str, actor: str) -> None:
        words = ["--dialect", "claude", "-c", LIST, "--actor", actor, "--socket", socket, "--no-autostart"]
        self._child = subprocess.Popen(
            [*PUNCH, "agent", "mcp", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
        )
        self._next = 0
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": actor, "version": "1"}}
        self._ask("initialize", hello)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(msgspec.json.encode(message) + b"\n")
        self._child.stdin.flush()

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        self._next += 1
        self._send({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        assert self._child.stdout is not None
        for line in self._child.stdout:
            message = msgspec.json.decode(line)
            if message.get("id") == self._next and "method" not in message:
                if "result" not in message:
                    raise Violation(f"MCP: {message}")
                return message["result"]
        raise Violation("punch agent mcp ended")

    def call(self, _dialect: str, tool: str, arguments: dict[str, Any]) -> Answer:
        result = self._ask("tools/call", {"name": tool, "arguments": arguments})
        return Answer(result.get("structuredContent"), bool(result.get("isError")))

    def end(self) -> None:
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.close()
        try:
            self._child.wait(PATIENCE_S)
        finally:
            self._child.kill()
            self._child.stdout.close()


class CliHand(Hand):
    """A client that runs `punch` for each command."""

    kind = "cli"

    def __init__(self, random: Random, count: int, seconds: float, socket: str) -> None:
        super().__init__(random, count, seconds)
        self._socket = socket

    def acts(self) -> Sequence[tuple[Act, float]]:
        return (
            (lambda: self.write(lambda token: self._fails("edit", self.any_task(), "-t", token)), 5),
            (lambda: self.write(lambda token: self._fails("edit", self.any_shared(), "-d", token)), 1),
            (lambda: self._fails("done", self.any_of_ours()), 1),
            (lambda: self._fails("reopen", self.any_of_ours()), 1),
            (lambda: self.write(lambda token: self._fails("add", token)), 0.5),
        )

    def _run_punch(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [*PUNCH, *words, "-c", LIST, "--actor", self.kind, "--socket", self._socket, "--no-autostart"]
        return subprocess.run(
            command, env=environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )

    def _fails(self, *words: str) -> bool:
        return self._run_punch(*words).returncode != 0

    def tasks(self) -> list[tuple[Any, ...]]:
        ended = self._run_punch("list", "--all", "--json")
        tasks = json.loads(ended.stdout)["tasks"]
        return [
            (task["id"], task["title"], task.get("description", ""), task.get("status", "pending")) for task in tasks
        ]
