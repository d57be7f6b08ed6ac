import os
from pathlib import Path

import pytest

from punchlist_schemas import project_file
from punchlist_schemas.directory import DirectoryList, describe_project, find_list
from punchlist_schemas.project_file import DirectoryError
from punchlist_testing import repositories
from punchlist_testing.repositories import worktree


def write(directory: Path, name: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / project_file.NAME
    path.write_text(project_file.format_text(name))
    return path


def of(directory: Path) -> DirectoryList:
    match = find_list(str(directory))
    assert match is not None
    return match


@pytest.fixture
def website(tmp_path: Path) -> Path:
    return repositories.repository(tmp_path / "website")


def test_nearest_project_file_decides(tmp_path: Path) -> None:
    write(tmp_path, "outer")
    write(tmp_path / "a", "inner")
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    assert of(deep).conversation == "inner"
    assert of(tmp_path).conversation == "outer"


def test_directory_without_project_has_no_list(tmp_path: Path) -> None:
    (tmp_path / "website.toml").write_text('conversation = "website"')
    assert find_list(str(tmp_path)) is None


def test_repository_without_project_file_has_its_own_list(website: Path) -> None:
    (website / "src").mkdir()
    match = of(website / "src")
    assert (match.source, match.root, match.file) == ("repository", str(website), None)
    assert match.conversation.startswith("website-")


def test_project_file_takes_precedence_over_the_repository(tmp_path: Path, website: Path) -> None:
    write(tmp_path, "all")
    assert of(website).conversation == "all"
    write(website, "site")
    (website / "src").mkdir()
    assert of(website / "src").conversation == "site"


def test_worktree_uses_project_file_of_main_worktree(tmp_path: Path, website: Path) -> None:
    linked = worktree(website, tmp_path / "fix")
    assert of(linked).conversation == of(website).conversation
    write(website, "site")
    assert of(linked).conversation == "site"
    write(linked, "fix")
    assert of(linked).conversation == "fix"


def test_project_file_of_a_broken_repository_is_used(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    with pytest.raises(DirectoryError):
        find_list(str(tmp_path))
    write(tmp_path, "saved")
    assert of(tmp_path).conversation == "saved"


def test_foreign_files_above_a_repository_are_ignored(tmp_path: Path, website: Path) -> None:
    (tmp_path / project_file.NAME).symlink_to("/etc/passwd")
    assert of(website).source == "repository"
    with pytest.raises(DirectoryError):
        find_list(str(tmp_path))


def test_missing_working_directory_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(DirectoryError, match="no longer exists"):
        find_list()
    with pytest.raises(DirectoryError, match="does not exist"):
        find_list(str(gone / "further"))


def test_file_has_the_list_of_its_directory(website: Path) -> None:
    (website / "page.html").touch()
    assert of(website / "page.html").conversation == of(website / "not yet saved.html").conversation
    assert of(website / "page.html").conversation == of(website).conversation


def test_permission_is_for_one_name_and_project(tmp_path: Path, website: Path) -> None:
    data = tmp_path / "share" / "data"
    write(website, "mine")
    linked = worktree(website, tmp_path / "fix")
    write(linked, "mine")
    clone = write(tmp_path / "clone", "mine").parent
    assert not of(website).is_allowed(str(data))
    of(website).allow(str(data))
    assert of(website).is_allowed(str(data))
    assert of(linked).is_allowed(str(data))
    assert not of(clone).is_allowed(str(data))
    write(website, "default")
    assert not of(website).is_allowed(str(data))


def test_repositorys_own_list_needs_no_permission(tmp_path: Path, website: Path) -> None:
    write(website, of(website).conversation)
    assert of(website).is_allowed(str(tmp_path / "data"))


def test_file_can_be_allowed_before_it_is_written(tmp_path: Path, website: Path) -> None:
    describe_project(str(website), "site").allow(str(tmp_path / "data"))
    write(website, "site")
    assert of(website).is_allowed(str(tmp_path / "data"))


def test_record_of_permission_is_private_and_empty(tmp_path: Path) -> None:
    write(tmp_path, "secret")
    of(tmp_path).allow(str(tmp_path / "data"))
    of(tmp_path).allow(str(tmp_path / "data"))
    (record,) = (tmp_path / "data" / "allowed").iterdir()
    assert record.stat().st_mode & 0o777 == 0o600
    assert os.stat(tmp_path / "data" / "allowed").st_mode & 0o777 == 0o700
    assert record.read_bytes() == b""


def test_unreadable_link_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(path: str) -> str:
        raise PermissionError(13, "Permission denied", path)

    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.setattr(os, "readlink", forbidden)
    with pytest.raises(DirectoryError, match="below can't be resolved: Permission denied"):
        find_list(str(tmp_path / "link" / "below"))
