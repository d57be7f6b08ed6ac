"""A worker of `apart`: claims, completes, adds and reads through one daemon, and notes what it was told.

It is a program of its own, with nothing but the standard library, so that it can be killed like any agent:

    python -S apart_work.py SOCKET NAME ROLE SEED UNTIL NOTES

ROLE is one of `ROLES`, UNTIL is by the monotonic clock. Each line of NOTES is one call with all its attempts. A call
has a key; where its outcome is open, or nothing was written, it is mostly made again with the same key.
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
"""For so long after the end what is open is still made again."""

OPEN = ("lost", "outcome_unknown", "shutting_down", "internal_error")
"""Ends of an attempt that leave open whether it was written."""

LEASE_MS = 3_000


class Role(NamedTuple):
    """How likely it is in each round that a worker adds a task, adds many, and holds what it claimed for long."""

    adds: float = 0.0
    adds_many: float = 0.0
    holds: float = 0.0


ROLES = {"adder": Role(0.2, 0.03, 0.015), "holder": Role(0.2, 0.03, 1.0), "taker": Role()}
"""Where there are takers alone and nothing to claim, a daemon posts nothing, and answers from what it has."""


class Lost(Exception):
    """The connection ended before the answer."""


class Link:
    """One connection at a time to one daemon; nothing is repeated by itself."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._socket: socket.socket | None = None
        self._file: Any = None
        self._id = 0

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The answer, an error perhaps."""
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
        for each in filter(None, (self._file, self._socket)):
            with suppress(OSError):
                each.close()
        self._socket = self._file = None


class Worker:
    """Works until the time is over."""

    def __init__(self, path: str, name: str, role: str, seed: str, until: float, notes: str) -> None:  # noqa: PLR0913 - its arguments
        self.until = until
        self.role = ROLES[role]
        self.random = random.Random(seed)
        self._link, self._name = Link(path), name
        self._notes = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._calls = 0

    def call(self, kind: str, method: str, **params: Any) -> dict[str, Any] | None:
        """Call until the outcome is known, or the worker gives up; the result, None without one."""
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
            again = end == "unreachable" or end in OPEN
            if not again or kind == "read" or time.monotonic() > self.until + LAST_S or self.random.random() < 0.1:
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
        if chance() < self.role.adds_many:  # for a while there is something to claim, so that "nothing" would be wrong
            self.call("add", "task.add_many", tasks=[{"title": f"{self._name} {number}"} for number in range(10)])
        if chance() < 0.3:
            self.look()
        wait = {"wait_ms": self.random.choice((100, 400))} if chance() < 0.5 else {}
        got = self.call("claim", "task.claim", owner=self._name, lease_ms=LEASE_MS, **wait)
        if got is None or got["task"] is None:
            return
        if chance() < self.role.holds:  # for much longer than the lease: each call of this connection keeps it
            for _ in range(self.random.randrange(8, 18)):
                if time.monotonic() < self.until:
                    time.sleep(0.8)
                    self.look()
        self.call("complete", "task.set_status", task=got["task"]["id"], status="completed", fence=got["fence"])


def main() -> None:
    path, name, role, seed, until, notes = sys.argv[1:]
    worker = Worker(path, name, role, seed, float(until), notes)
    while time.monotonic() < worker.until:
        worker.work()
        time.sleep(worker.random.random() * 0.06)


if __name__ == "__main__":
    main()
