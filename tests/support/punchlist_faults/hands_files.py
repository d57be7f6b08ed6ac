"""The client of `together` that edits the mirror file."""

import json
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from punchlist_faults.hands import SHARED, TASKS, Act, Hand, Witness
from punchlist_faults.options import Violation
from punchlist_faults.process import PATIENCE_S, eventually
from punchlist_testing.savers import vim


class FileHand(Hand):
    """A client that edits the mirror file, with `sed -i` or by saving it like vim, often from an outdated copy."""

    kind = "file"

    def __init__(self, random: Random, count: int, seconds: float, path: Path, witness: Witness) -> None:
        super().__init__(random, count, seconds)
        self.path = path
        self._witness = witness
        self._last: dict[tuple[str, str], str | bool] = {}
        self.done_wanted: dict[str, bool] = {}
        self._added: list[str] = []

    def acts(self) -> Sequence[tuple[Act, float]]:
        return (
            (lambda: self._sed_text(self.any_task(), "description"), 4),
            (lambda: self._sed_text(self.any_shared(), "title"), 0.5),
            (self._sed_done, 1.5),
            (self._vim, 6),
        )

    def _await_last(self, task: str, member: str) -> None:
        """Wait until the last text for a member is in an event and in the file.

        Otherwise the next text would overwrite this one, or conflict with it in a file that doesn't contain it yet.
        """
        if (before := self._last.get((task, member))) is None:
            return
        if isinstance(before, str):
            self._witness.await_token(before)
        if int(task) > SHARED:
            eventually(lambda: self._shows(task, member, before), PATIENCE_S, f"the file shows {before!r} at {task}")

    def _shows(self, task: str, member: str, value: object) -> bool:
        return any(item.get("id") == task and item.get(member) == value for item in self._read()["tasks"])

    def _read(self) -> Any:
        return json.loads(self.path.read_bytes())

    def sed(self, task: str, member: str, value: str) -> bool:
        """Set a member of a task; return whether the file has the task."""
        script = f'/"id": "{task}",/,/"done"/ s/"{member}": [^,]*/"{member}": {value}/w /dev/stdout'
        ended = subprocess.run(
            ["sed", "-i", script, str(self.path)], capture_output=True, timeout=PATIENCE_S, check=True
        )
        return bool(ended.stdout)

    def _sed_text(self, task: str, member: str) -> None:
        self._await_last(task, member)
        token = self.token()
        if not self.sed(task, member, f'"{token}"'):
            raise Violation(f"the file lacks task {task}")
        self._last[task, member] = token
        self.wrote(token, undisputed=int(task) > SHARED, task=task)

    def _sed_done(self) -> None:
        task = str(2 * self.random.randint(SHARED // 2 + 1, TASKS // 2))
        self._await_last(task, "done")
        done = self._last[task, "done"] = self.done_wanted[task] = self.random.random() < 0.5  # noqa: PLR2004
        self.sed(task, "done", str(done).lower())

    def _vim(self) -> None:
        value = self._read()
        tokens: list[tuple[str, bool, str]] = []
        for item in self.random.sample(value["tasks"], self.random.randint(1, 3)):
            place = (item.get("id", ""), "description")
            # The mirror has not yet filled in the task that this client added, which may lack an id or a description.
            shown = item.get("description")
            if (
                shown is None
                or not place[0]
                or self._last.get(place, shown) != shown
                or not self._witness.has_seen(shown)
            ):
                continue  # the task is new, or its last text isn't in an event or in the file yet
            token = item["description"] = self._last[place] = self.token()
            tokens.append((token, item["id"].isdecimal() and SHARED < int(item["id"]) <= TASKS, item["id"]))
        if self.random.random() < 0.1:  # noqa: PLR2004
            token = self.token()
            value["tasks"].append({"id": token, "title": token} if self.random.random() < 0.5 else {"title": token})  # noqa: PLR2004
            tokens.append((token, True, ""))
        time.sleep(self.random.choice([0, 0, self.random.uniform(0, 0.5)]))  # the user looks at the screen
        vim(self.path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())
        for token, undisputed, task in tokens:
            self.wrote(token, undisputed=undisputed, task=task)

    def tasks(self) -> list[tuple[Any, ...]]:
        return [tuple(map(task.get, ("id", "title", "description", "done"))) for task in self._read()["tasks"]]
