import json
import subprocess
from typing import Any

import pytest

from punchlist_testing.daemon import Running
from punchlist_testing.terminal import command, environment

CALLS = [
    {"jsonrpc": "2.0", "id": 1, "method": "task.add", "params": {"conversation": "a", "title": "x"}},
    {"jsonrpc": "2.0", "id": 2, "method": "task.list", "params": {"conversation": "a"}},
]


def pipe(data: bytes) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        command("daemon", "rpc", "--stdio"),
        input=data,
        capture_output=True,
        timeout=20,
        check=True,
        env=environment(),
    )


@pytest.mark.usefixtures("home")
def test_responses_arrive_after_end_of_input(daemon: Running) -> None:
    outcome = pipe("".join(json.dumps(call) + "\n" for call in CALLS).encode())
    answers: dict[int, Any] = {answer["id"]: answer for answer in map(json.loads, outcome.stdout.splitlines())}
    assert answers[2]["result"]["tasks"][0]["title"] == "x"
    assert outcome.stderr == b""


@pytest.mark.usefixtures("home")
def test_header_framing_is_forwarded(daemon: Running) -> None:
    body = json.dumps(CALLS[1]).encode()
    outcome = pipe(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    assert outcome.stdout.startswith(b"Content-Length: ")
    assert outcome.stdout.endswith(b"}")
