from pathlib import Path
from typing import Any

from punchlist_demo.home import Home
from punchlist_demo.play import Player, Recording, load
from punchlist_demo.witness import Witness
from punchlist_schemas.methods import METHODS
from punchlist_testing.blocking import eventually

LONG = "in docs/copy.md, with everything that anybody could ever want to know"


class Audience:
    """Remembers what it was shown."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []
        self.pauses: list[int] = []
        self.newest = ""

    def say(self, text: str, call: str = "") -> None:
        self.said.append((text, call))

    def pause(self, ms: int) -> None:
        self.pauses.append(ms)

    def figures(self, text: str) -> None:
        self.newest = text


def step(method: str, say: str, wait_ms: int, **params: Any) -> dict[str, Any]:
    return {"method": method, "say": say, "wait_ms": wait_ms, "params": params}


RECORDING = Recording(
    conversation="site",
    agent="claude",
    title="a short one",
    plan=[{"id": "1", "subject": "Write", "blocks": ["2"]}, {"id": "2", "subject": "Ship", "blockedBy": ["1"]}],
    steps=[
        step("import", "the plan", 1),
        step("task.set_status", "begin", 2, task="1", status="in_progress"),
        step("kill", "the machine dies", 3),
        step("task.set_status", "done", 4, task="1", status="completed", result_summary=LONG),
    ],
)


def test_the_recording_uses_the_methods_there_are() -> None:
    recording = load()
    methods = [step.get("method", "") for step in recording.steps]
    assert {"import", "kill"} <= set(methods)
    assert set(methods) - {"import", "kill"} <= set(METHODS)


def test_a_recording_is_played_over_a_kill_and_every_acknowledged_call_is_accounted_for(temporary: Path) -> None:
    audience = Audience()
    with Home() as home:
        player = Player(home, RECORDING, audience)
        player.client.open()
        player.call("conversation.open")
        player.witness = Witness(home.spawn("log", "--follow", "--json", "-c", "site"), player.tell_figures)
        killed = player.client.status().pid
        site = player.client.conversation("site")
        assert eventually(lambda: len(site.presence()) > 0), "the kill comes when the witness follows"
        player.play()
        events = player.call("event.read", after=0)["events"]
        tasks = player.call("task.list")["tasks"]
        assert player.witness.wait_for(len(events), 60)
        player.tell_figures()
    assert [(task["title"], task["status"]) for task in tasks] == [("Write", "completed"), ("Ship", "pending")]
    assert tasks[1]["blocked_by"] == ["1"]
    assert {event["actor"] for event in events} == {"claude"}
    account = player.account
    assert (account.calls, account.kills, account.version) == (3, 1, len(events))
    assert account.seqs == sorted(account.seqs)
    assert account.seqs[-1] == events[-1]["seq"]
    assert audience.pauses == [1, 2, 3, 4]
    assert audience.said == [
        ("the plan", "task.add_many (2 tasks)"),
        ("begin", "task.set_status #1 in_progress"),
        ("the machine dies", f"kill -9 {killed}"),
        ("done", "task.set_status #1 completed result_summary=in docs/copy.md…"),
    ]
    told = f"acknowledged: 3 calls, {len(events)} events; a second process was told {len(events)}, 1 kill -9 survived"
    assert audience.newest == told
