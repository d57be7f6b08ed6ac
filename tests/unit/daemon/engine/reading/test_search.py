"""Text search: matches, access, changes, erasure, a damaged index and a full disk."""

import os
import sqlite3
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from punchlist_testing.daemon import running_daemon
from punchlist_testing.engine import Engine, Peer, TouchyLog, engine
from punchlistd.store.search import SearchIndex, Words, match_expression


class Serving:
    """A daemon with a real log, and its clients."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self.peers: list[Peer] = []

    async def connect(self, **hello: Any) -> Peer:
        peer = await Peer.open(self._socket)
        self.peers.append(peer)
        if hello:
            await peer.result("daemon.hello", **hello)
        return peer


@asynccontextmanager
async def serving(directory: Path) -> AsyncGenerator[Serving]:
    async with running_daemon(directory) as running:
        clients = Serving(running.socket)
        yield clients
        for peer in clients.peers:
            peer.close()


async def found(peer: Peer, query: str, **members: Any) -> list[str]:
    result = await peer.result("task.search", query=query, **members)
    return [f"{hit['conversation']}#{hit['task']['id']}" for hit in result["hits"]]


async def plan(peer: Peer, name: str, *titles: str) -> None:
    await peer.result("task.add_many", conversation=name, tasks=[{"title": title} for title in titles])


async def test_search_ignores_case_accents_and_endings(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as running:
        peer = await running.connect()
        await plan(peer, "c", "Write the Léxer", "other")
        edited = {"description": "about parsers", "add_labels": ["frontend"]}
        await peer.result("task.edit", conversation="c", task="2", **edited)
        await peer.result("task.note", conversation="c", task="2", text="Monday maybe")
        await peer.result("task.set_status", conversation="c", task="2", status="completed", result_summary="shipped")
        for query in ("lexer", "LEX", "the lexer", '"write the"'):
            assert await found(peer, query) == ["c#1"], query
        for query in ("parser", "front", "monday", "shipped", "other monday"):
            assert await found(peer, query) == ["c#2"], query
        assert await found(peer, '"the write"') == []
        assert await found(peer, "lexer monday") == []
        assert await found(peer, "other", status="pending") == []
        assert await found(peer, "other", status=["completed"]) == ["c#2"]


@pytest.mark.parametrize("query", ['"', "*", "NEAR(", "a AND", "title:x", "-", "^", "'", "\0", "\u200d", '""" OR "'])
async def test_queries_are_never_fts_syntax(tmp_path: Path, query: str) -> None:
    async with serving(tmp_path) as running:
        peer = await running.connect()
        await plan(peer, "c", "plain")
        assert await found(peer, query + "x") == []


async def test_search_follows_changes_deletion_clear_and_undo(tmp_path: Path) -> None:
    async with serving(tmp_path) as running:
        peer = await running.connect()
        await plan(peer, "c", "alpha", "beta")
        assert await found(peer, "alpha", conversation="c") == ["c#1"]
        await peer.result("task.edit", conversation="c", task="1", title="gamma")
        assert (await found(peer, "alpha"), await found(peer, "gamma")) == ([], ["c#1"])
        await peer.result("task.delete", conversation="c", task="1")
        assert await found(peer, "gamma") == []
        await peer.result("list.undo", conversation="c")
        assert await found(peer, "gamma") == ["c#1"]
        await peer.result("list.clear", conversation="c")
        assert await found(peer, "beta") == []
        refused = await peer.refusal("task.search", query=" ")
        assert refused["kind"] == "invalid_params"


async def test_best_match_is_first_and_rest_counted(tmp_path: Path) -> None:
    async with serving(tmp_path) as running:
        peer = await running.connect()
        await peer.result("task.add", conversation="a", title="something", description="about a needle, long " * 20)
        await plan(peer, "b", "needle")
        result = await peer.result("task.search", query="needle", limit=1)
        assert ([hit["conversation"] for hit in result["hits"]], result["total"]) == (["b"], 2)
        assert "needle" in result["hits"][0]["excerpt"]


async def test_number_finds_its_tasks_first(tmp_path: Path) -> None:
    async with serving(tmp_path) as running:
        peer = await running.connect()
        await plan(peer, "a", "Upgrade to 2", "Call the 2nd plumber")
        await plan(peer, "b", "one", "two")
        for query in ("2", " #2 "):
            assert (await found(peer, query))[:2] == ["b#2", "a#2"], query
            assert (await found(peer, query))[2:] == ["a#1"], query
            assert await found(peer, query, conversation="b") == ["b#2"], query
        assert await found(peer, "2", sort="title") == ["a#2", "b#2", "a#1"]
        assert (await found(peer, "#3"), await found(peer, "#"), await found(peer, "# 2")) == ([], [], ["a#1", "a#2"])


async def test_filters_find_tasks_without_words(tmp_path: Path) -> None:
    async with serving(tmp_path) as running:
        peer = await running.connect()
        await peer.result("task.add", conversation="a", title="late", due=2_000, labels=["ops", "now"], owner="ann")
        await peer.result("task.add", conversation="a", title="blocked", blocked_by=["1"], labels=["ops"])
        await peer.result("task.add", conversation="a", title="gated", gate={"yes": True}, status="in_progress")
        await peer.result("task.set_status", conversation="a", task="3", status="completed")
        await peer.result("task.add", conversation="b", title="broken", status="failed", owner="bob")
        await peer.result("task.add", conversation="b", title="asap", due=1_000)
        for filters, expected in (
            ({"status": "failed"}, ["b#1"]),
            ({"status": ["failed", "paused"]}, ["b#1", "a#3"]),
            ({"owner": ["ann", "bob"]}, ["b#1", "a#1"]),
            ({"owner": "ann", "ready": False}, []),
            ({"label": ["ops", "now"]}, ["a#1"]),
            ({"ready": True}, ["b#2", "a#1"]),
            ({"waits_for": "yes"}, ["a#3"]),
            ({"due_before": 1_500}, ["b#2"]),
            ({"due_before": 3_000, "sort": "title"}, ["b#2", "a#1"]),
            ({"status": "pending", "conversation": "a"}, ["a#1", "a#2"]),
            ({"status": "in_progress"}, []),
        ):
            assert await found(peer, "", **filters) == expected, filters
        assert await found(peer, "broken", owner="ann") == []
        assert await found(peer, "broken", owner="bob") == ["b#1"]


async def test_pages_contain_each_match_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as running:
        peer = await running.connect()
        await plan(peer, "c", *(f"needle {number}" for number in range(7)))
        for query in ("needle", ""):
            pages, seen, cursor = list[int](), list[str](), None
            while cursor is not None or not pages:
                result = await peer.result(
                    "task.search", query=query, status="pending", sort="created", limit=3, cursor=cursor
                )
                assert result["total"] == 7
                pages.append(len(result["hits"]))
                seen += [hit["task"]["id"] for hit in result["hits"]]
                cursor = result.get("next_cursor")
            assert pages == [3, 3, 1], query
            assert seen == [str(number) for number in range(1, 8)], query
        for wrong in ("", "0", "-3", "3x", "9" * 30):
            refused = await peer.refusal("task.search", query="needle", cursor=wrong)
            assert (refused["kind"], refused["field"]) == ("invalid_params", "cursor"), wrong


async def test_lists_without_a_match_are_not_loaded(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        await plan(peer, "quiet", "open")
        await peer.result("task.add", conversation="loud", title="broken", status="failed")
        await peer.result("conversation.list")
    async with engine(tmp_path, log) as running:
        assert await found(await running.connect(), "", status="failed") == ["loud#1"]
        assert [*running.conversations.loaded] == ["loud"]


async def test_other_users_tasks_are_not_found(tmp_path: Path) -> None:
    async with serving(tmp_path) as running:
        alice = await running.connect(user="alice")
        bob = await running.connect(user="bob")
        await plan(alice, "my:todos", "secret plan")
        assert await found(await running.connect(), "secret") == ["of:alice:todos#1"]
        assert await found(alice, "secret") == ["of:alice:todos#1"]
        assert await found(bob, "secret") == []
        assert await found(bob, "secret", conversation="my:todos") == []
        assert (await bob.refusal("task.search", query="secret", conversation="of:alice:todos"))["kind"] == "not_found"
        assert (await bob.result("task.search", query="secret"))["total"] == 0
        assert await found(alice, "", status="pending") == ["of:alice:todos#1"]
        assert await found(bob, "", status="pending") == []
        assert await found(bob, "#1") == []


async def test_erased_words_are_in_no_file(tmp_path: Path) -> None:
    async with serving(tmp_path) as running:
        peer = await running.connect()
        await plan(peer, "c", *(f"xyzzyplugh{number}" for number in range(50)))
        await plan(peer, "kept", "harmless")
        assert len(await found(peer, "xyzzy")) == 50
        asked = await peer.refusal("conversation.delete", conversation="c")
        await peer.result("conversation.delete", conversation="c", confirm=asked["token"])
        assert await found(peer, "xyzzy") == []
        assert await found(peer, "harmless") == ["kept#1"]
    for path in (tmp_path / "data").iterdir():
        assert b"xyzzy" not in path.read_bytes(), path


async def test_search_index_persists_with_owner_permissions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(tmp_path) as running:
        await plan(await running.connect(), "c", "alpha")
        await found(await running.connect(), "alpha")
    path = tmp_path / "data" / "log.search"
    assert path.stat().st_mode & 0o777 == 0o600
    updates: list[str] = []
    update = SearchIndex.update

    def noted(index: SearchIndex, name: str, *args: Any) -> None:
        updates.append(name)
        update(index, name, *args)

    monkeypatch.setattr(SearchIndex, "update", noted)
    async with serving(tmp_path) as running:
        assert await found(await running.connect(), "alpha") == ["c#1"]
    assert updates == []


async def test_search_and_deletion_run_concurrently(tmp_path: Path) -> None:
    log = TouchyLog()
    with anyio.fail_after(30):  # in a deadlock, neither would end, and the engine wouldn't either
        async with engine(tmp_path, log) as running:
            await _delete_beside_a_search(running, log)
    assert b"xyzzy" not in (tmp_path / "log.search").read_bytes()


async def _delete_beside_a_search(running: Engine, log: TouchyLog) -> None:
    deleter, reader = await running.connect(), await running.connect()
    await plan(deleter, "c", "xyzzy")
    await plan(deleter, "kept", "harmless")
    await found(reader, "xyzzy")
    asked = await deleter.refusal("conversation.delete", conversation="c")
    gate = log.hold(after=True)
    deleter.send("conversation.delete", {"conversation": "c", "confirm": asked["token"]}, id="deleted")
    await gate.reached()
    reader.send("task.search", {"query": "harmless"}, id="found")
    for _ in range(2):  # the search has started, and waits for the writer
        await (await running.connect()).quiet()
    gate.open()
    assert "result" in await deleter.answer("deleted")
    hits = (await reader.answer("found"))["result"]["hits"]
    assert [hit["conversation"] for hit in hits] == ["kept"]


async def test_concurrent_search_rebuilds_an_unreadable_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(tmp_path) as running:
        deleter, reader = await running.connect(), await running.connect()
        await plan(deleter, "c", "alpha")
        await plan(deleter, "gone", "beta")
        assert await found(reader, "alpha") == ["c#1"]
        await plan(deleter, "c", "alphabet")
        asked = await deleter.refusal("conversation.delete", conversation="gone")
        known, reading, damaged = SearchIndex.indexed_versions, threading.Event(), threading.Event()

        def noted(index: SearchIndex) -> dict[str, tuple[int, int]]:
            lists = known(index)
            reading.set()
            assert damaged.wait(5)
            return lists

        def unreadable(index: SearchIndex, names: list[str]) -> None:
            raise sqlite3.DatabaseError(f"{names} can't be read")

        with monkeypatch.context() as patch:
            patch.setattr(SearchIndex, "indexed_versions", noted)
            patch.setattr(SearchIndex, "forget", unreadable)
            reader.send("task.search", {"query": "alpha"}, id="found")
            await anyio.to_thread.run_sync(reading.wait, 5)
            deleter.send("conversation.delete", {"conversation": "gone", "confirm": asked["token"]}, id="deleted")
            for _ in range(2):
                await (await running.connect()).quiet()
            damaged.set()
            assert "result" in await deleter.answer("deleted")
            hits = (await reader.answer("found"))["result"]["hits"]
        assert sorted(hit["task"]["title"] for hit in hits) == ["alpha", "alphabet"]


@pytest.mark.parametrize("harm", ["garbage", "cut", "another log", "not closed"])
async def test_untrusted_index_is_rebuilt(tmp_path: Path, harm: str) -> None:
    async with serving(tmp_path) as running:
        await plan(await running.connect(), "c", "alpha")
        await found(await running.connect(), "alpha")
    path = tmp_path / "data" / "log.search"
    if harm == "garbage":
        path.write_bytes(os.urandom(20_000))
    elif harm == "cut":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    else:
        with sqlite3.connect(path) as connection:
            if harm == "another log":
                connection.execute("UPDATE meta SET log = 'x'")
            else:
                connection.execute("DELETE FROM words")
                connection.execute("PRAGMA user_version = 3")
        connection.close()
    async with serving(tmp_path) as running:
        assert await found(await running.connect(), "alpha") == ["c#1"]


async def test_search_survives_damage_and_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(tmp_path) as running:
        peer = await running.connect()
        await plan(peer, "c", "alpha")
        assert await found(peer, "alpha") == ["c#1"]
        (tmp_path / "data" / "log.search").write_bytes(b"\0" * 40_000)
        await plan(peer, "c", "alphabet")
        assert sorted(await found(peer, "alpha")) == ["c#1", "c#2"]
        update = SearchIndex.update

        def full(index: SearchIndex, *args: Any) -> None:
            if index._connection.execute("PRAGMA database_list").fetchone()[2]:  # pyright: ignore[reportPrivateUsage]
                index._connection.execute("PRAGMA max_page_count = 1")  # pyright: ignore[reportPrivateUsage]
            update(index, *args)

        monkeypatch.setattr(SearchIndex, "update", full)
        await plan(peer, "c", "alphanumeric " + "x" * 480, *(f"alpha {number} " + "y" * 480 for number in range(40)))
        assert len(await found(peer, "alpha")) == 43


def test_punctuation_alone_finds_nothing() -> None:
    assert match_expression('a "b c" d"e') == '"a"* "b c"* "d"* "e"*'
    assert match_expression('* - "!"') == ""


def test_unindexed_list_is_dropped_silently(tmp_path: Path) -> None:
    index = SearchIndex(str(tmp_path / "s"), "log")
    index.update("c", 1, 1, [Words("1", "a", "", "", "", "")], None)
    index.forget(["other"])
    assert index.indexed_versions() == {"c": (1, 1)}
    index.close()
