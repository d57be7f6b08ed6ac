import os
from pathlib import Path

import pytest

from punchlist_schemas import repository
from punchlist_schemas.project_file import DirectoryError, is_conversation_id
from punchlist_testing import repositories
from punchlist_testing.repositories import git, worktree


def name(directory: Path) -> str | None:
    repo = repository.find_repository(str(directory.resolve()))
    return None if repo is None else repo.conversation


@pytest.fixture
def website(tmp_path: Path) -> Path:
    return repositories.repository(tmp_path / "src" / "website")


def test_every_directory_of_a_repository_has_its_list(website: Path) -> None:
    (website / "a" / "b").mkdir(parents=True)
    own = name(website)
    assert own is not None
    assert own.startswith("website-")
    assert {name(website / "a" / "b"), name(website / ".git" / "hooks")} == {own}
    assert name(website.parent) is None


def test_repositories_with_the_same_name_have_own_lists(tmp_path: Path, website: Path) -> None:
    assert name(repositories.repository(tmp_path / "other" / "website")) != name(website)


def test_worktrees_share_the_list_of_their_repository(tmp_path: Path, website: Path) -> None:
    linked = worktree(website, tmp_path / "elsewhere" / "fix")
    assert name(linked) == name(website)
    git(website, "config", "extensions.relativeWorktrees", "true")
    relative = os.path.relpath(linked / ".git", website / ".git" / "worktrees" / "fix")
    (website / ".git" / "worktrees" / "fix" / "gitdir").write_text(relative + "\n")
    (linked / ".git").write_text(f"gitdir: {os.path.relpath(website / '.git/worktrees/fix', linked)}\n")
    assert name(linked) == name(website)


def test_bare_repository_and_worktrees_share_list(tmp_path: Path, website: Path) -> None:
    bare = tmp_path / "bare" / "website.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(website), str(bare))
    own = name(bare)
    assert own is not None
    assert own.startswith("website-")
    assert name(worktree(bare, tmp_path / "bare" / "main")) == own


def test_hidden_bare_repository_is_named_after_its_directory(tmp_path: Path, website: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", str(website), str(tmp_path / "shop" / ".bare"))
    (tmp_path / "shop" / ".git").write_text("gitdir: ./.bare\n")
    own = name(tmp_path / "shop")
    assert own is not None
    assert own.startswith("shop-")
    assert name(worktree(tmp_path / "shop", tmp_path / "shop" / "main")) == own


def test_submodule_has_its_own_list(tmp_path: Path, website: Path) -> None:
    library = repositories.repository(tmp_path / "library")
    git(website, "submodule", "--quiet", "add", str(library), "libs/library")
    own = name(website / "libs" / "library")
    assert own is not None
    assert own.startswith("library-")
    assert own not in (name(website), name(library))
    repo = repository.find_repository(str(website / "libs" / "library"))
    assert repo is not None
    assert repo.common == str((website / ".git" / "modules" / "libs" / "library").resolve())


@pytest.mark.parametrize("kind", ["file", "link"])
def test_archive_cannot_claim_another_repositorys_list(tmp_path: Path, website: Path, kind: str) -> None:
    planted = tmp_path / "planted"
    planted.mkdir()
    if kind == "file":
        (planted / ".git").write_text(f"gitdir: {website}/.git\n")
    else:
        (planted / ".git").symlink_to(website / ".git")
    own = name(planted)
    assert own is not None
    assert own.startswith("planted-")


def test_forged_worktree_is_rejected(tmp_path: Path, website: Path) -> None:
    planted = tmp_path / "planted"
    forged = planted / "git"
    forged.mkdir(parents=True)
    (planted / ".git").write_text(f"gitdir: {forged}\n")
    (forged / "HEAD").write_text("ref: refs/heads/main\n")
    (forged / "commondir").write_text(f"{website}/.git\n")
    (forged / "gitdir").write_text(f"{planted}/.git\n")
    with pytest.raises(DirectoryError, match="is not registered"):
        name(planted)
    linked = worktree(website, tmp_path / "linked")
    (planted / ".git").write_text((linked / ".git").read_text())
    with pytest.raises(DirectoryError, match="is not registered"):
        name(planted)


def test_forged_git_directory_is_separate_repository(tmp_path: Path, website: Path) -> None:
    planted = repositories.repository(tmp_path / "planted")
    (planted / ".git" / "commondir").write_text(f"{website}/.git\n")
    own = name(planted)
    assert own is not None
    assert own.startswith("planted-")


@pytest.mark.parametrize("content", [b"", b"gitdir:\n", b"nonsense", b"gitdir: /nowhere\n", b"gitdir: a\0b\n", b"\xff"])
def test_error_of_a_broken_git_file_has_advice(website: Path, content: bytes) -> None:
    broken = website / "vendored"
    broken.mkdir()
    (broken / ".git").write_bytes(content)
    with pytest.raises(DirectoryError, match="does not lead to a repository") as refused:
        name(broken)
    assert "punch init" in refused.value.advice


def test_empty_git_directory_is_not_the_outer_repository(website: Path) -> None:
    (website / "inner" / ".git").mkdir(parents=True)
    with pytest.raises(DirectoryError, match="is not a git directory"):
        name(website / "inner")


def test_pruned_worktree_is_rejected(tmp_path: Path, website: Path) -> None:
    linked = worktree(website, website / "wt")
    text = (linked / ".git").read_text()
    git(website, "worktree", "remove", "wt")
    linked.mkdir()
    (linked / ".git").write_text(text)
    with pytest.raises(DirectoryError, match="does not lead to a repository"):
        name(linked)


def test_repository_of_another_user_is_rejected(website: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.getuid() == 0:
        os.chown(website / ".git", 4711, 4711)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 4711)
    with pytest.raises(DirectoryError, match="another user"):
        name(website)


@pytest.mark.parametrize(
    "directory",
    [
        *("a\nb", "\x1b[2J", "...", "-rf", "émile", "a" * 200, "$(touch x)", "'\"", " ", ".git.", "git.git"),
        os.fsdecode(b"\xff\xfe"),
    ],
)
def test_any_directory_name_gives_a_valid_id(tmp_path: Path, directory: str) -> None:
    own = name(repositories.repository(tmp_path / directory))
    assert is_conversation_id(own)
    assert own is not None
    assert len(own) <= 53


def test_names_never_change() -> None:
    assert repository.Repository("/", "/home/ann/website/.git").conversation == "website-a1fed7607197"
