"""Each operation of the log raises `Damaged` in each method. One call is rejected, and all others work."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from punchlist_schemas.errors import ERRORS
from punchlist_schemas.methods import METHODS
from punchlist_testing.daemon import running_daemon
from punchlist_testing.engine import Peer
from punchlistd.store.port import Damaged, EventLog, Gap, Sealed
from punchlistd.store.sqlite import SqliteLog

ENDING = {"close"}
"""Operations used only by a stopping daemon."""

OPERATIONS = sorted(
    name
    for name, member in vars(EventLog).items()
    if not name.startswith("_")
    and not isinstance(member, property)
    and name not in ENDING | {"unindexed_conversations"}
)

ASKED: dict[str, dict[str, Any]] = {
    "daemon.backup": {"path": "{place}/copy.db"},
    "confirmation.get": {"token": "none"},
    "conversation.list": {"query": "bad"},
    "conversation.resolve": {"path": "{place}"},
    "conversation.configure": {"title": "new"},
    "conversation.attach": {"session": "{name}-s"},
    "conversation.detach": {"session": "{name}-s"},
    "task.add": {"title": "t", "key": "again"},
    "task.add_many": {"tasks": [{"title": "t"}], "key": "other"},
    "task.edit": {"task": "1", "title": "u"},
    "task.set_status": {"task": "1", "status": "completed"},
    "task.move": {"task": "1", "to_end": True},
    "task.claim": {"owner": "ann"},
    "task.renew": {"task": "1", "owner": "ann"},
    "task.release": {"task": "1", "owner": "ann"},
    "list.replace": {"tasks": [{"title": "t"}]},
    "message.append": {"role": "user", "content": "hello"},
    "task.get": {"task": "1"},
    "task.delete": {"task": "1"},
    "event.read": {"after": 0},
    "event.wait": {"after": 0, "timeout_ms": 1},
    "event.subscribe": {"after": 0},
    "task.list": {"at_version": 1},
}
"""Params that a method needs in addition to the list."""

LANGUAGE_SERVER = {"$/cancelRequest", "initialize", "initialized", "shutdown", "exit"}
"""Methods for language server clients; they name no list."""

NOT_ASKED = {"daemon.hello", "rpc.discover", "rpc.cancel", "daemon.shutdown", "event.unsubscribe"} | LANGUAGE_SERVER
"""Methods that concern only the connection or the daemon."""

PLACELESS = {"daemon.backup", "daemon.status", "confirmation.get", "conversation.list", "conversation.resolve"}


def list_of(method: str) -> str:
    return f"bad-{method}"


def spoil(monkeypatch: pytest.MonkeyPatch, operation: str, met: list[str]) -> None:
    """Make an operation raise `Damaged` for one of the bad lists or without a list."""
    sound: Callable[..., Any] = getattr(SqliteLog, operation)

    def damage(args: tuple[Any, ...], options: dict[str, Any]) -> Exception | None:
        first = args[0] if args else None
        if isinstance(first, list):
            entries = [each for each in cast(list[Any], first) if isinstance(each, Sealed)]
            bad = [each.conversation for each in entries if each.conversation.startswith("bad")]
            return Damaged("", 0, "its pages can't be read") if bad or not entries else None
        name = options.get("conversation") or first
        if not isinstance(name, str):
            return (
                Gap(first, first + 2) if operation == "read" and isinstance(first, int) else Damaged("", 0, "spoiled")
            )
        return Damaged(name, 1, "spoiled") if name.startswith("bad") else None

    def now(log: SqliteLog, *args: Any, **options: Any) -> Any:
        if (error := damage(args, options)) is not None:
            met.append(operation)
            raise error
        return sound(log, *args, **options)

    async def later(log: SqliteLog, *args: Any, **options: Any) -> Any:
        found = now(log, *args, **options)
        return await found

    monkeypatch.setattr(SqliteLog, operation, later if inspect.iscoroutinefunction(sound) else now)


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_damage_rejects_only_its_operation(
    operation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        for name in ("good", *map(list_of, METHODS.keys() - NOT_ASKED)):
            await peer.result("task.add", conversation=name, title="t", key="again")
            await peer.result("message.append", conversation=name, role="user", content="m")
        peer.close()
    met: list[str] = []
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        await peer.result("task.list", conversation="good")
        spoil(monkeypatch, operation, met)
        for number, method in enumerate(sorted(METHODS.keys() - NOT_ASKED)):
            name = list_of(method)
            asked = {
                key: value.format(name=name, place=tmp_path) if isinstance(value, str) else value
                for key, value in ASKED.get(method, {}).items()
            }
            place = {} if method in PLACELESS else {"conversation": name}
            answers = [await peer.call(method, **place, **asked)]
            if (error := answers[0].get("error", {}).get("data", {})).get("kind") == "confirmation_required":
                answers.append(await peer.call(method, **place, **asked, confirm=error["token"]))
            if method in ("task.list", "event.read", "event.subscribe"):
                answers.append(await peer.call(method, **({"after": 0} if method != "task.list" else place)))
            if place:
                answers.append(
                    await peer.call(method, **{**asked, "conversation": f"bad-none-{method}"})
                )  # not used before
            for answer in answers:
                kind = answer.get("error", {}).get("data", {}).get("kind", "")
                assert "result" in answer or kind in ERRORS, (method, answer)
                assert kind not in ("internal_error", "outcome_unknown"), (method, answer)
            if operation == "erase":
                assert all(each.get("error", {}).get("data", {}).get("kind") != "damaged" for each in answers), (
                    "the damaged list was deleted"
                )
            await peer.result("task.add", conversation="good", title=f"{number}")
            assert (await peer.result("task.list", conversation="good"))["total"] == number + 2, (
                "another list is served"
            )
        monkeypatch.undo()
        peer.close()


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_daemon_runs_over_damage_of_any_operation(
    operation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        for name in ("good", "bad-1"):
            await peer.result("task.add", conversation=name, title="t", key="again")
        token = (await peer.refusal("conversation.delete", conversation="bad-1"))["token"]
        await peer.result("conversation.delete", conversation="bad-1", confirm=token)
        peer.close()
    spoil(monkeypatch, operation, [])
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        bound = await Peer.open(daemon.socket)
        await bound.result("daemon.hello", user="ann")
        for method, params in (("task.list", {"conversation": "good"}), ("conversation.list", {})):
            answer = await bound.call(method, **params)
            assert answer.get("error", {}).get("data", {}).get("kind", "") in ("", "not_found", "damaged"), answer
        assert (await peer.call("task.add", conversation="good", title="u")).keys() >= {"result"}
        assert (await peer.result("task.list", conversation="good"))["total"] == 2
        for each in (peer, bound):
            each.close()


def test_every_method_is_called() -> None:
    assert ASKED.keys() - METHODS.keys() == set()
    assert {"append", "append_now", "read", "load", "find_key", "keys", "maintain", "erase"} <= {*OPERATIONS}
