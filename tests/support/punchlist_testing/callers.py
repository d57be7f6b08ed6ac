"""Clients that keep working through restarts: each call is retried with its idempotency key until it gets a
response."""

import contextlib
import threading
import time

from punchlist_testing.daemon import Raw

GIVE_UP_S = 20.0
PAUSE_S = 0.005


class Callers:
    """Threads that add tasks in a closed loop until the end of a `with` block.

    Attributes:
        acknowledged: Title -> id of each acknowledged task.
        slowest_s: Longest time from a call to its response, including retries.
        failed: Errors that a retry can't fix.
    """

    def __init__(self, socket: str, conversation: str, count: int) -> None:
        self.acknowledged: dict[str, str] = {}
        self.failed: list[str] = []
        self.slowest_s = 0.0
        self._socket = socket
        self._conversation = conversation
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(number,)) for number in range(count)]

    def __enter__(self) -> "Callers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, more: int) -> None:
        """Wait until `more` additional calls are acknowledged."""
        target = len(self.acknowledged) + more
        deadline = time.monotonic() + GIVE_UP_S
        while len(self.acknowledged) < target and not self.failed:
            assert time.monotonic() < deadline, "the callers get no answers"
            time.sleep(PAUSE_S)

    def _work(self, number: int) -> None:
        client: Raw | None = None
        turn = 0
        while not self._over.is_set() and not self.failed:
            turn += 1
            title = f"{number}-{turn}"
            began = time.monotonic()
            while title not in self.acknowledged:
                if time.monotonic() - began > GIVE_UP_S:
                    self.failed.append(f"{title} was not answered within {GIVE_UP_S:g} s")
                    return
                client = self._attempt(client, title)
            self.slowest_s = max(self.slowest_s, time.monotonic() - began)
        if client is not None:
            client.close()

    def _attempt(self, client: Raw | None, title: str) -> Raw | None:
        """Make one attempt. Return the connection if it can be reused."""
        try:
            client = client or Raw(self._socket)
            answer = client.call("task.add", conversation=self._conversation, title=title, key=title)
        except (OSError, EOFError):
            if client is not None:
                with contextlib.suppress(OSError):
                    client.close()
            time.sleep(PAUSE_S)
            return None
        if "result" in answer:
            self.acknowledged[title] = answer["result"]["task"]["id"]
        elif answer["error"]["data"]["kind"] not in ("shutting_down", "outcome_unknown"):
            self.failed.append(str(answer["error"]))
        return client

    def lost(self) -> list[str]:
        """Return the titles of acknowledged tasks that are missing or have another id, and of duplicate tasks."""
        client = Raw(self._socket)
        tasks = client.result("task.list", conversation=self._conversation)["tasks"]
        client.close()
        stored: dict[str, list[str]] = {}
        for task in tasks:
            stored.setdefault(task["title"], []).append(task["id"])
        duplicates = [title for title, ids in stored.items() if len(ids) > 1]
        return duplicates + [title for title, id in self.acknowledged.items() if stored.get(title) != [id]]
