import os
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from punchlist_testing.daemon import Raw, Running, running_daemon
from punchlistd.app import report


def exchange(daemon: Running) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the daemon's status before and after five calls, one of which is rejected."""
    client, watcher = Raw(daemon.socket), Raw(daemon.socket)
    before = client.result("daemon.status")
    watcher.result("daemon.hello", client={"name": "watcher", "version": "1"})
    watcher.result("event.subscribe", conversation="c", view="list")
    client.result("task.add", conversation="c", title="one")
    assert client.call("task.get", conversation="c", task="9")["error"]
    after = client.result("daemon.status")
    client.close()
    watcher.close()
    return before, after


async def test_figures_are_current(tmp_path: Path) -> None:
    async with running_daemon(tmp_path) as daemon:
        with anyio.fail_after(30):
            before, after = await anyio.to_thread.run_sync(exchange, daemon)
    assert (before["socket"], before["data_dir"], before["pid"]) == (daemon.socket, daemon.data_dir, os.getpid())
    assert after["started_at"] == before["started_at"]
    assert after["uptime_ms"] >= before["uptime_ms"] >= 0
    assert before["seq"] == 0
    assert after["seq"] >= 2
    assert after["log_bytes"] > 0
    assert after["wal_bytes"] > 0
    assert after["calls"] - before["calls"] == 5
    assert after["refused"] - before["refused"] == 1
    assert {client["name"] for client in after["clients"]} == {"", "watcher"}
    assert all(client["pid"] == os.getpid() for client in after["clients"])
    [subscription] = after["subscriptions"]
    assert (subscription["client"], subscription["conversation"], subscription["lag"]) == ("watcher", "c", 0)


def two_users(daemon: Running) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the status as ann and as an unbound client, while ann and bob are connected."""
    ann, bob, root = (Raw(daemon.socket) for _ in range(3))
    for client, user in ((ann, "ann"), (bob, "bob")):
        client.result("daemon.hello", user=user, client={"name": f"{user}-app", "version": "1"})
        client.result("task.add", conversation=f"{user}-list", title="one")
        client.result("event.subscribe", conversation=f"{user}-list")
    seen = ann.result("daemon.status"), root.result("daemon.status")
    for client in (ann, bob, root):
        client.close()
    return seen


async def test_status_shows_users_only_their_data(tmp_path: Path) -> None:
    async with running_daemon(tmp_path) as daemon:
        with anyio.fail_after(30):
            anns, whole = await anyio.to_thread.run_sync(two_users, daemon)
    assert "bob" in str(whole) and "bob" not in str(anns)
    assert [client["name"] for client in anns["clients"]] == ["ann-app"]
    assert [each["conversation"] for each in anns["subscriptions"]] == ["ann-list"]
    assert anns["conversations_loaded"] == 1 and "last_errors" not in anns
    assert (anns["calls"], anns["refused"], anns["log_bytes"], anns["wal_bytes"]) == (0, 0, 0, 0)
    assert anns["commits"]["count"] == 0 < whole["commits"]["count"]


def crowd(daemon: Running) -> dict[str, Any]:
    clients = [Raw(daemon.socket) for _ in range(report.MAX_LISTED + 5)]
    status = clients[0].result("daemon.status")
    for client in clients:
        client.close()
    return status


async def test_long_connection_list_is_truncated(tmp_path: Path) -> None:
    async with running_daemon(tmp_path) as daemon:
        with anyio.fail_after(30):
            status = await anyio.to_thread.run_sync(crowd, daemon)
    assert len(status["clients"]) == report.MAX_LISTED
