"""docs/protocol.md, word by word: each example runs against a real daemon."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from punchlist_testing.daemon import Raw, spawned_daemon
from punchlist_testing.optional import NODE

ROOT = Path(__file__).resolve().parents[1]
ANY = "…"


def examples() -> list[tuple[str, Any]]:
    """The lines of all examples in order: an arrow, and the message."""
    page = (ROOT / "docs" / "protocol.md").read_text("utf-8")
    blocks = re.findall(r"^```jsonl\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    lines = [line.partition(" ") for block in blocks for line in block.splitlines()]
    return [(arrow, json.loads(message)) for arrow, _, message in lines]


def shows(shown: Any, real: Any) -> bool:
    """Whether a shortened value of the page fits the real one."""
    if shown == ANY:
        return isinstance(real, str) and real != ""
    if isinstance(shown, dict):
        return isinstance(real, dict) and all(name in real and shows(shown[name], real[name]) for name in shown)  # pyright: ignore[reportUnknownVariableType]
    if isinstance(shown, list):
        return isinstance(real, list) and len(shown) == len(real) and all(map(shows, shown, real))  # pyright: ignore[reportUnknownArgumentType]
    return shown == real


def test_every_example_of_the_protocol_page_is_true(tmp_path: Path) -> None:
    lines = examples()
    assert len(lines) > 20
    with spawned_daemon(tmp_path) as daemon:
        raw = Raw(daemon.socket)
        try:
            for arrow, message in lines:
                if arrow == "→":
                    raw.send(message["method"], message["params"], id=message["id"])
                else:
                    assert arrow == "←"
                    real = raw.receive()
                    assert shows(message, real), (message, real)
        finally:
            raw.close()


def test_a_shortened_example_that_is_wrong_is_noticed() -> None:
    assert shows({"a": [{"b": ANY}]}, {"a": [{"b": "x", "c": 1}], "d": 2})
    wrongs: list[Any] = [{"a": []}, {"a": [{"b": ""}]}, {"a": [{"c": "x"}]}, {"a": [{"b": "x"}, {}]}]
    for wrong in wrongs:
        assert not shows({"a": [{"b": ANY}]}, wrong)


def test_the_node_client_calls_follows_and_resumes_over_a_kill(tmp_path: Path) -> None:
    with spawned_daemon(tmp_path) as daemon:
        watcher = subprocess.Popen(
            [NODE, "watch.mjs", "--socket", daemon.socket, "website", "3"],
            cwd=ROOT / "examples" / "node",
            stdout=subprocess.PIPE,
            text=True,
        )
        assert watcher.stdout is not None
        assert watcher.stdout.readline() == "following website\n"
        raw = Raw(daemon.socket)
        raw.result("task.add", conversation="website", title="Write the copy")
        raw.close()
        assert watcher.stdout.readline() == "1 ConversationOpened\n"
        assert watcher.stdout.readline() == "2 TaskAdded\n"
        daemon.restart()
        raw = Raw(daemon.socket)
        raw.result("task.set_status", conversation="website", task="1", status="completed")
        raw.close()
        assert watcher.stdout.readline() == "3 StatusChanged\n"
        assert watcher.wait(20) == 0
        watcher.stdout.close()
