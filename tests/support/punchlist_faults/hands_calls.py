"""The four clients of `together` that call: a socket, two dialects of tools, a command line."""

import json
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from random import Random
from typing import Any, NamedTuple

import msgspec

from punchlist.clients.sync import Client
from punchlist.tools.toolbox import Toolbox, ToolCaller
from punchlist_faults.hands import LIST, PUNCH, TASKS, Act, Hand, Task, environment
from punchlist_faults.options import Violation
from punchlist_faults.process import PATIENCE_S
from punchlist_testing.daemon import Raw


class RawHand(Hand):
    """A socket and JSON lines."""

    name = "raw"

    def __init__(self, random: Random, count: int, seconds: float, socket: str) -> None:
        super().__init__(random, count, seconds)
        self._link = Raw(socket)

    def acts(self) -> Sequence[tuple[Act, float]]:
        """Everything; it also keeps the list at its size."""
        edit = self._edit
        return (
            (lambda: edit(self.any_task(), "title"), 5),
            (lambda: edit(self.any_shared(), "description"), 1),
            (self._status, 2),
            (self._move, 1),
            (self._add, 0.5),
            (self._shrink, 0.7),
        )

    def _call(self, method: str, **params: Any) -> bool:
        return "error" in self._link.call(method, conversation=LIST, actor=self.name, **params)

    def _edit(self, task: str, member: str) -> None:
        token = self.token()
        self.wrote(token, self._call("task.edit", task=task, **{member: token}))

    def _status(self) -> None:
        token = self.token()
        status = self.random.choice(["completed", "pending", "in_progress"])
        if status == "completed":
            self.wrote(
                token, self._call("task.set_status", task=self.any_of_ours(), status=status, result_summary=token)
            )
        else:
            self._call("task.set_status", task=self.any_of_ours(), status=status)

    def _move(self) -> None:
        task, other = self.any_task(), self.any_task()
        if task != other:
            self._call("task.move", task=task, before=other)

    def _add(self) -> None:
        token = self.token()
        self.wrote(token, self._call("task.add", title=token))

    def _shrink(self) -> None:
        added = [task["id"] for task in self.listed() if int(task["id"]) > TASKS]
        for task in self.random.sample(added, max(0, len(added) - self.random.randint(0, 30))):
            self._call("task.delete", task=task)

    def end(self) -> None:
        """Hang up."""
        self._link.close()

    def listed(self) -> list[Task]:
        """The whole list."""
        found: list[Task] = []
        while True:
            page = self._link.result("task.list", conversation=LIST, offset=len(found), limit=1_000)
            found += page["tasks"]
            if len(found) >= page["total"]:
                return found

    def tasks(self) -> list[tuple[Any, ...]]:
        """The truth."""
        return [
            (task["id"], task["title"], task.get("description", ""), task.get("status", "pending"))
            for task in self.listed()
        ]


class QueueHand(Hand):
    """The tools of the dialect `queue`, called in this process."""

    name = "queue"

    def __init__(self, random: Random, count: int, seconds: float, socket: str) -> None:
        super().__init__(random, count, seconds)
        self._client = Client(socket=socket, autostart=False)
        self._box = Toolbox(self._client, ToolCaller(LIST, self.name))

    def acts(self) -> Sequence[tuple[Act, float]]:
        """What a queue's worker does."""
        return (
            (self._complete, 5),
            (self._add, 1),
            (lambda: self._one("pause_task", self.any_of_ours()), 1),
            (lambda: self._one("resume_task", self.any_of_ours()), 1),
            (lambda: self._one("prioritize_task", self.any_task(), priority=self.random.choice(["urgent", "low"])), 2),
            (lambda: self._box.call("queue", "list_tasks"), 1),
        )

    def _one(self, tool: str, task: str, **more: Any) -> bool:
        return self._box.call("queue", tool, {"task_id": task, **more}).refused

    def _complete(self) -> None:
        token = self.token()
        self.wrote(token, self._one("complete_task", self.any_of_ours(), result_summary=token))

    def _add(self) -> None:
        token = self.token()
        self.wrote(token, self._box.call("queue", "add_task", {"description": token}).refused)

    def tasks(self) -> list[tuple[Any, ...]]:
        """What is to be done."""
        found: list[tuple[Any, ...]] = []
        while True:
            page: Any = self._box.call("queue", "list_tasks", {"offset": len(found)}).data
            found += [(task["id"], task["description"], task["status"]) for task in page["tasks"]]
            if not page.get("omitted"):
                return found

    def end(self) -> None:
        """Hang up."""
        self._client.close()


class ClaudeHand(Hand):
    """The tools of the dialect `claude`: through `punch agent mcp` where the SDK is there, else in this process."""

    name = "claude"

    def __init__(self, random: Random, count: int, seconds: float, socket: str) -> None:
        super().__init__(random, count, seconds)
        self.way = "MCP over stdio" if has_sdk() else "in this process (the MCP SDK is not installed)"
        self._tools: Stdio | Toolbox
        if has_sdk():
            self._tools = Stdio(socket, self.name)
        else:
            self._client = Client(socket=socket, autostart=False)
            self._tools = Toolbox(self._client, ToolCaller(LIST, self.name))

    def acts(self) -> Sequence[tuple[Act, float]]:
        """What an agent does."""
        return (
            (lambda: self._edit(self.any_task(), "subject"), 5),
            (lambda: self._edit(self.any_shared(), "description"), 1),
            (self._status, 3),
            (self._create, 0.5),
            (lambda: self._call("TaskList"), 0.5),
            (lambda: self._call("TaskGet", taskId=self.any_task()), 0.5),
        )

    def _call(self, tool: str, **arguments: Any) -> tuple[Any, bool]:
        reply = self._tools.call("claude", tool, arguments)
        return reply.data, reply.refused

    def _edit(self, task: str, member: str) -> None:
        token = self.token()
        self.wrote(token, self._call("TaskUpdate", taskId=task, **{member: token})[1])

    def edit(self, task: str, token: str) -> None:
        """Give a task a title."""
        self._call("TaskUpdate", taskId=task, subject=token)

    def _status(self) -> None:
        status = self.random.choice(["pending", "in_progress", "completed"])
        self._call("TaskUpdate", taskId=self.any_of_ours(), status=status)

    def _create(self) -> None:
        token = self.token()
        self.wrote(token, self._call("TaskCreate", subject=token, description="made")[1])

    def tasks(self) -> list[tuple[Any, ...]]:
        """What TaskList shows."""
        found: list[tuple[Any, ...]] = []
        while True:
            page = self._call("TaskList", offset=len(found))[0]
            found += [(task["id"], task["subject"], task["status"]) for task in page["tasks"]]
            if not page.get("omitted"):
                return found

    def end(self) -> None:
        """Let go of the server."""
        if isinstance(self._tools, Stdio):
            self._tools.end()
        else:
            self._client.close()


def has_sdk() -> bool:
    """Whether `punch agent mcp` can run."""
    return find_spec("mcp") is not None


class Answer(NamedTuple):
    """What a tool said."""

    data: Any
    refused: bool


class Stdio:
    """A host of a few lines: `punch agent mcp` as a child, JSON-RPC on lines."""

    def __init__(self, socket: str, actor: str) -> None:
        self._child = subprocess.Popen(
            [*PUNCH, "mcp", "--dialect", "claude", "-c", LIST, "--actor", actor, "--socket", socket, "--no-autostart"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
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
        """Call a tool."""
        result = self._ask("tools/call", {"name": tool, "arguments": arguments})
        return Answer(result.get("structuredContent"), bool(result.get("isError")))

    def end(self) -> None:
        """Close its input, on which it ends."""
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.close()
        try:
            self._child.wait(PATIENCE_S)
        finally:
            self._child.kill()
            self._child.stdout.close()


class CliHand(Hand):
    """`punch`, a process for each command."""

    name = "cli"

    def __init__(self, random: Random, count: int, seconds: float, socket: str) -> None:
        super().__init__(random, count, seconds)
        self._socket = socket

    def acts(self) -> Sequence[tuple[Act, float]]:
        """What a person does."""
        return (
            (lambda: self._edit(self.any_task(), "-t"), 5),
            (lambda: self._edit(self.any_shared(), "-d"), 1),
            (lambda: self._status("done"), 1),
            (lambda: self._status("reopen"), 1),
            (self._add, 0.5),
        )

    def _run_punch(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [*PUNCH, *words, "-c", LIST, "--actor", self.name, "--socket", self._socket, "--no-autostart"]
        return subprocess.run(
            command, env=environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )

    def _edit(self, task: str, option: str) -> None:
        token = self.token()
        self.wrote(token, self._run_punch("edit", task, option, token).returncode != 0)

    def _status(self, verb: str) -> None:
        self._run_punch(verb, self.any_of_ours())

    def _add(self) -> None:
        token = self.token()
        self.wrote(token, self._run_punch("add", token).returncode != 0)

    def tasks(self) -> list[tuple[Any, ...]]:
        """What `punch list --all` prints."""
        ended = self._run_punch("list", "--all", "--json")
        found = json.loads(ended.stdout)["tasks"]
        return [(one["id"], one["title"], one.get("description", ""), one.get("status", "pending")) for one in found]
