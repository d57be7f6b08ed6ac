"""The disk of a mirror fills up, and loses power SIZE times. The mirror's file must always be whole, and recover
automatically.

The daemon's log is on another disk. Needs root, to mount.
"""

import json
import time
from pathlib import Path

from punchlist.taskfiles.checklist import Checklist
from punchlist.taskfiles.report import status
from punchlist_faults.full import fill
from punchlist_faults.hands import LIST, run_mirror
from punchlist_faults.mounts import disk, small_disk
from punchlist_faults.options import Figures, Options, need, workplace
from punchlist_faults.process import Daemon, daemon_in, eventually
from punchlist_testing.daemon import Raw
from punchlist_testing.savers import sed

TASKS = 50
HEALED_S = 10.0
"""Upper limit for the time from freeing space until the file is correct, in seconds."""


def _titles(file: Path) -> list[str]:
    return [task["title"] for task in json.loads(file.read_bytes())["tasks"]] if file.exists() else []


def _list(link: Raw) -> list[str]:
    return [task["title"] for task in link.result("task.list", conversation=LIST)["tasks"]]


def _start(daemon: Daemon) -> Raw:
    daemon.start()
    link = daemon.connect()
    link.result("task.add_many", conversation=LIST, tasks=[{"title": f"task {n + 1}"} for n in range(TASKS)])
    return link


def _trouble(daemon: Daemon) -> str:
    report = status(str(daemon.data))
    return " ".join(problem.text for problem in report.problems if problem.kind == "trouble") if report else ""


def fills_up(place: Path) -> Figures:
    """Change the list while the disk is full, then free space; an edit of the file must work again."""
    with small_disk(place / "small", "64k") as small, daemon_in(place / "d") as daemon:
        link = _start(daemon)
        with run_mirror(daemon, small) as file:
            eventually(lambda: len(_titles(file)) == TASKS, 10, "the file is whole")
            before = file.read_bytes()
            filler = fill(small)
            link.result("task.edit", conversation=LIST, task="1", title="changed " * 50)
            eventually(lambda: "No space left" in _trouble(daemon), 10, "the full disk is reported")
            need(file.read_bytes() == before, "the file is not the old one")
            need({path.name for path in file.parent.iterdir()} == {file.name}, "a partial file was left")
            filler.unlink()
            healed = eventually(lambda: _titles(file)[0].startswith("changed"), HEALED_S, "the file comes right")
            sed(file, 's/"task 2"/"edited"/')
            eventually(lambda: "edited" in _list(link), HEALED_S, "an edit is taken over")
            eventually(lambda: not _trouble(daemon), HEALED_S, "nothing is wrong any more")
        daemon.stop()
    return {"full: the file came right after, s": round(healed, 1)}


def loses_power(place: Path, options: Options) -> Figures:
    """Cut the power while the file is written repeatedly; it must be a complete old or new one afterwards."""
    chance = options.random("cuts")
    old = 0
    with disk(place) as power, daemon_in(place / "d") as daemon:
        link = _start(daemon)
        for cut in range(options.size):
            with run_mirror(daemon, power.place) as file:
                eventually(lambda file=file: _titles(file) == _list(link), HEALED_S, "the file is written")
                until = time.monotonic() + chance.uniform(0.05, 0.5)
                while time.monotonic() < until:
                    link.result("task.edit", conversation=LIST, task=str(chance.randint(1, TASKS)), title=f"t{cut}")
                power.cut()
            power.unmount()
            power.mount()
            if file.exists():
                document = Checklist().parse(file.name, file.read_bytes())
                need(document.is_untouched and len(document.tasks) == TASKS, f"cut {cut}: the file is torn")
                old += _titles(file) != _list(link)
        with run_mirror(daemon, power.place) as file:
            eventually(lambda: _titles(file) == _list(link), HEALED_S, "the file comes right")
        events = link.result("event.read", conversation=LIST, after=0, limit=10_000)["events"]
        need(not [event for event in events if event["actor"].startswith("file:")], "a torn file was taken for an edit")
        daemon.stop()
    return {"power cuts": options.size, "found an older file": old}


def run(options: Options) -> Figures:
    with workplace() as place:
        (place / "b").mkdir()
        return {**fills_up(place / "a"), **loses_power(place / "b", options)}
