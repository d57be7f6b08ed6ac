"""The agents, the person and the follower of the log."""

import shlex
from contextlib import suppress
from typing import Any

import msgspec

from punchlist.calls.cursor import TaskList
from punchlist_demo import agent
from punchlist_demo.home import DemoFailed, Home, read_lines
from punchlist_demo.stage import Stage

LIST = "release"
CLAUDE, CODEX, PERSON = "claude-code/7f3c1a", "codex/b210e4", "ann"


class Answer(msgspec.Struct, frozen=True):
    """The reply of a tool, with the positions of the changes that the daemon acknowledged for it."""

    text: str
    refused: bool
    data: dict[str, Any]
    acknowledged: tuple[int, ...]


class Agent:
    """An agent, which runs in a separate process.

    Attributes:
        acknowledged: Positions in the log of its acknowledged changes.
        has_task: Whether its latest `next` returned a task.
    """

    def __init__(self, name: str, home: Home, stage: Stage) -> None:
        self.name = name
        self.acknowledged: list[int] = []
        self.has_task = False
        self._stage = stage
        self._process = home.spawn(str(agent.__file__), name, LIST)

    def send(self, tool: str, **arguments: Any) -> None:
        """Send a call without waiting; `receive` returns its reply."""
        assert self._process.stdin is not None
        # `receive` reports a process that has ended.
        with suppress(BrokenPipeError):
            self._process.stdin.write(msgspec.json.encode([tool, arguments]) + b"\n")

    def receive(self, *, may_refuse: bool = False) -> Answer:
        """Return the reply to the call sent last.

        Raises:
            DemoFailed: The process has ended, did not reply in time, or rejected the call although `may_refuse` is
                false.
        """
        lines = read_lines(self._process, 1)
        if not lines:
            raise DemoFailed(f"{self.name} ended, or did not reply in time")
        answer = msgspec.json.decode(lines[0], type=Answer)
        if answer.refused and not may_refuse:
            raise DemoFailed(f"{self.name}: {answer.text}")
        self.acknowledged += answer.acknowledged
        if "next" in answer.data:
            self.has_task = answer.data["next"] is not None
        return answer

    def call(self, tool: str, *, may_refuse: bool = False, **arguments: Any) -> Answer:
        """Make a call, and show it with its reply. Raises as `receive`."""
        shown = (f"{name}={msgspec.json.encode(value).decode()}" for name, value in arguments.items())
        self.send(tool, **arguments)
        answer = self.receive(may_refuse=may_refuse)
        self._stage.action(self.name, f"calls {tool}({', '.join(shown)})")
        self._stage.reply(answer.text, refused=answer.refused)
        return answer


class Cast:
    """The agents, the person and the follower, around one daemon.

    Attributes:
        kills: Process ids of the killed daemons.
    """

    def __init__(self, home: Home, stage: Stage) -> None:
        self.stage = stage
        self.claude = Agent(CLAUDE, home, stage)
        self.codex = Agent(CODEX, home, stage)
        self.client = home.client("demo")
        self.client.call("conversation.open", {"conversation": LIST})
        self.kills: list[int] = []
        self._home = home
        self._follower = home.spawn("-m", "punchlist", "log", "--follow", "--json", "-c", LIST)

    def punch(self, *words: str, last: int = 0) -> None:
        """Run `punch` as the person, and show the command and the last `last` lines of its output (0: all)."""
        output = self._home.run(PERSON, LIST, *words, colour=self.stage.style.color)
        self.stage.action(PERSON, f"runs {shlex.join(['punch', *words])}")
        self.stage.output(output, last)

    def tasks(self) -> TaskList:
        return self.client.conversation(LIST).list()

    def owner(self, number: str) -> str:
        """Return the owner of a task in progress, or an empty string."""
        return next((task.owner for task in self.tasks() if task.id == number and task.status == "in_progress"), "")

    def show_list(self) -> None:
        self.stage.show_list(LIST, self.tasks())

    def kill_daemon(self, pid: int) -> None:
        self._home.kill_daemon(pid)
        self.kills.append(pid)
        self.stage.output(self.stage.style.paint("fail", f"kill -9 {pid}") + ", while both agents wait for a reply")

    def events(self) -> list[dict[str, Any]]:
        return self.client.call("event.read", {"conversation": LIST, "after": 0, "limit": 10_000})["events"]

    def followed(self, count: int) -> list[int]:
        """Wait for `count` more events from `punch log --follow`, at most `STEP_S`, and return their versions."""
        return [msgspec.json.decode(line)["version"] for line in read_lines(self._follower, count)]
