"""The agents, the person and the witness of the demo."""

import shlex
from typing import Any, cast

import msgspec

from punchlist.cursor import TaskList
from punchlist_demo import agent
from punchlist_demo.home import Home
from punchlist_demo.stage import Stage
from punchlist_demo.witness import Witness

LIST = "release"
CLAUDE, CODEX, PERSON = "claude-code/7f3c1a", "codex/b210e4", "ann"


class Answer(msgspec.Struct, frozen=True):
    """The reply of a tool, with the positions of the changes that the daemon acknowledged for it."""

    text: str
    refused: bool
    data: dict[str, Any]
    acknowledged: tuple[int, ...]


class Agent:
    """An agent, which runs in a process of its own.

    Attributes:
        acknowledged: Positions in the log of its acknowledged changes.
        has_task: Whether its newest `next` returned a task.
    """

    def __init__(self, name: str, home: Home, stage: Stage) -> None:
        self.name = name
        self.acknowledged: list[int] = []
        self.has_task = False
        self._stage = stage
        self._process = home.spawn(str(agent.__file__), name, LIST)

    def send(self, tool: str, **arguments: Any) -> None:
        """Begin a call, and leave its reply to `receive`."""
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode([tool, arguments]).decode() + "\n")
        self._process.stdin.flush()

    def receive(self) -> Answer:
        """Return the reply of the call that was sent.

        Raises:
            RuntimeError: The agent's process has ended.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process of {self.name} has ended")
        answer = msgspec.json.decode(line, type=Answer)
        self.acknowledged += answer.acknowledged
        if "next" in answer.data:
            self.has_task = answer.data["next"] is not None
        return answer

    def call(self, tool: str, **arguments: Any) -> Answer:
        """Make a call, and show it with its reply."""
        self.send(tool, **arguments)
        answer = self.receive()
        shown = (f"{name}={_shown(name, value)}" for name, value in arguments.items())
        self._stage.action(self.name, f"calls {tool}({', '.join(shown)})")
        self._stage.reply(answer.text, refused=answer.refused)
        return answer


class Cast:
    """The agents, the person and the witness, around one daemon."""

    def __init__(self, home: Home, stage: Stage) -> None:
        self.stage = stage
        self.claude = Agent(CLAUDE, home, stage)
        self.codex = Agent(CODEX, home, stage)
        self.client = home.client("demo")
        self.client.call("conversation.open", {"conversation": LIST})
        self.witness = Witness(home.spawn("-m", "punchlist.cli", "log", "--follow", "--json", "-c", LIST))
        self.kills = 0
        self._home = home

    def punch(self, *words: str, last: int = 0) -> None:
        """Run `punch` as the person, and show it with the `last` lines of its output (0: all)."""
        output = self._home.run(PERSON, LIST, *words, colour=self.stage.style.colour)
        self.stage.action(PERSON, f"runs {shlex.join(['punch', *words])}")
        self.stage.output(output, last)

    def tasks(self) -> TaskList:
        """Return the list as it is now."""
        return self.client.conversation(LIST).list()

    def owner(self, number: str) -> str:
        """Return the owner of a task that is in progress, or an empty text."""
        return next((task.owner for task in self.tasks() if task.id == number and task.status == "in_progress"), "")

    def show_list(self) -> None:
        """Show the list as `punch watch` does."""
        self.stage.show_list(LIST, self.tasks())

    def kill_daemon(self, pid: int) -> None:
        """Kill the daemon, and show that below the list."""
        self._home.kill_daemon(pid)
        self.kills += 1
        self.stage.below(self.stage.style.paint("fail", f"kill -9 {pid}") + ", while both agents wait for a reply")

    def events(self) -> list[dict[str, Any]]:
        """Return all events of the list."""
        return self.client.call("event.read", {"conversation": LIST, "after": 0, "limit": 10_000})["events"]


def _shown(name: str, value: object) -> str:
    if name == "tasks" and isinstance(value, list):
        count = len(cast("list[object]", value))
        return f"[{count} task{'s' if count > 1 else ''}]"
    return msgspec.json.encode(value).decode()
