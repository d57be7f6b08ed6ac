"""Compares what clients see of a log with what they saw of the same log while it was whole.

Each response is the same, or it reports that something is missing: by an error, the mark `damaged`, or the end of a
stream.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import msgspec

from punchlist_faults.options import Violation, need
from punchlist_testing.engine import Peer
from punchlistd.app.app import App
from punchlistd.settings import Settings
from punchlistd.store.port import LogUnusable, StorageFailed

SAME, TOLD, SILENT = "same", "told", "SILENT"

PUSHED_S = 4.0
"""Upper limit for a subscriber's wait for pushes, in seconds."""

READY_S = 20.0

_WORDS = "damaged", "gap", "wrong_epoch"
"""Errors that report that something is missing."""


class Truth(msgspec.Struct):
    """A log while it was whole: its events, and the response to each question about each of its lists."""

    events: list[dict[str, Any]]
    answers: dict[str, Any]

    @property
    def lists(self) -> list[str]:
        return sorted({event["conversation"] for event in self.events})


def questions(name: str) -> dict[str, tuple[str, dict[str, Any]]]:
    place = {"conversation": name}
    return {
        "list": ("task.list", place),
        "messages": ("message.list", {**place, "limit": 1000}),
        "at_version": ("task.list", {**place, "at_version": 7}),
        "undo": ("list.undo", {**place, "count": 4, "preview": True}),
    }


async def ask_truth(data: Path, lists: Iterable[str]) -> Truth:
    async with asyncio.TaskGroup() as group:
        app = _app(data)
        running = group.create_task(app.run(signals=False))
        await app.ready.wait()
        peer = await Peer.open(app.settings.socket)
        events = (await peer.result("event.read", after=0, limit=10_000))["events"]
        answers = {
            f"{question} {name}": _plain(await peer.call(method, **params))
            for name in lists
            for question, (method, params) in questions(name).items()
        }
        peer.writer.close()
        app.stop()
        await running
    return Truth(events, answers)


def _app(data: Path) -> App:
    return App(Settings(socket=str(data.parent / "s"), data_dir=str(data)))


def _plain(answer: Any) -> Any:
    """An answer without what differs between two daemons."""
    result = answer.get("result")
    if isinstance(result, dict):
        return {key: value for key, value in msgspec.convert(result, dict[str, Any]).items() if key != "seq"}
    return None


async def look(data: Path, truth: Truth) -> Counter[str]:
    """How often each question was answered in each way; `refused` where no daemon starts over the log."""
    seen: Counter[str] = Counter()
    app = _app(data)
    running = asyncio.ensure_future(app.run(signals=False))
    ready = asyncio.ensure_future(app.ready.wait())
    try:
        with anyio.fail_after(READY_S * 10):
            await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                await _ask(app.settings.socket, truth, seen)
        app.stop()
        await running
    except (LogUnusable, StorageFailed):
        seen["start: refused"] += 1
    except Exception as error:
        cause = (running.done() and not running.cancelled() and running.exception()) or error
        raise Violation(f"the daemon ended: {cause!r}") from cause
    finally:
        ready.cancel()
        running.cancel()
    return seen


async def _ask(socket: str, truth: Truth, seen: Counter[str]) -> None:
    peer = await Peer.open(socket)
    status = await peer.result("daemon.status")
    if any("log_regressed" in error for error in status.get("last_errors", ())):
        seen["start: told that the end is missing"] += 1
        await _prefix(peer, truth)
    else:
        for name in truth.lists:
            for question, (method, params) in questions(name).items():
                answer = await peer.call(method, **params)
                seen[f"{question}: {_verdict(answer, truth.answers[f'{question} {name}'])}"] += 1
        for name in (None, *truth.lists):
            wanted = [event for event in truth.events if name in (None, event["conversation"])]
            kind = "all" if name is None else "one"
            seen[f"read {kind}: {_compared(wanted, *await _read(peer, name))}"] += 1
            seen[f"pushes {kind}: {_compared(wanted, *await _pushed(socket, name, wanted[-1]['seq']))}"] += 1
    peer.writer.close()


def _verdict(answer: Any, wanted: Any) -> str:
    if "error" in answer:
        kind = answer["error"]["data"]["kind"]
        return TOLD if kind in ("damaged", "gap") else SILENT
    plain = _plain(answer)
    return TOLD if plain.pop("damaged", None) else SAME if plain == wanted else SILENT


def _compared(wanted: list[dict[str, Any]], found: list[dict[str, Any]], told: list[range]) -> str:
    """Whether events are the ones that were written, and each that is missing is in a range that was told."""
    there = {event["seq"]: event for event in found}
    missing = [event["seq"] for event in wanted if event["seq"] not in there]
    true = [event for event in wanted if event["seq"] in there]
    if found != true or any(not any(seq in each for each in told) for seq in missing):
        return SILENT
    return TOLD if told else SAME


Received = tuple[list[dict[str, Any]], list[range]]
"""Events, and the positions that were reported as missing."""

_REST = 1 << 53


async def _read(peer: Peer, name: str | None) -> Received:
    after, found, told = 0, list[dict[str, Any]](), list[range]()
    place = {} if name is None else {"conversation": name}
    while True:
        answer = await peer.call("event.read", after=after, limit=50, **place)
        if "error" in answer:
            data = answer["error"]["data"]
            need(data["kind"] in _WORDS, f"event.read answers {data}")
            if data["kind"] != "gap":
                return found, [*told, range(after + 1, _REST)]
            told.append(range(after + 1, data["first"]))
            after = data["first"] - 1
            continue
        page = answer["result"]
        found += page["events"]
        if not page["events"]:
            return found, told
        after = page["next"]


async def _pushed(socket: str, name: str | None, last: int) -> Received:
    after, found, told = 0, list[dict[str, Any]](), list[range]()
    place = {} if name is None else {"conversation": name}
    peer = await Peer.open(socket)
    with closing(peer.writer), anyio.move_on_after(PUSHED_S):
        while after < last:
            answer = await peer.call("event.subscribe", after=after, **place)
            if "error" in answer:
                need(answer["error"]["data"]["kind"] in _WORDS, f"event.subscribe answers {answer}")
                return found, [*told, range(after + 1, _REST)]
            while after < last:
                push = await peer.push()
                if push["method"] == "end":
                    kind = push["params"]["error"]["data"]["kind"]
                    behind = push["params"]["next"] if kind == "gap" else _REST - 1
                    told.append(range(after + 1, behind + 1))
                    after = behind
                    break
                found += push["params"]["events"]
                after = found[-1]["seq"]
    return found, told


async def _prefix(peer: Peer, truth: Truth) -> None:
    """Of a log that says that its end is missing, what is there is what was written."""
    for name in truth.lists:
        found, _ = await _read(peer, name)
        wanted = [event for event in truth.events if event["conversation"] == name]
        need(found == wanted[: len(found)], f"{name} is served with another content: {json.dumps(found)[:200]}")
