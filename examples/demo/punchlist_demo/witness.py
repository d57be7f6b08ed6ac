"""The second process of the demo: subscribes through the command line, and we look at what it was told."""

import json
import subprocess
import threading
from collections.abc import Callable
from typing import Any


class Witness:
    """Reads the lines of JSON events that another process prints, and keeps their positions.

    Args:
        process: `punch log --follow --json`, with its output in a pipe.
        changed: Called, from another thread, after each event.
    """

    def __init__(self, process: "subprocess.Popen[str]", changed: Callable[[], None]) -> None:
        self.pid = process.pid
        self._process = process
        self._changed = changed
        self._seen: list[int] = []
        self._news = threading.Condition()
        threading.Thread(target=self._read, name="demo-witness", daemon=True).start()

    @property
    def count(self) -> int:
        """How many events it was told."""
        return len(self._seen)

    @property
    def in_order(self) -> bool:
        """Whether every event came once and in order, without a hole."""
        return self._seen == list(range(1, len(self._seen) + 1))

    def wait_for(self, count: int, timeout_s: float) -> bool:
        """Wait until it was told so many events."""
        with self._news:
            return self._news.wait_for(lambda: self.count >= count, timeout_s)

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                event: dict[str, Any] = json.loads(line)
                with self._news:
                    self._seen.append(int(event["version"]))
                    self._news.notify_all()
                self._changed()
        except ValueError:
            return  # the pipe was closed at the end of the demo
