import os
from pathlib import Path

import pytest

from punchlist_schemas import repository
from punchlist_schemas.project_file import DirectoryError, is_conversation_id
from punchlist_testing import repositories
from punchlist_testing.repositories import git, worktree


def name(directory: Path) -> str | None:
    found = repository.find_repository(str(directory.resolve()))
    return None if found is None else found.conversation


@pytest.fixture
def website(tmp_path: Path) -> Path:
    return repositories.repository(tmp_path / "src" / "website")


def test_every_directory_of_a_repository_means_its_list(website: Path) -> None:
    (website / "a" / "b").mkdir(parents=True)
    own = name(website)
    assert own is not None
    assert own.startswith("website-")
    assert {name(website / "a" / "b"), name(website / ".git" / "hooks")} == {own}
    assert name(website.parent) is None


def test_two_repositories_of_one_name_have_lists_of_their_own(tmp_path: Path, website: Path) -> None:
    assert name(repositories.repository(tmp_path / "other" / "website")) != name(website)


def test_worktrees_share_the_list_of_their_repository(tmp_path: Path, website: Path) -> None:
    linked = worktree(website, tmp_path / "elsewhere" / "fix")
    assert name(linked) == name(website)
    git(website, "config", "extensions.relativeWorktrees", "true")
    relative = os.path.relpath(linked / ".git", website / ".git" / "worktrees" / "fix")
    (website / ".git" / "worktrees" / "fix" / "gitdir").write_text(relative + "\n")
    (linked / ".git").write_text(f"gitdir: {os.path.relpath(website / '.git/worktrees/fix', linked)}\n")
    assert name(linked) == name(website)


def test_a_bare_repository_and_its_worktrees_share_a_list(tmp_path: Path, website: Path) -> None:
    bare = tmp_path / "bare" / "website.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(website), str(bare))
    own = name(bare)
    assert own is not None
    assert own.startswith("website-")
    assert name(worktree(bare, tmp_path / "bare" / "main")) == own


def test_a_checkout_beside_a_hidden_bare_repository_is_named_after_its_directory(tmp_path: Path, website: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", str(website), str(tmp_path / "shop" / ".bare"))
    (tmp_path / "shop" / ".git").write_text("gitdir: ./.bare\n")
    own = name(tmp_path / "shop")
    assert own is not None
    assert own.startswith("shop-")
    assert name(worktree(tmp_path / "shop", tmp_path / "shop" / "main")) == own


def test_a_submodule_has_a_list_of_its_own(tmp_path: Path, website: Path) -> None:
    library = repositories.repository(tmp_path / "library")
    git(website, "submodule", "--quiet", "add", str(library), "libs/library")
    own = name(website / "libs" / "library")
    assert own is not None
    assert own.startswith("library-")
    assert own not in (name(website), name(library))
    found = repository.find_repository(str(website / "libs" / "library"))
    assert found is not None
    assert found.common == str((website / ".git" / "modules" / "libs" / "library").resolve())


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_an_archive_brings_can_not_claim_another_repositorys_list(
    tmp_path: Path, website: Path, kind: str
) -> None:
    planted = tmp_path / "planted"
    planted.mkdir()
    if kind == "file":
        (planted / ".git").write_text(f"gitdir: {website}/.git\n")
    else:
        (planted / ".git").symlink_to(website / ".git")
    own = name(planted)
    assert own is not None
    assert own.startswith("planted-")


def test_a_forged_worktree_is_refused(tmp_path: Path, website: Path) -> None:
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


def test_a_planted_directory_of_git_stands_for_itself(tmp_path: Path, website: Path) -> None:
    planted = repositories.repository(tmp_path / "planted")
    (planted / ".git" / "commondir").write_text(f"{website}/.git\n")
    own = name(planted)
    assert own is not None
    assert own.startswith("planted-")


@pytest.mark.parametrize("content", [b"", b"gitdir:\n", b"nonsense", b"gitdir: /nowhere\n", b"gitdir: a\0b\n", b"\xff"])
def test_a_broken_git_file_is_a_sentence_that_says_what_to_do(website: Path, content: bytes) -> None:
    broken = website / "vendored"
    broken.mkdir()
    (broken / ".git").write_bytes(content)
    with pytest.raises(DirectoryError, match="does not lead to a repository") as refused:
        name(broken)
    assert "punch init" in refused.value.advice


def test_an_empty_git_directory_is_never_the_outer_repository(website: Path) -> None:
    (website / "inner" / ".git").mkdir(parents=True)
    with pytest.raises(DirectoryError, match="is not a git directory"):
        name(website / "inner")


def test_a_pruned_worktree_is_refused(tmp_path: Path, website: Path) -> None:
    linked = worktree(website, website / "wt")
    text = (linked / ".git").read_text()
    git(website, "worktree", "remove", "wt")
    linked.mkdir()
    (linked / ".git").write_text(text)
    with pytest.raises(DirectoryError, match="does not lead to a repository"):
        name(linked)


def test_another_users_repository_is_refused(website: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_whatever_a_directory_is_called_its_list_has_a_good_name(tmp_path: Path, directory: str) -> None:
    own = name(repositories.repository(tmp_path / directory))
    assert is_conversation_id(own)
    assert own is not None
    assert len(own) <= 53


def test_names_are_the_same_for_ever() -> None:
    assert repository.Repository("/", "/home/ann/website/.git").conversation == "website-a1fed7607197"
