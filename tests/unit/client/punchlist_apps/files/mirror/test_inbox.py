import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from punchlist.taskfiles.config import Config
from punchlist_apps.files.mirror.runner import Runner
from punchlist_testing.claude_home import ClaudeHome
from punchlist_testing.mirrors import Place


@pytest.fixture
def claude(tmp_path: Path) -> ClaudeHome:
    (tmp_path / ".punchlist.toml").write_text('conversation = "web"\n')
    return ClaudeHome(tmp_path / ".claude")


@asynccontextmanager
async def following(place: Place, claude: ClaudeHome, *, wanted: bool = True) -> AsyncGenerator[Runner]:
    Config(place.daemon.data_dir).set_inbound(str(claude.tasks), enabled=wanted)
    inbox = Runner(place.client, place.daemon.data_dir, place.report, reconcile_s=1.0)
    async with anyio.create_task_group() as group:
        group.start_soon(inbox.run)
        yield inbox
        group.cancel_scope.cancel()


async def until_titles(place: Place, titles: list[str]) -> None:
    await place.list.wait(lambda tasks: [task.title for task in tasks] == titles, timeout_s=15)


async def test_existing_and_new_folders_are_imported_live(place: Place, claude: ClaudeHome, tmp_path: Path) -> None:
    async with following(place, claude):
        assert not claude.tasks.exists()  # Claude Code creates the folder; the mirror doesn't
        claude.session("a", tmp_path)
        claude.task("a", 1, "First")
        await until_titles(place, ["First"])
        claude.session("b", tmp_path)
        claude.task("b", 1, "Second")
        await until_titles(place, ["First", "Second"])
        shutil.rmtree(claude.tasks)
        claude.task("b", 2, "Third")
        await until_titles(place, ["First", "Second", "Third"])


async def test_earlier_changes_are_imported_at_start(place: Place, claude: ClaudeHome, tmp_path: Path) -> None:
    claude.session("a", tmp_path)
    claude.task("a", 1, "First")
    async with following(place, claude):
        await until_titles(place, ["First"])
    claude.task("a", 2, "Second")
    async with following(place, claude):
        await until_titles(place, ["First", "Second"])


async def test_directory_is_watched_while_configured(place: Place, claude: ClaudeHome, tmp_path: Path) -> None:
    claude.session("a", tmp_path)
    claude.task("a", 1, "First")
    config = Config(place.daemon.data_dir)
    async with following(place, claude, wanted=False) as inbox:
        assert config.set_inbound(str(claude.tasks), enabled=True)
        await until_titles(place, ["First"])
        assert config.set_inbound(str(claude.tasks), enabled=False)
        with anyio.fail_after(30):
            while inbox._members:  # noqa: ASYNC110, SLF001  # pyright: ignore[reportPrivateUsage]
                await anyio.sleep(0.02)
