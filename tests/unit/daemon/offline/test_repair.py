"""Repair of real damaged logs: only damaged events are lost, and the result is intact."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist_testing.daemon import running_daemon
from punchlist_testing.engine import Peer
from punchlist_testing.unmeasured import unmeasured
from punchlistd.process.lock import DataLock

TASKS = 80
PAGE = 4096


async def _used(place: Path) -> None:
    async with running_daemon(place) as daemon:
        peer = await Peer.open(daemon.socket)
        for number in range(TASKS):
            await peer.result("task.add", conversation="long", title=f"t{number}.", key=f"k{number}")
            await peer.result("task.add", conversation="other", title=f"o{number}.")
        await peer.result("task.add", conversation="short", title="first.")
        await peer.result("task.add", conversation="short", title="second.")
        await peer.result("task.add", conversation="short", title="third.")
        await peer.result("conversation.list")
        peer.close()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("model")
    anyio.run(_used, place)
    return place / "data"


@pytest.fixture
def place(model: Path, tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir(mode=0o700)
    for name in ("log.db", "log.index", "log.mark"):
        (tmp_path / "data" / name).write_bytes((model / name).read_bytes())
    return tmp_path


def program(*arguments: str, env: dict[str, str] | None = None) -> tuple[int, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "punchlistd", *arguments], stdout=subprocess.PIPE, env=env, check=False
    )
    return done.returncode, json.loads(done.stdout)


def repair(place: Path, env: dict[str, str] | None = None) -> tuple[int, Any]:
    return program("--repair", "--data-dir", str(place / "data"), env=env)


def execute(place: Path, statement: str, *values: Any, file: str = "log.db") -> list[Any]:
    with closing(sqlite3.connect(place / "data" / file, isolation_level=None)) as connection:
        return connection.execute(statement, values).fetchall()


def spoil(place: Path, title: bytes) -> int:
    """Damage one event; return its position."""
    for seq, body in execute(place, "SELECT seq, body FROM log"):
        if b'"title":"' + title in body:
            execute(place, "UPDATE log SET body = ? WHERE seq = ?", body.replace(title, b"#" * len(title)), seq)
            return seq
    raise LookupError(title)


async def _shown(place: Path) -> dict[str, list[str]]:
    """Return the titles in each list, and check that each list accepts changes."""
    shown: dict[str, list[str]] = {}
    async with running_daemon(place) as daemon:
        peer = await Peer.open(daemon.socket)
        for name in ("long", "other", "short"):
            shown[name] = [task["title"] for task in (await peer.result("task.list", conversation=name))["tasks"]]
            await peer.result("task.add", conversation=name, title="more")
            await peer.result("event.read", conversation=name, after=0)
        await peer.result("list.undo", conversation="short", count=1)
        peer.close()
    return shown


def shown(place: Path) -> dict[str, list[str]]:
    return anyio.run(_shown, place)


WHOLE = {
    "long": [f"t{number}." for number in range(TASKS)],
    "other": [f"o{number}." for number in range(TASKS)],
    "short": ["first.", "second.", "third."],
}


def test_intact_log_is_unchanged(place: Path) -> None:
    before = (place / "data" / "log.db").read_bytes()
    code, report = repair(place)
    assert (code, report["backup"], report["problems"]) == (0, "", [])
    assert (place / "data" / "log.db").read_bytes() == before
    assert not (place / "data" / "backups").exists()


def test_repair_removes_only_lost_events(place: Path) -> None:
    execute(place, "DELETE FROM snapshots", file="log.index")
    seq = spoil(place, b"second.")
    before = (place / "data" / "log.db").read_bytes()
    epoch = execute(place, "SELECT value FROM meta WHERE name = 'epoch'")
    code, report = repair(place)
    assert (code, report["problems"], report["restored"]) == (0, [], [])
    assert [(lost["conversation"], lost["seq"]) for lost in report["lost"]] == [("short", seq)]
    assert Path(report["backup"]).read_bytes() == before, "the damaged log is kept"
    assert execute(place, "SELECT value FROM meta WHERE name = 'epoch'") != epoch, "no client can resume across the gap"
    repaired = (place / "data" / "log.db").read_bytes()
    assert repair(place)[1]["backup"] == "" and (place / "data" / "log.db").read_bytes() == repaired
    assert shown(place) == {**WHOLE, "short": ["first.", "third."]}
    assert program("--verify", str(place / "data" / "log.db"))[0] == 0
    assert not [each.name for each in (place / "data").iterdir() if ".new" in each.name]


def test_list_with_a_complete_snapshot_stays_complete(place: Path) -> None:
    assert execute(place, "SELECT count(*) FROM snapshots", file="log.index") != [(0,)]
    seq = spoil(place, b"t40.")
    code, report = repair(place)
    assert (code, report["restored"]) == (0, ["long"])
    assert [lost["seq"] for lost in report["lost"]] == [seq]
    assert shown(place) == WHOLE
    assert program("--verify", str(place / "data" / "log.db"))[0] == 0


@pytest.mark.parametrize("statement", ["UPDATE meta SET epoch = 'of another log'", "DROP TABLE conversations", ""])
def test_repair_needs_no_index(place: Path, statement: str) -> None:
    seq = spoil(place, b"t40.")
    if statement:
        execute(place, statement, file="log.index")
    else:
        (place / "data" / "log.index").unlink()
    code, report = repair(place)
    assert (code, report["restored"], [lost["seq"] for lost in report["lost"]]) == (0, [], [seq])
    assert shown(place) == {**WHOLE, "long": [title for title in WHOLE["long"] if title != "t40."]}


def test_list_without_its_first_event_continues(place: Path) -> None:
    execute(place, "DELETE FROM snapshots", file="log.index")
    spoil(place, b"first.")
    assert repair(place)[0] == 0
    assert shown(place) == {**WHOLE, "short": ["second.", "third."]}


def damage_of_pages(how: Callable[[bytearray], None]) -> Callable[[Path, int], None]:
    def spoil_page(place: Path, page: int) -> None:
        path = place / "data" / "log.db"
        data = bytearray(path.read_bytes())
        part = bytearray(data[(page - 1) * PAGE : page * PAGE])
        how(part)
        data[(page - 1) * PAGE : page * PAGE] = part
        path.write_bytes(data)

    return spoil_page


def zeros(part: bytearray) -> None:
    part[:] = bytes(len(part))


def sector(part: bytearray) -> None:
    part[1024:1536] = bytes(512)


@pytest.mark.parametrize("how", [zeros, sector])
def test_damage_to_any_page_can_be_repaired(model: Path, place: Path, how: Callable[[bytearray], None]) -> None:
    pages = [row[0] for row in execute(place, "SELECT pageno FROM dbstat WHERE name = 'log' AND pagetype = 'leaf'")]
    assert pages
    for page in pages[:6]:
        (place / "data" / "log.db").write_bytes((model / "log.db").read_bytes())
        (place / "data" / "log.mark").write_bytes((model / "log.mark").read_bytes())
        damage_of_pages(how)(place, page)
        code, report = repair(place, unmeasured())  # the tests above already cover these lines
        assert (code, report["problems"]) == (0, []), page
        seen = shown(place)
        missing = sum(len(set(WHOLE[name]) - set(seen[name])) for name in WHOLE)
        assert missing == 0 or report["lost"], page


def test_truncated_log_is_repaired(place: Path) -> None:
    path = place / "data" / "log.db"
    path.write_bytes(path.read_bytes()[: -3 * PAGE])
    code, report = repair(place)
    assert (code, report["problems"]) == (0, [])
    assert set(shown(place)) == set(WHOLE)


@pytest.mark.parametrize("content", [b"", b"no database at all" * 400])
def test_other_file_is_rejected_untouched(place: Path, content: bytes) -> None:
    (place / "data" / "log.db").write_bytes(content)
    code, report = repair(place)
    assert (code, report["error"]) == (78, "unusable") and "move it away" in report["message"]
    assert (place / "data" / "log.db").read_bytes() == content
    assert not (place / "data" / "backups").exists()


def test_unreadable_tables_are_rejected_untouched(place: Path) -> None:
    path = place / "data" / "log.db"
    content = bytearray(path.read_bytes())
    content[100:2048] = bytes(1948)
    path.write_bytes(content)
    code, report = repair(place)
    assert (code, report["error"]) == (78, "unusable") and "restore" in report["message"]
    assert path.read_bytes() == content
    assert sorted(each.name for each in (place / "data").iterdir() if ".new" in each.name) == []


def test_log_in_use_is_rejected(place: Path) -> None:
    spoil(place, b"second.")
    with closing(DataLock(str(place / "data" / "lock"))):
        code, report = repair(place)
    assert (code, report["error"]) == (75, "in_use") and "punch daemon stop" in report["message"]


def test_full_disk_leaves_nothing_changed(place: Path) -> None:
    spoil(place, b"second.")
    before = (place / "data" / "log.db").read_bytes()
    small = "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    small += "resource.setrlimit(resource.RLIMIT_FSIZE, (32768, 32768)); from punchlistd.__main__ import main; "
    small += f"sys.exit(main(['--repair', '--data-dir', {str(place / 'data')!r}]))"
    # Run it without coverage, whose data file would be truncated, too.
    done = subprocess.run([sys.executable, "-c", small], stdout=subprocess.PIPE, env=unmeasured(), check=False)
    report = json.loads(done.stdout)
    assert (done.returncode, report["error"]) == (1, "backup") and "no space left" in report["message"]
    assert (place / "data" / "log.db").read_bytes() == before
    assert [each.name for each in (place / "data").rglob("*.db*")] == ["log.db"]
    assert repair(place)[0] == 0
