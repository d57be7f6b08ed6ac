"""Plays a recorded session, step by step, and keeps account of what was acknowledged."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from punchlist.importers import claude
from punchlist.importers.document import Document
from punchlist.importers.matching import compare
from punchlist.sync import Client
from punchlist.text import clip
from punchlist_demo.home import Home
from punchlist_demo.stage import Stage
from punchlist_demo.witness import Witness

_SHOWN = 60
_STATUS_METHOD = "task.set_status"


class Recording(NamedTuple):
    """A session as it was recorded: a plan in files, and the calls made while working it off."""

    conversation: str
    agent: str
    title: str
    plan: list[dict[str, Any]]
    steps: list[dict[str, Any]]


def load() -> Recording:
    """The recording that comes with punchlist."""
    data = json.loads(Path(__file__).with_name("session.json").read_text(encoding="utf-8"))
    return Recording(**data)


class Account:
    """What the daemon acknowledged: calls, and the version and position that each answer told."""

    def __init__(self) -> None:
        self.calls = 0
        self.version = 0
        self.seqs: list[int] = []
        self.kills = 0

    def take(self, result: dict[str, Any]) -> None:
        """Count an acknowledged change."""
        self.calls += 1
        self.version = int(result["version"])
        self.seqs.append(int(result["seq"]))


class Player:
    """Makes the calls of a recording against the daemon of a home."""

    def __init__(self, home: Home, recording: Recording, stage: Stage) -> None:
        self.account = Account()
        self.client: Client = home.client(recording.agent)
        self.witness: Witness | None = None
        self._home = home
        self._recording = recording
        self._stage = stage

    def play(self) -> None:
        """Every step of the recording."""
        for step in self._recording.steps:
            method = step.get("method", "")
            if method == "kill":
                self._kill(step["say"])
            else:
                self._make(step, method)
            self.tell_figures()
            self._stage.pause(step["wait_ms"])

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """A call for the conversation of the recording."""
        return self.client.call(method, {"conversation": self._recording.conversation, **params})

    def tell_figures(self) -> None:
        """What is acknowledged, and what the second process knows of it."""
        seen = self.witness.count if self.witness else 0
        kills = f", {self.account.kills} kill -9 survived" if self.account.kills else ""
        self._stage.figures(
            f"acknowledged: {self.account.calls} calls, {self.account.version} events; "
            f"a second process was told {seen}{kills}"
        )

    def _make(self, step: dict[str, Any], method: str) -> None:
        params: dict[str, Any] = step.get("params", {})
        if method == "import":
            method, params = "task.add_many", {"tasks": self._plan()}
        result = self.call(method, **params)
        self.account.take(result)
        self._stage.say(step["say"], _call_text(method, params))

    def _kill(self, say: str) -> None:
        pid = int(self.client.call("daemon.status")["pid"])
        self._stage.say(say, f"kill -9 {pid}")
        self._home.kill_daemon(pid)
        self.account.kills += 1

    def _plan(self) -> list[dict[str, Any]]:
        files = [Document(f"demo/{record['id']}.json", json.dumps(record)) for record in self._recording.plan]
        return compare(claude.read(files), [], now=0).call


def _call_text(method: str, params: dict[str, Any]) -> str:
    if method == "task.add_many":
        return f"{method} ({len(params['tasks'])} tasks)"
    rest = {name: value for name, value in params.items() if name not in ("task", "status")}
    words = [f"#{params['task']}"] if "task" in params else []
    words += [params["status"]] if "status" in params else []
    text = " ".join([method, *words, *(f"{name}={value}" for name, value in rest.items())])
    return clip(text, _SHOWN)
