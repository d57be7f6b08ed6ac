"""A worker of `apart`: claims, completes, adds and reads through one daemon, and records the responses.

It runs as a separate program that uses only the standard library, so that it can be killed like any agent:

    python -S apart_work.py SOCKET NAME ROLE SEED UNTIL NOTES

ROLE is one of `ROLES`, UNTIL a time on the monotonic clock. Each line of NOTES is one call with all its attempts. Calls
whose outcome is unknown, or that wrote nothing, are usually retried with the same key.
"""

import json
import os
import random
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

LIST = "release"
PATIENCE_S = 20.0
LAST_S = 20.0
"""Time after UNTIL during which calls are still retried, in seconds."""

OPEN = ("lost", "outcome_unknown", "shutting_down", "internal_error")
"""Outcomes of an attempt after which it may have been written."""

LEASE_MS = 3_000


class Role(NamedTuple):
    """Probabilities that a worker, in one round, adds a task, adds many tasks, or keeps its claim for a long time."""

    adds: float = 0.0
    adds_many: float = 0.0
    holds: float = 0.0


ROLES = {"adder": Role(0.2, 0.03, 0.015), "holder": Role(0.2, 0.03, 1.0), "taker": Role()}
"""Probabilities of each role.

A worker of the role `taker` adds no tasks. If a machine has only such workers and no task is available, its daemon
makes no posts and responds from its replica.
"""


class Lost(Exception):
    """The connection ended before the response."""


class Link:
    """A client with one connection at a time. It reconnects, but doesn't retry calls."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._socket: socket.socket | None = None
        self._file: Any = None
        self._id = 0

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Make a call and return the response, which may be an error.

        Raises:
            Lost: The connection ended before the response.
        """
        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX)
                self._socket.settimeout(PATIENCE_S)
                self._socket.connect(self._path)
                self._file = self._socket.makefile("rb")
            self._id += 1
            request = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            while line := self._file.readline():
                message = json.loads(line)
                if message.get("id") == self._id:
                    return message
            raise Lost
        except (OSError, ValueError, Lost) as error:
            self.close()
            raise Lost from error

    def close(self) -> None:
        for stream in filter(None, (self._file, self._socket)):
            with suppress(OSError):
                stream.close()
        self._socket = self._file = None


class Worker:
    """Makes calls until a given time."""

    def __init__(self, path: str, name: str, role: str, seed: str, until: float, notes: str) -> None:  # noqa: PLR0913 - its arguments
        self.until = until
        self.role = ROLES[role]
        self.random = random.Random(seed)
        self._link, self._name = Link(path), name
        self._notes = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._calls = 0

    def call(self, kind: str, method: str, **params: Any) -> dict[str, Any] | None:
        """Make a call, with retries, and record it; return its result or None."""
        self._calls += 1
        params["conversation"] = LIST
        if kind != "read":
            params["key"] = f"{self._name}.{self._calls}"
        attempts: list[dict[str, Any]] = []
        result: dict[str, Any] | None = None
        while True:
            wall, began = time.time(), time.monotonic()
            try:
                answer = self._link.call(method, params)
                result = answer.get("result")
                end = "ok" if result is not None else answer["error"]["data"]["kind"]
            except Lost:
                end = "lost"
            attempts.append({"began": began, "wall": wall, "ended": time.monotonic(), "end": end})
            can_retry = end == "unreachable" or end in OPEN
            if not can_retry or kind == "read" or time.monotonic() > self.until + LAST_S or self.random.random() < 0.1:
                break
            time.sleep(0.1)
        note = {"by": self._name, "kind": kind, "key": params.get("key", ""), "attempts": attempts}
        if result is not None:
            note["version"] = result["version"]
            if kind == "read":
                note["completed"] = result["counts"]["completed"]
            elif kind == "claim" and result["task"] is not None:
                note |= {"task": result["task"]["id"], "fence": result["fence"]}
        if kind == "complete":
            note |= {"task": params["task"], "fence": params["fence"]}
        os.write(self._notes, json.dumps(note).encode() + b"\n")
        return result

    def look(self) -> None:
        self.call("read", "task.list", limit=1)

    def work(self) -> None:
        chance: Callable[[], float] = self.random.random
        if chance() < self.role.adds:
            self.call("add", "task.add", title=f"{self._name} {self._calls}")
        if chance() < self.role.adds_many:  # makes tasks available for a while, so that an empty claim would be wrong
            self.call("add", "task.add_many", tasks=[{"title": f"{self._name} {number}"} for number in range(10)])
        if chance() < 0.3:
            self.look()
        wait = {"wait_ms": self.random.choice((100, 400))} if chance() < 0.5 else {}
        claim = self.call("claim", "task.claim", owner=self._name, lease_ms=LEASE_MS, **wait)
        if claim is None or claim["task"] is None:
            return
        if chance() < self.role.holds:  # much longer than the lease, which each call of this connection renews
            for _ in range(self.random.randrange(8, 18)):
                if time.monotonic() < self.until:
                    time.sleep(0.8)
                    self.look()
        self.call("complete", "task.set_status", task=claim["task"]["id"], status="completed", fence=claim["fence"])


def main() -> None:
    path, name, role, seed, until, notes = sys.argv[1:]
    worker = Worker(path, name, role, seed, float(until), notes)
    while time.monotonic() < worker.until:
        worker.work()
        time.sleep(worker.random.random() * 0.06)


if __name__ == "__main__":
    main()
