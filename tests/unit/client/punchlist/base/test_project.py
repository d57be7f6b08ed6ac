import os
import re
from pathlib import Path

import pytest

from punchlist.base import project
from punchlist_schemas import project_file
from punchlist_schemas.directory import DirectoryList, find_list
from punchlist_schemas.project_file import DirectoryError


def of(directory: Path, name: str) -> DirectoryList:
    directory.mkdir(exist_ok=True)
    (directory / project_file.NAME).write_text(project_file.format_text(name))
    found = find_list(str(directory))
    assert found is not None
    return found


def test_host_project_precedes_session_directory(tmp_path: Path) -> None:
    here, there = str(tmp_path), "/"
    assert project.host_directory({}) is None
    assert project.host_directory({}, here) == here
    assert project.host_directory({"GEMINI_PROJECT_DIR": here}, there) == here
    assert project.host_directory({"CLAUDE_PROJECT_DIR": "", "GEMINI_PROJECT_DIR": ""}, here) == here


@pytest.mark.parametrize("place", ["gone", "gone/deeper", "file", "${workspaceFolder}"])
def test_missing_project_directory_is_rejected_without_fallback(tmp_path: Path, place: str) -> None:
    of(tmp_path, "site")
    (tmp_path / "file").touch()
    named = project.host_directory({"CLAUDE_PROJECT_DIR": str(tmp_path / place)}, str(tmp_path))
    with pytest.raises(DirectoryError, match=rf"{re.escape(place)} is gone"):
        project.of_directory({}, named)
    assert project.of_directory({"PUNCHLIST_CONVERSATION": "named"}, named) == ("named", None)


def test_environment_precedes_directory(tmp_path: Path) -> None:
    of(tmp_path, "site")
    assert project.of_directory({"PUNCHLIST_CONVERSATION": "named"}, str(tmp_path)) == ("named", None)
    found = project.of_directory({}, str(tmp_path))
    assert found is not None
    assert found[0] == "site"
    assert project.of_directory({}, "/") is None


@pytest.mark.parametrize(
    ("name", "used", "expected"), [("site", None, True), ("site", "site", False), ("default", None, False)]
)
def test_project_may_take_unused_list(tmp_path: Path, name: str, used: str | None, expected: bool) -> None:
    data = str(tmp_path / "data")
    assert project.may_be_taken(of(tmp_path / "clone", name), data, used) is expected
    assert not project.may_be_taken(of(tmp_path / "clone", name), data, "site-8f909d367e2b"), (
        "the list belongs to another repository"
    )
    assert project.may_be_taken(of(tmp_path / "clone", name), data, name) is expected


def test_announcement_counts_for_one_day(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    assert not project.was_announced(data, "site", 0)
    project.note_announced(data, "site")
    at = os.stat(tmp_path / "data" / "told" / "site").st_mtime
    assert project.was_announced(data, "site", at + 86_399)
    assert not project.was_announced(data, "site", at + 86_400)
    assert not project.was_announced(data, "other", at)


def test_remembered_directories_are_private_despite_umask(tmp_path: Path) -> None:
    """A user with write access to one of these directories could replace the data directory with another one."""
    data = tmp_path / "local" / "share" / "punchlist"
    before = os.umask(0)
    try:
        project.note_announced(str(data), "c")
        DirectoryList("c", str(tmp_path), str(tmp_path / project_file.NAME), None).allow(
            str(tmp_path / "other" / "data")
        )
    finally:
        os.umask(before)
    made = [path for path in tmp_path.rglob("*") if path.is_dir()]
    assert len(made) == 7 and {path.stat().st_mode & 0o777 for path in made} == {0o700}
