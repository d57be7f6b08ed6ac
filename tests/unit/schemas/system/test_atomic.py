import errno
import os
import resource
import signal
import stat
from collections.abc import Generator
from pathlib import Path

import pytest

from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.system.atomic import atomic_write


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o777], ids=lambda umask: f"umask {umask:03o}")
def mask(request: pytest.FixtureRequest) -> Generator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_private_files_ignore_the_umask(tmp_path: Path, mask: int) -> None:
    atomic_write(str(tmp_path / "file"), b"x", fsync=True)
    assert mode_of(tmp_path / "file") == 0o600
    atomic_write(str(tmp_path / "file"), b"y", mode=0o644)
    assert (mode_of(tmp_path / "file"), (tmp_path / "file").read_bytes()) == (0o644, b"y")


@pytest.mark.parametrize("mask", [0o022], indirect=True)
def test_existing_mode_is_kept_and_new_follows_umask(tmp_path: Path, mask: int) -> None:
    path = tmp_path / "file"
    atomic_write(str(path), b"x", mode=None)
    assert mode_of(path) == 0o666 & ~mask
    path.chmod(0o640)
    atomic_write(str(path), b"y", mode=None)
    assert mode_of(path) == 0o640


def test_directories_and_parents_are_created_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        created = make_directories(str(tmp_path / "a" / "b" / "c"))
    finally:
        os.umask(before)
    assert created == tuple(str(tmp_path / part) for part in ("a", "a/b", "a/b/c"))
    assert {mode_of(Path(one)) for one in created} == {0o700}
    assert make_directories(str(tmp_path / "a" / "b")) == ()
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_directories(str(tmp_path / "file" / "x"))


def test_failure_leaves_only_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limit[1]))
    try:
        with pytest.raises(OSError) as caught:  # noqa: PT011 - the errno is checked below
            atomic_write(str(path), b"x" * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(path))
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("file", b"old")]
    with pytest.raises(FileNotFoundError, match="gone/file"):
        atomic_write(str(tmp_path / "gone" / "file"), b"x")


def test_link_is_replaced_and_its_target_stays(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to("target")
    atomic_write(str(tmp_path / "link"), b"new")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"old"


def test_existing_file_is_replaced_only_on_request(tmp_path: Path) -> None:
    path = tmp_path / "file"
    atomic_write(str(path), b"new", replace=False)
    with pytest.raises(FileExistsError) as caught:
        atomic_write(str(path), b"other", replace=False)
    assert caught.value.filename == str(path)
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("file", b"new")]
