"""Compares a daemon's responses for a damaged log with its responses for the same log while it was intact.

Each response must be the same or report that something is missing: by an error, the marker `damaged`, or the end of a
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

SAME, REPORTED, SILENT = "same", "told", "SILENT"

PUSHED_S = 4.0
"""Upper limit for a subscriber's wait for pushes, in seconds."""

READY_S = 20.0

_MISSING_KINDS = "damaged", "gap", "wrong_epoch"
"""Kinds of errors that report missing events."""


class Truth(msgspec.Struct):
    """Reference data from an intact log: its events, and the response to each query for each list."""

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
    """Return a result without the member that differs between daemons; None for an error."""
    result = answer.get("result")
    if isinstance(result, dict):
        return {key: value for key, value in msgspec.convert(result, dict[str, Any]).items() if key != "seq"}
    return None


async def look(data: Path, truth: Truth) -> Counter[str]:
    """Return the number of times that each question had each verdict; `start: refused` if the daemon rejects the log.

    Raises:
        Violation: The daemon ended with an error other than an unusable log or failed storage.
    """
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
        await _check_prefix(peer, truth)
    else:
        for name in truth.lists:
            for question, (method, params) in questions(name).items():
                answer = await peer.call(method, **params)
                seen[f"{question}: {_verdict(answer, truth.answers[f'{question} {name}'])}"] += 1
        for name in (None, *truth.lists):
            expected = [event for event in truth.events if name in (None, event["conversation"])]
            kind = "all" if name is None else "one"
            seen[f"read {kind}: {_compare_events(expected, *await _read(peer, name))}"] += 1
            seen[
                f"pushes {kind}: {_compare_events(expected, *await _receive_pushes(socket, name, expected[-1]['seq']))}"
            ] += 1
    peer.writer.close()


def _verdict(answer: Any, expected: Any) -> str:
    if "error" in answer:
        kind = answer["error"]["data"]["kind"]
        return REPORTED if kind in ("damaged", "gap") else SILENT
    plain = _plain(answer)
    return REPORTED if plain.pop("damaged", None) else SAME if plain == expected else SILENT


def _compare_events(expected: list[dict[str, Any]], found: list[dict[str, Any]], missing_ranges: list[range]) -> str:
    """Return the verdict on received events: they must be unchanged, and missing ones must be in a reported range."""
    seqs = {event["seq"] for event in found}
    missing = [event["seq"] for event in expected if event["seq"] not in seqs]
    unchanged = [event for event in expected if event["seq"] in seqs]
    if found != unchanged or any(not any(seq in positions for positions in missing_ranges) for seq in missing):
        return SILENT
    return REPORTED if missing_ranges else SAME


Received = tuple[list[dict[str, Any]], list[range]]
"""Events, and the ranges of positions that were reported as missing."""

_REST = 1 << 53


async def _read(peer: Peer, name: str | None) -> Received:
    after, found, missing_ranges = 0, list[dict[str, Any]](), list[range]()
    place = {} if name is None else {"conversation": name}
    while True:
        answer = await peer.call("event.read", after=after, limit=50, **place)
        if "error" in answer:
            data = answer["error"]["data"]
            need(data["kind"] in _MISSING_KINDS, f"event.read answers {data}")
            if data["kind"] != "gap":
                return found, [*missing_ranges, range(after + 1, _REST)]
            missing_ranges.append(range(after + 1, data["first"]))
            after = data["first"] - 1
            continue
        page = answer["result"]
        found += page["events"]
        if not page["events"]:
            return found, missing_ranges
        after = page["next"]


async def _receive_pushes(socket: str, name: str | None, last: int) -> Received:
    after, found, missing_ranges = 0, list[dict[str, Any]](), list[range]()
    place = {} if name is None else {"conversation": name}
    peer = await Peer.open(socket)
    with closing(peer.writer), anyio.move_on_after(PUSHED_S):
        while after < last:
            answer = await peer.call("event.subscribe", after=after, **place)
            if "error" in answer:
                need(answer["error"]["data"]["kind"] in _MISSING_KINDS, f"event.subscribe answers {answer}")
                return found, [*missing_ranges, range(after + 1, _REST)]
            while after < last:
                push = await peer.push()
                if push["method"] == "end":
                    kind = push["params"]["error"]["data"]["kind"]
                    behind = push["params"]["next"] if kind == "gap" else _REST - 1
                    missing_ranges.append(range(after + 1, behind + 1))
                    after = behind
                    break
                found += push["params"]["events"]
                after = found[-1]["seq"]
    return found, missing_ranges


async def _check_prefix(peer: Peer, truth: Truth) -> None:
    """Check that a log with a reported missing end contains a prefix of each list's events."""
    for name in truth.lists:
        found, _ = await _read(peer, name)
        expected = [event for event in truth.events if event["conversation"] == name]
        need(found == expected[: len(found)], f"{name} is served with another content: {json.dumps(found)[:200]}")
