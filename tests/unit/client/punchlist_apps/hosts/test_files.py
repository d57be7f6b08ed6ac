import errno
import os
from pathlib import Path

import pytest

from punchlist_apps.hosts import files
from punchlist_apps.hosts.files import FileError, Raced, Replacement, read, replace_all


def everything(root: Path) -> dict[str, bytes | str]:
    found: dict[str, bytes | str] = {}
    for path in sorted(root.rglob("*")):
        found[str(path.relative_to(root))] = str(path.readlink()) if path.is_symlink() else b""
        if path.is_file() and not path.is_symlink():
            found[str(path.relative_to(root))] = path.read_bytes()
    return found


def _unsupported(folder: int, old: str, new: str, flags: int) -> int:
    return errno.EINVAL


@pytest.fixture(params=[True, False], ids=["exchange", "no exchange"])
def _exchange(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without a file system that supports exchange."""
    if not request.param:
        monkeypatch.setattr(files, "rename_if", _unsupported)


@pytest.mark.usefixtures("_exchange")
def test_files_are_made_replaced_and_removed_together(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "a").chmod(0o640)
    (tmp_path / "b").write_bytes(b"b")
    made = replace_all(
        [
            Replacement(str(tmp_path / "a"), b"a", b"A"),
            Replacement(str(tmp_path / "b"), b"b", None),
            Replacement(str(tmp_path / "x" / "y" / "c"), None, b"C"),
        ]
    )
    assert everything(tmp_path) == {"a": b"A", "x": b"", "x/y": b"", "x/y/c": b"C"}
    assert [os.path.relpath(one, tmp_path) for one in made[str(tmp_path / "x" / "y" / "c")]] == ["x", "x/y"]
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "x/y/c")] == [0o640, 0o600]


@pytest.mark.usefixtures("_exchange")
@pytest.mark.parametrize("late", range(3))
def test_changed_file_leaves_all_files_unchanged(tmp_path: Path, late: int) -> None:
    names = ["a", "b", "c"]
    todo = [Replacement(str(tmp_path / name), name.encode(), name.upper().encode()) for name in names]
    todo[2] = todo[2]._replace(after=None)
    for name in names:
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / names[late]).write_bytes(b"theirs")
    before = everything(tmp_path)
    with pytest.raises(Raced):
        replace_all(todo)
    assert everything(tmp_path) == before


@pytest.mark.usefixtures("_exchange")
def test_created_or_deleted_file_counts_as_changed(tmp_path: Path) -> None:
    (tmp_path / "new").write_bytes(b"theirs")
    for path, before in (("new", None), ("gone", b"x")):
        with pytest.raises(Raced):
            replace_all([Replacement(str(tmp_path / path), before, b"ours")])
        assert everything(tmp_path) == {"new": b"theirs"}


def test_failure_at_any_file_changes_no_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "file").write_bytes(b"no directory")
    todo = [
        Replacement(str(tmp_path / "new" / "x"), None, b"x"),
        Replacement(str(tmp_path / "a"), b"a", b"A"),
        Replacement(str(tmp_path / "file" / "y"), None, b"y"),
    ]
    before = everything(tmp_path)
    with pytest.raises(FileError, match="file"):
        replace_all(todo)
    assert everything(tmp_path) == before


@pytest.mark.parametrize("link", ["dir", "dir/inner", "dir/inner/settings.json"])
@pytest.mark.parametrize("dangling", [False, True])
def test_no_link_leads_out_of_a_project(tmp_path: Path, link: str, dangling: bool) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    (project / link).parent.mkdir(parents=True)
    target = outside / "dir" if link != "dir/inner/settings.json" else outside / "settings.json"
    if not dangling:
        outside.mkdir()
        _ = target.mkdir() if target.name == "dir" else target.write_bytes(b"{}")
    (project / link).symlink_to(target)
    before = everything(tmp_path)
    path = str(project / "dir" / "inner" / "settings.json")
    with pytest.raises(FileError, match="follows no links inside a project"):
        read(path, str(project))
    with pytest.raises((FileError, Raced)):
        replace_all(
            [Replacement(str(project / "first"), None, b"x", str(project)), Replacement(path, None, b"x", str(project))]
        )
    assert everything(tmp_path) == before


def test_link_to_users_file_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "dotfiles" / "a").write_bytes(b"a")
    (tmp_path / "a").symlink_to("dotfiles/a")
    assert read(str(tmp_path / "a")) == b"a"
    replace_all([Replacement(str(tmp_path / "a"), b"a", b"A")])
    assert everything(tmp_path) == {"a": "dotfiles/a", "dotfiles": b"", "dotfiles/a": b"A"}


def test_special_and_large_files_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(str(tmp_path / "deep" / "none")) is None
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(FileError, match="not a regular file"):
        read(str(tmp_path / "fifo"))
    (tmp_path / "large").write_bytes(b"12345")
    monkeypatch.setattr(files, "MAX_BYTES", 4)
    with pytest.raises(FileError, match="larger than"):
        read(str(tmp_path / "large"))
