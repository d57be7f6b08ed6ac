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
    found = find_list(str(directory))
    assert found is not None
    return found


@pytest.fixture
def website(tmp_path: Path) -> Path:
    return repositories.repository(tmp_path / "website")


def test_the_nearest_project_file_above_a_directory_counts(tmp_path: Path) -> None:
    write(tmp_path, "outer")
    write(tmp_path / "a", "inner")
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    assert of(deep).conversation == "inner"
    assert of(tmp_path).conversation == "outer"


def test_nothing_names_nothing(tmp_path: Path) -> None:
    (tmp_path / "website.toml").write_text('conversation = "website"')
    assert find_list(str(tmp_path)) is None


def test_without_a_project_file_a_repository_means_its_own_list(website: Path) -> None:
    (website / "src").mkdir()
    found = of(website / "src")
    assert (found.source, found.root, found.file) == ("repository", str(website), None)
    assert found.conversation.startswith("website-")


def test_a_project_file_counts_before_the_repository_inside_and_above(tmp_path: Path, website: Path) -> None:
    write(tmp_path, "all")
    assert of(website).conversation == "all"
    write(website, "site")
    (website / "src").mkdir()
    assert of(website / "src").conversation == "site"


def test_a_worktree_without_a_project_file_takes_the_one_of_the_main_worktree(tmp_path: Path, website: Path) -> None:
    linked = worktree(website, tmp_path / "fix")
    assert of(linked).conversation == of(website).conversation
    write(website, "site")
    assert of(linked).conversation == "site"
    write(linked, "fix")
    assert of(linked).conversation == "fix"


def test_a_file_of_a_broken_repository_still_names_its_list(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    with pytest.raises(DirectoryError):
        find_list(str(tmp_path))
    write(tmp_path, "saved")
    assert of(tmp_path).conversation == "saved"


def test_what_others_left_above_a_repository_does_not_matter_to_it(tmp_path: Path, website: Path) -> None:
    (tmp_path / project_file.NAME).symlink_to("/etc/passwd")
    assert of(website).source == "repository"
    with pytest.raises(DirectoryError):
        find_list(str(tmp_path))


def test_a_working_directory_that_is_gone_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(DirectoryError, match="no longer exists"):
        find_list()
    with pytest.raises(DirectoryError, match="does not exist"):
        find_list(str(gone / "further"))


def test_a_file_means_what_its_directory_means(website: Path) -> None:
    (website / "page.html").touch()
    assert of(website / "page.html").conversation == of(website / "not yet saved.html").conversation
    assert of(website / "page.html").conversation == of(website).conversation


def test_what_is_allowed_is_one_name_for_one_project_and_its_worktrees(tmp_path: Path, website: Path) -> None:
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


def test_a_repository_may_always_name_its_own_list(tmp_path: Path, website: Path) -> None:
    write(website, of(website).conversation)
    assert of(website).is_allowed(str(tmp_path / "data"))


def test_a_file_that_is_about_to_be_written_is_allowed_as_the_one_that_is_read(tmp_path: Path, website: Path) -> None:
    describe_project(str(website), "site").allow(str(tmp_path / "data"))
    write(website, "site")
    assert of(website).is_allowed(str(tmp_path / "data"))


def test_what_is_remembered_is_private_and_tells_nothing(tmp_path: Path) -> None:
    write(tmp_path, "secret")
    of(tmp_path).allow(str(tmp_path / "data"))
    of(tmp_path).allow(str(tmp_path / "data"))
    (record,) = (tmp_path / "data" / "allowed").iterdir()
    assert record.stat().st_mode & 0o777 == 0o600
    assert os.stat(tmp_path / "data" / "allowed").st_mode & 0o777 == 0o700
    assert record.read_bytes() == b""


def test_a_link_that_may_not_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(path: str) -> str:
        raise PermissionError(13, "Permission denied", path)

    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.setattr(os, "readlink", forbidden)
    with pytest.raises(DirectoryError, match="below can't be resolved: Permission denied"):
        find_list(str(tmp_path / "link" / "below"))
