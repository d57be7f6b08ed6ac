"""Databases and transcripts of all versions so far: each must be opened, replayed and answered for ever."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist_schemas.events import UnknownEvent, decode_event
from punchlist_testing.daemon import running_daemon
from punchlist_testing.engine import Peer
from punchlist_testing.golden import EPOCH, SETTINGS, copy_into, receive, still_matches, transcript
from punchlistd.__main__ import main
from punchlistd.engine.lists.history import fact_of
from punchlistd.store.file.schema import connect, identify
from punchlistd.store.port import LogUnusable
from punchlistd.store.recovery.verify import verify_file
from punchlistd.store.sqlite import SqliteLog

HERE = Path(__file__).parent
TYPES = """
ConversationOpened ConversationConfigured ConversationDeleted TaskAdded TaskEdited TaskMoved StatusChanged Deleted
DependencyAdded DependencyRemoved Claimed Released ListCleared MessageAppended
"""
RULED_SINCE: dict[int, dict[str, int]] = {28: {"ready": 2}}
"""Counts, by the id of the call, that a rule has changed on purpose: a task with open children is not ready."""
VERSIONS = sorted(path.parent.name for path in HERE.glob("*/log.db"))


@pytest.fixture(params=VERSIONS)
def golden(request: pytest.FixtureRequest) -> Path:
    return HERE / request.param


def test_there_is_something_to_be_kept() -> None:
    assert "v0.1.0" in VERSIONS


def test_a_golden_log_is_small(golden: Path) -> None:
    assert sum(path.stat().st_size for path in golden.iterdir()) < 300 << 10


def test_a_golden_log_is_sound(golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy_into(golden, tmp_path)
    code = main(["--verify", str(tmp_path / "data" / "log.db")])
    report = json.loads(capsys.readouterr().out)
    assert (code, report["problems"], report["epoch"]) == (0, [], EPOCH)


async def test_a_golden_log_holds_each_type_of_event_and_one_that_nobody_knows(golden: Path, tmp_path: Path) -> None:
    copy_into(golden, tmp_path)
    log = await SqliteLog.open(str(tmp_path / "data" / "log.db"), reserve_bytes=0)
    stored = await log.read(0, 9_999)
    found = {json.loads(each.wire)["event"]["type"]: fact_of(each).event for each in stored}
    assert set(TYPES.split()) | {"TaskPainted"} == set(found)
    assert [name for name, event in found.items() if isinstance(event, UnknownEvent)] == ["TaskPainted"]
    await log.close()


async def test_a_golden_log_is_upgraded_without_its_old_index_and_older_programs_refuse_it(
    golden: Path, tmp_path: Path
) -> None:
    copy_into(golden, tmp_path)
    path = str(tmp_path / "data" / "log.db")
    report = await anyio.to_thread.run_sync(verify_file, path)
    for start in range(2):
        log = await SqliteLog.open(path, reserve_bytes=0)
        assert (log.head, log.unindexed) == (report.head, 0 if start else report.head)
        await log.maintain([])
        await log.close()
    with closing(connect(path, "ro")) as connection:
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall()
    assert tables == [("log",), ("meta",)] and b"ConversationOpened" in await anyio.Path(path).read_bytes()
    before = golden / "log.db"
    version = int.from_bytes((await anyio.Path(before).read_bytes())[60:64], "big")
    with pytest.raises(LogUnusable, match="run a newer punchlistd"):
        identify(path, version)
    assert identify(f"{path}.v{version}.backup", version), "what it was is kept"


def test_a_golden_log_is_repaired_with_the_help_of_its_old_index(
    golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy_into(golden, tmp_path)
    path = str(tmp_path / "data" / "log.db")
    with closing(connect(path, "rw")) as connection:
        spoil = "UPDATE log SET body = CAST(replace(body, '\"Step 5\"', '\"Step ?\"') AS BLOB)"
        assert connection.execute(spoil).rowcount
    code = main(["--repair", "--data-dir", str(tmp_path / "data")])
    report = json.loads(capsys.readouterr().out)
    assert (code, report["problems"], report["restored"]) == (0, [], ["long"])
    assert identify(path, 2), "it has today's version"


async def test_a_golden_transcript_is_still_answered_the_same(golden: Path, tmp_path: Path) -> None:
    copy_into(golden, tmp_path)
    async with running_daemon(tmp_path, **SETTINGS) as daemon:
        peer = await Peer.open(daemon.socket)
        asked: Any = None
        with anyio.fail_after(60):
            for each in transcript(golden):
                if "send" in each:
                    asked = each["send"]
                    peer.write(peer.frame(asked))
                    continue
                expected = each["receive"]
                if expected.get("id") in RULED_SINCE:
                    expected["result"]["counts"] |= RULED_SINCE[expected["id"]]
                pushed = len(expected["params"]["events"]) if "method" in expected else None
                found = await receive(peer, pushed)
                assert still_matches(expected, found), (asked, expected, found)
        await peer.quiet()
        peer.close()


ANSWERS: list[tuple[Any, bool]] = [
    ({"a": 1, "b": [{"c": None}]}, True),
    ({"a": 1, "b": [{"c": None, "new": 1}], "more": 2}, True),
    ({"a": 2, "b": [{"c": None}]}, False),
    ({"a": 1, "b": []}, False),
    ({"a": 1, "b": [{}]}, False),
    ({"b": [{"c": None}]}, False),
    ([], False),
]


@pytest.mark.parametrize(("found", "held"), ANSWERS)
def test_an_answer_may_gain_members_and_lose_or_change_none(found: Any, held: bool) -> None:
    assert still_matches({"a": 1, "b": [{"c": None}]}, found) is held


def test_an_event_with_unknown_members_is_what_it_was_without_them() -> None:
    plain, more = (b'{"type":"ListCleared"}', b'{"type":"ListCleared","mood":"good"}')
    assert decode_event(plain) == decode_event(more)
