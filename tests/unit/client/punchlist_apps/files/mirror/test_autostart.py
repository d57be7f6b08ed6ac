import os
import signal
from pathlib import Path

import anyio
import pytest

from punchlist.taskfiles.config import Config
from punchlist.taskfiles.report import status
from punchlist_apps.common import autostart
from punchlist_apps.files.mirror.runner import Runner
from punchlist_testing.claude_home import ClaudeHome
from punchlist_testing.mirrors import Place


def test_mirror_is_not_started_without_configuration(tmp_path: Path) -> None:
    assert not autostart.ensure_running(str(tmp_path / "socket"), str(tmp_path))
    config = Config(str(tmp_path))
    config.set_inbound("/x", enabled=True)
    config.set_inbound("/x", enabled=False)
    assert not autostart.ensure_running(str(tmp_path / "socket"), str(tmp_path))
    (tmp_path / "mirror" / "config.json").write_text("[]")
    assert not autostart.ensure_running(str(tmp_path / "socket"), str(tmp_path))


async def test_failed_mirror_is_not_restarted_by_each_command(place: Place) -> None:
    data_dir = Path(place.daemon.data_dir)
    (data_dir / "mirror").mkdir()
    (data_dir / "mirror" / "config.json").write_text('{"mirrors": [{"directory": 7}]}')
    assert autostart.ensure_running(place.daemon.socket, str(data_dir))
    with anyio.fail_after(30):
        while "config.json" not in (data_dir / "mirror" / "run.log").read_text():  # noqa: ASYNC110 - another process
            await anyio.sleep(0.05)
    assert not autostart.ensure_running(place.daemon.socket, str(data_dir))


async def test_lock_shows_running_mirror(place: Place) -> None:
    data_dir = place.daemon.data_dir
    Config(data_dir).set_inbound("/x", enabled=True)
    assert not autostart.is_running(data_dir)
    with Runner(place.client, data_dir, place.report).acquire():
        assert autostart.is_running(data_dir)
        assert not autostart.ensure_running(place.daemon.socket, data_dir)
    assert not autostart.is_running(data_dir)


async def test_started_mirror_imports_tasks_and_ends_when_idle(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(autostart, "IDLE_S", 1.5)
    (tmp_path / ".punchlist.toml").write_text('conversation = "web"\n')
    claude = ClaudeHome(tmp_path / ".claude")
    claude.session("a", tmp_path)
    claude.task("a", 1, "First")
    data_dir = place.daemon.data_dir
    Config(data_dir).set_inbound(str(claude.tasks), enabled=True)
    assert autostart.ensure_running(place.daemon.socket, data_dir)
    try:
        await place.list.wait(lambda tasks: [task.title for task in tasks] == ["First"], timeout_s=30)
        assert autostart.is_running(data_dir)
        with anyio.fail_after(30):
            while autostart.is_running(data_dir):  # noqa: ASYNC110 - another process
                await anyio.sleep(0.05)
    finally:
        found = status(data_dir)
        if found and autostart.is_running(data_dir):
            os.kill(found.pid, signal.SIGTERM)
