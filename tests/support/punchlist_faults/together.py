"""Five clients of five kinds work on one list of 200 tasks: no edit is lost or duplicated, and all see the same list.

SIZE is the number of operations of all clients. Each client has its own thread or process, so that their steps
interleave. A tenth of the operations are `punch` commands, and a tenth are saves of the mirror file (half with
`sed -i`, half as vim saves, often from an outdated copy). The rest are calls over a raw socket, to `punch agent mcp`
with the dialect `claude`, and to the dialect `queue` as a library. When the list is quiet, the program measures how
long a change takes from end to end.
"""

import time
from collections import Counter
from contextlib import suppress
from typing import Any

from punchlist_faults.crowd import percentile
from punchlist_faults.hands import LIST, TASKS, Hand, Witness, run_mirror, words
from punchlist_faults.hands_calls import ClaudeHand, CliHand, QueueHand, RawHand
from punchlist_faults.hands_files import FileHand
from punchlist_faults.options import Figures, Options, Violation, need
from punchlist_faults.process import PATIENCE_S, eventually, running_daemon

SECONDS_EACH = 0.03
"""Mean duration of each client's operations, so that all clients end at about the same time."""

ROUNDS = 50
"""Number of operations in each round of measurement."""

QUIET_S = 1.5
"""Time without a change after which nothing is in flight. It exceeds the time for which a displaced file is watched."""


def _in_file(truth: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [(title, description, status == "completed") for _, title, description, status in truth]


def _wait_until_settled(raw: RawHand, file: FileHand, witness: Witness) -> list[tuple[Any, ...]]:
    """Wait until list and file agree and nothing changes; return the list."""

    def agree() -> bool:
        before = len(witness.events)
        with suppress(OSError, ValueError):
            if [row[1:] for row in file.tasks()] == _in_file(raw.tasks()):
                time.sleep(QUIET_S)
                return len(witness.events) == before
        time.sleep(0.1)
        return False

    eventually(agree, PATIENCE_S * 2, "the file and the list agree")
    return raw.tasks()


def _judge_texts(hands: list[Hand], events: list[dict[str, Any]]) -> Figures:
    """Check that each acknowledged or saved text is in one event. Text saved in the file may be reported as a conflict
    instead."""
    happened: dict[str, list[str]] = {}
    reported: set[str] = set()
    for record in events:
        if record["event"]["type"] == "MessageAppended":
            reported.update(words(record["event"]))
            continue
        for word in words(record["event"]):
            happened.setdefault(word, []).append(record["actor"])
    doubled = {word: actors for word, actors in happened.items() if len(actors) > 1}
    need(not doubled, f"happened more than once: {doubled}")
    conflicts = 0
    for deed in (deed for hand in hands for deed in hand.deeds):
        actors = happened.get(deed.token, [])
        if deed.by == "file" and not actors and not deed.is_undisputed and deed.token in reported:
            conflicts += 1
            continue
        need(actors, f"{deed} is lost (reported: {deed.token in reported}): {_about(deed.task, events)}")
        need(actors[0].startswith(deed.by), f"{deed} happened as {actors[0]}")
    return {"texts written": len(happened), "conflicts reported": conflicts}


def _about(task: str, events: list[dict[str, Any]]) -> str:
    return "".join(
        f"\n{record['version']} {record['actor']} {record['event']}"
        for record in events
        if record["event"].get("task") == task
    )


def _judge_list(truth: list[tuple[Any, ...]], events: list[dict[str, Any]], file: FileHand) -> None:
    """Check that the list equals its replayed events, and members edited by one client alone have its last values."""
    texts: dict[tuple[str, str], str] = {}
    versions = [record["version"] for record in events]
    need(versions == list(range(versions[0], versions[0] + len(versions))), "an event is missing or came twice")
    for event in (record["event"] for record in events):
        match event["type"]:
            case "TaskAdded":
                texts |= {(event["task"]["id"], name): event["task"].get(name, "") for name in ("title", "description")}
            case "TaskEdited":
                texts |= {(event["task"], name): event[name] for name in ("title", "description") if name in event}
            case _:
                pass
    for task, title, description, status in truth:
        written = texts[task, "title"], texts[task, "description"]
        need(written == (title, description), f"task {task} is not as written")
        is_done = file.done_wanted.get(task)
        need(is_done is None or is_done == (status == "completed"), f"task {task}: done {is_done} is lost")
    need({str(number) for number in range(1, TASKS + 1)} <= {row[0] for row in truth}, "a task is gone")


def _judge_views(truth: list[tuple[Any, ...]], hands: list[Hand]) -> None:
    def join(title: str, description: str) -> str:
        return f"{title}\n{description}" if description else title

    todo = ("pending", "in_progress")
    expected: dict[str, list[tuple[Any, ...]]] = {
        "raw": truth,
        "cli": truth,
        "claude": [(task, title, status) for task, title, _, status in truth],
        "queue": sorted((task, join(title, more), status) for task, title, more, status in truth if status in todo),
        "file": _in_file(truth),
    }
    for hand in hands:
        found = [row[1:] for row in hand.tasks()] if hand.name == "file" else hand.tasks()
        if hand.name == "queue":  # This tool lists tasks in the order they will run, which other tests check.
            found.sort()
        need(found == expected[hand.name], f"{hand.name} sees another list: {set(found) ^ set(expected[hand.name])}")


def _times(options: Options, file: FileHand, claude: ClaudeHand, witness: Witness) -> Figures:
    """Measure the time from `sed -i` to the pushed event, and from a tool's call to the changed file, one operation at
    a time."""
    chance = options.random("times")
    pushed: list[float] = []
    shown: list[float] = []
    for number in range(max(3, options.size // ROUNDS)):
        time.sleep(chance.uniform(0.1, 0.3))
        token, task = f"tk-sed-{number}", str(chance.randint(1, TASKS))
        began = time.monotonic()
        file.sed(task, "description", f'"{token}"')
        pushed.append(witness.await_token(token) - began)
        time.sleep(chance.uniform(0.1, 0.3))
        token = f"tk-tool-{number}"
        began = time.monotonic()
        claude.call("TaskUpdate", taskId=task, subject=token)
        eventually(lambda token=token: token in file.path.read_text(), PATIENCE_S, f"{token} is in the file")
        shown.append(time.monotonic() - began)
    return {
        f"{name}, ms": f"p50 {percentile(values, 0.5) * 1000:.0f}, p99 {percentile(values, 0.99) * 1000:.0f}"
        for name, values in (("sed -i to pushed event", pushed), ("tool call to mirror file", shown))
    } | {"rounds measured": len(pushed)}


def run(options: Options) -> Figures:
    seconds, tenth = options.size * SECONDS_EACH, max(1, options.size // 10)
    with running_daemon() as daemon:
        link = daemon.connect()
        link.result("task.add_many", conversation=LIST, tasks=[{"title": f"task {n + 1}"} for n in range(TASKS)])
        with run_mirror(daemon, daemon.directory / "files") as path:
            witness = Witness(daemon.socket)
            shared = (seconds, daemon.socket)
            raw = RawHand(options.random("raw"), 3 * tenth, *shared)
            claude = ClaudeHand(options.random("claude"), 3 * tenth, *shared)
            queue = QueueHand(options.random("queue"), 2 * tenth, *shared)
            cli = CliHand(options.random("cli"), tenth, *shared)
            file = FileHand(options.random("file"), tenth, seconds, path, witness)
            hands: list[Hand] = [raw, claude, queue, cli, file]
            try:
                for hand in hands:
                    hand.start()
                for hand in hands:
                    hand.join(PATIENCE_S * 4 + seconds * 10)
                    hand.check()
                truth = _wait_until_settled(raw, file, witness)
                events = list(witness.events)
                figures = _judge_texts(hands, events)
                _judge_list(truth, events, file)
                _judge_views(truth, hands)
                times = _times(options, file, claude, witness)
            except Violation:
                print((daemon.directory / "mirror.log").read_text()[-4_000:])
                raise
            finally:
                for hand in hands:
                    hand.end()
                witness.close()
    kinds = Counter(record["actor"].partition(":")[0] for record in events)
    return {
        "operations": sum(hand.done for hand in hands),
        "claude works": claude.way,
        **figures,
        "events by": ", ".join(f"{who} {number:,}" for who, number in sorted(kinds.items()) if who != "anonymous"),
        "refused": sum(hand.refused for hand in hands),
        "tasks in the end": len(truth),
        **times,
    }
