"""The witness of the demo: a process that follows the log through the command line."""

import json
import subprocess
import threading
from typing import Any


class Witness:
    """Reads the lines of JSON events that another process prints, and records their versions.

    Args:
        process: `punch log --follow --json`, with its output in a pipe.
    """

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._seen: list[int] = []
        self._change = threading.Condition()
        threading.Thread(target=self._read, name="demo-witness", daemon=True).start()

    @property
    def count(self) -> int:
        """How many events the process received."""
        return len(self._seen)

    @property
    def in_order(self) -> bool:
        """Whether every event came once and in order, without a hole."""
        return self._seen == list(range(1, len(self._seen) + 1))

    def wait_for(self, count: int, timeout_s: float) -> bool:
        """Wait until the process has received `count` events. Return whether it did in time."""
        with self._change:
            return self._change.wait_for(lambda: self.count >= count, timeout_s)

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                event: dict[str, Any] = json.loads(line)
                with self._change:
                    self._seen.append(int(event["version"]))
                    self._change.notify_all()
        except ValueError:
            return  # the pipe was closed at the end of the demo
