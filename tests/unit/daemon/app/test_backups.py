import os
from pathlib import Path

import anyio.to_thread
import pytest

from punchlist_testing.daemon import Running, running_daemon
from punchlist_testing.engine import Peer
from punchlist_testing.store import damaged_log
from punchlistd.store.recovery.verify import Report, verify_file


@pytest.fixture
def copy(tmp_path: Path) -> str:
    return str(tmp_path / "copy.db")


async def looked_at(path: str) -> Report:
    return await anyio.to_thread.run_sync(verify_file, path)


async def served(tmp_path: Path, daemon: Running, calls: int = 3) -> Peer:
    peer = await Peer.open(daemon.socket)
    for number in range(calls):
        await peer.result("task.add", conversation="c", title=str(number))
    return peer


async def test_response_describes_the_backup(tmp_path: Path, copy: str) -> None:
    async with running_daemon(tmp_path) as daemon:
        peer = await served(tmp_path, daemon)
        epoch = (await peer.result("daemon.hello"))["epoch"]
        made = await peer.result("daemon.backup", path=copy)
        assert made == {
            "path": copy, "epoch": epoch, "seq": 4, "bytes": made["bytes"], "checked": True,
            "events": 4, "conversations": 1,
        }  # fmt: skip
        peer.close()
    found = await anyio.Path(copy).stat()
    assert (found.st_mode & 0o777, found.st_size) == (0o600, made["bytes"])
    assert (await looked_at(copy)).events == 4


async def test_bound_connection_can_not_make_backups(tmp_path: Path, copy: str) -> None:
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        await peer.result("daemon.hello", user="alice")
        refused = await peer.refusal("daemon.backup", path=copy)
        assert (refused["kind"], refused["what"]) == ("forbidden", "daemon")
        peer.close()
    assert not (tmp_path / "copy.db").exists()


@pytest.mark.parametrize("path", ["copy.db", "", "/", "/a\0b", "/" + "x" * 5_000, None])
async def test_invalid_path_is_rejected(tmp_path: Path, path: str | None) -> None:
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        refused = await peer.refusal("daemon.backup", path=path)
        assert (refused["kind"], refused["field"]) == ("invalid_params", "path")
        peer.close()


async def test_existing_or_unwritable_path_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    (tmp_path / "link").symlink_to("nowhere")
    async with running_daemon(tmp_path) as daemon:
        peer = await served(tmp_path, daemon)
        for name, expected in (("taken", "unused"), ("link", "unused"), ("no/where", "can write to")):
            refused = await peer.refusal("daemon.backup", path=str(tmp_path / name))
            assert (refused["kind"], refused["field"]) == ("invalid_params", "path")
            assert expected in refused["expected"]
        peer.close()
    assert (tmp_path / "taken").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


async def test_damaged_log_is_copied_only_unchecked(tmp_path: Path, copy: str) -> None:
    await damaged_log(tmp_path / "data")
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        refused = await peer.refusal("daemon.backup", path=copy)
        assert (refused["kind"], refused["conversation"], refused["seq"]) == ("damaged", "a", 3)
        assert "copy.db" not in os.listdir(tmp_path)
        made = await peer.result("daemon.backup", path=copy, check=False)
        assert (made["checked"], made["seq"], "events" in made) == (False, 4, False)
        peer.close()
    assert [(problem.conversation, problem.seq) for problem in (await looked_at(copy)).problems] == [("a", 3)]
