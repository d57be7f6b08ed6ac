import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import pytest

from punchlistd.process.status_file import StatusFile


@pytest.fixture
async def status_file(tmp_path: Path) -> AsyncIterator[StatusFile]:
    """A status file that is kept up to date."""
    file = StatusFile(str(tmp_path / "status"))
    async with anyio.create_task_group() as group:
        group.start_soon(file.run)
        yield file
        group.cancel_scope.cancel()


def text_of(path: Path) -> str:
    return path.read_text() if path.exists() else ""


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not condition():  # noqa: ASYNC110 - a file sends no events
            await anyio.sleep(0.005)


async def until_it_says(path: Path, line: str) -> None:
    await until(lambda: text_of(path) == line)


def replace_by(path: Path, line: str) -> None:
    path.with_name("new").write_text(line)
    path.with_name("new").replace(path)


async def test_newest_line_is_written(status_file: StatusFile, tmp_path: Path) -> None:
    status_file.show(3, 1)
    await until_it_says(tmp_path / "status", "3 open, 1 in progress\n")
    for number in range(100):
        status_file.show(number, 0)
    await until_it_says(tmp_path / "status", "99 open, 0 in progress\n")


async def test_file_is_removed_at_the_end(tmp_path: Path) -> None:
    file = StatusFile(str(tmp_path / "status"))
    async with anyio.create_task_group() as group:
        group.start_soon(file.run)
        file.show(3, 1)
        await until_it_says(tmp_path / "status", "3 open, 1 in progress\n")
        group.cancel_scope.cancel()
    assert os.listdir(tmp_path) == []


async def test_line_of_a_newer_daemon_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "status"
    file = StatusFile(str(path))
    async with anyio.create_task_group() as group:
        group.start_soon(file.run)
        file.show(3, 1)
        await until_it_says(path, "3 open, 1 in progress\n")
        replace_by(path, "5 open, 0 in progress\n")
        group.cancel_scope.cancel()
    assert text_of(path) == "5 open, 0 in progress\n"


async def test_unwritable_path_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = StatusFile(str(tmp_path / "missing" / "status"))
    async with anyio.create_task_group() as group:
        group.start_soon(file.run)
        file.show(1, 0)
        await until(lambda: "could not be written" in caplog.text)
        os.mkdir(tmp_path / "missing")
        file.show(2, 0)
        await until_it_says(tmp_path / "missing" / "status", "2 open, 0 in progress\n")
        group.cancel_scope.cancel()
