import errno
import os
import threading
from pathlib import Path

import pytest

from punchlist_apps.files.mirror import files
from punchlist_apps.files.mirror.files import Folder, Trouble


@pytest.fixture(params=["exchange", "rename_if"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """A folder, with and without a file system that can exchange two files."""
    if request.param == "rename_if":

        def unsupported(_folder: int, _old: str, _new: str, _flags: int) -> int:
            return errno.EINVAL

        monkeypatch.setattr(files, "rename_if", unsupported)
    return Folder(str(tmp_path), (".agents", "tasks"))


def test_first_file_creates_private_folder(folder: Folder, tmp_path: Path) -> None:
    assert folder.read("a.json") is None
    assert folder.list_names() == []
    assert not (tmp_path / ".agents").exists()
    assert folder.replace("a.json", b"1", None) is None
    assert folder.read("a.json") == b"1"
    assert folder.list_names() == ["a.json"]
    assert (tmp_path / ".agents").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / ".agents/tasks/a.json").stat().st_mode & 0o777 == 0o600


def test_missing_directory_is_not_created(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path / "gone"), ("a",))
    with pytest.raises(Trouble):
        folder.replace("a.json", b"1", None)
    assert list(tmp_path.iterdir()) == []


def test_unexpected_content_is_returned_and_kept(folder: Folder) -> None:
    folder.replace("a.json", b"1", None)
    assert folder.replace("a.json", b"2", b"1") is None
    assert folder.replace("a.json", b"3", b"1") == b"2"
    assert folder.read("a.json") == b"3"
    assert folder.read_displaced("a.json") == b"2"
    folder.discard_displaced("a.json", b"2")
    assert folder.read_displaced("a.json") is None
    assert folder.list_names() == ["a.json"]
    assert folder.read_late_writes() == []


def test_write_before_discard_is_a_late_write(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path), ())
    folder.replace("a", b"1", None)
    with (tmp_path / "a").open("r+b", buffering=0) as late:
        assert folder.replace("a", b"3", b"unseen") == b"1"
        assert folder.list_displaced() == ["a"]
        late.write(b"2")
    folder.discard_displaced("a", b"1")
    assert folder.read_late_writes() == [("a", b"2")]
    assert folder.list_displaced() == []


def test_concurrently_created_file_is_returned(folder: Folder) -> None:
    folder.replace("a.json", b"theirs", None)
    assert folder.replace("a.json", b"ours", None) == b"theirs"


def test_only_expected_content_is_deleted(folder: Folder) -> None:
    folder.replace("a.json", b"1", None)
    folder.remove("a.json", b"0")
    assert folder.read("a.json") == b"1"
    folder.remove("a.json", b"1")
    assert folder.read("a.json") is None
    folder.remove("a.json", b"1")


def test_file_mode_is_kept(folder: Folder) -> None:
    folder.replace("a.json", b"1", None)
    path = Path(folder.path) / "a.json"
    path.chmod(0o644)
    folder.replace("a.json", b"2", b"1")
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("inner", [(), (".agents",)])
def test_no_link_is_followed(tmp_path: Path, inner: tuple[str, ...]) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    root = tmp_path / "root"
    root.joinpath(*inner).mkdir(parents=True, exist_ok=True)
    root.joinpath(*inner, (".agents", "tasks")[len(inner)]).symlink_to(outside)
    folder = Folder(str(root), (".agents", "tasks"))
    with pytest.raises(Trouble, match="link"):
        folder.replace("a.json", b"1", None)
    with pytest.raises(Trouble, match="link"):
        folder.read("secret")
    assert [path.name for path in outside.iterdir()] == ["secret"]


def test_a_linked_file_is_neither_read_nor_replaced(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    folder.replace("b.json", b"1", None)
    (Path(folder.path) / "a.json").symlink_to(tmp_path / "secret")
    with pytest.raises(Trouble, match="link"):
        folder.read("a.json")
    with pytest.raises(Trouble, match="link"):
        folder.replace("a.json", b"1", None)
    assert (tmp_path / "secret").read_text() == "secret"
    assert sorted(folder.list_names()) == ["a.json", "b.json"]


def test_special_file_does_not_block(folder: Folder) -> None:
    folder.replace("b.json", b"1", None)
    os.mkfifo(Path(folder.path) / "a.json")
    with pytest.raises(Trouble, match="not a regular file"):
        folder.read("a.json")


def test_too_large_file_is_rejected(folder: Folder) -> None:
    folder.replace("a.json", b"1", None)
    os.truncate(Path(folder.path) / "a.json", files.MAX_BYTES + 1)
    with pytest.raises(Trouble, match="larger than"):
        folder.read("a.json")


def test_full_disk_leaves_only_old_file(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.replace("a.json", b"1", None)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        folder.replace("a.json", b"2", b"1")
    assert folder.read("a.json") == b"1"
    assert folder.list_names() == ["a.json"]


def test_write_to_displaced_file_is_returned(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path), ())
    folder.replace("a", b"1", None)
    with (tmp_path / "a").open("r+b", buffering=0) as late:
        folder.replace("a", b"2", b"1")
        assert folder.read_late_writes() == []
        late.truncate(0)
        late.write(b"late")
    assert folder.read_late_writes() == [("a", b"late")]
    assert folder.read_late_writes() == []
    assert folder.read("a") == b"2"


def test_copy_is_written_once(folder: Folder) -> None:
    folder.save_copy("a.1.conflict", b"1")
    folder.save_copy("a.1.conflict", b"2")
    assert folder.read("a.1.conflict") == b"1"


def test_concurrent_writes_are_never_lost(tmp_path: Path) -> None:
    """Another thread replaces the file at the same time. Each version must be read, displaced or still in the file."""
    folder = Folder(str(tmp_path), ())
    folder.replace("a", b"start", None)
    written = [f"{number}".encode() for number in range(500)]

    def others() -> None:
        for number, data in enumerate(written):
            (tmp_path / "theirs").write_bytes(data)
            os.replace(tmp_path / "theirs", tmp_path / f"a{number}")
            files.rename_if(root, f"a{number}", "a", files.EXCHANGE)
            theirs.append((tmp_path / f"a{number}").read_bytes())

    root = os.open(tmp_path, os.O_RDONLY)
    theirs: list[bytes] = []
    ours: list[bytes] = []
    thread = threading.Thread(target=others)
    thread.start()
    turn = 0
    while thread.is_alive() and turn < 20_000:
        turn += 1
        present = folder.read("a")
        displaced = folder.replace("a", f"ours {turn}".encode(), present)
        ours += [data for data in (present, displaced) if data is not None]
        if displaced is not None:
            folder.discard_displaced("a", displaced)
    thread.join()
    os.close(root)
    last = folder.read("a")
    assert set(written) <= {*theirs, *ours, last}


def test_deleted_folder_object_closes_descriptors(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path), ())
    folder.replace("a", b"1", None)
    folder.discard_displaced("a", folder.replace("a", b"2", b"1"))
    assert folder.has_displaced
    before = len(os.listdir("/dev/fd"))
    del folder
    assert len(os.listdir("/dev/fd")) == before - 1
