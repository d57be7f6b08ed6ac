"""Temporary file systems, mounted in a namespace that ends with the program.

The process runs again as the first one of new mount and process namespaces. When it ends, everything it started ends
and everything it mounted is gone.
"""

import fcntl
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from punchlist_faults.options import Unavailable
from punchlist_testing.optional import explain, find_program

_INSIDE = "PUNCHLIST_FAULTS_NAMESPACE"
_EXT4_SHUTDOWN = 0x8004587D
_WITHOUT_LOG = 2


def why_not(*programs: str, network: bool = False) -> str:
    """Return the reason why this machine can't mount file systems, or ""."""
    if os.getuid() != 0:
        return "needs root, to mount"
    if find_program("mount") is None:
        return explain("mount")
    missing = [name for name in ("unshare", *programs) if shutil.which(name) is None]
    if missing:
        return f"needs {', '.join(missing)}"
    probe = [*_namespace(network), "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/mnt"]
    tried = subprocess.run(probe, check=False, capture_output=True, text=True)
    return f"mounting is not allowed: {tried.stderr.strip()}" if tried.returncode else ""


def _namespace(network: bool) -> list[str]:
    words = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return [*words, "--net"] if network else words


def enter(*programs: str, network: bool = False) -> None:
    """Run this program again in new namespaces, optionally with a network namespace, unless it is already running in
    them."""
    if os.environ.get(_INSIDE):
        return
    if said := why_not(*programs, network=network):
        raise Unavailable(said)
    sys.stdout.flush()
    os.environ[_INSIDE] = "1"
    os.execvp("unshare", [*_namespace(network), *sys.orig_argv])


def _do(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@contextmanager
def small_disk(place: Path, size: str) -> Generator[Path]:
    """Mount a file system in memory with a size such as `4m`."""
    place.mkdir(parents=True, exist_ok=True)
    _do("mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(place))
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=False)


@contextmanager
def quota_disk(place: Path, size: str) -> Generator[Path]:
    """Mount a btrfs with a quota; yield a directory limited to a size such as `8M` on a disk with free space."""
    if shutil.which("mkfs.btrfs") is None or "btrfs" not in Path("/proc/filesystems").read_text():
        raise Unavailable("a real quota needs mkfs.btrfs and a kernel with btrfs")
    place.mkdir(parents=True, exist_ok=True)
    image, volume = place / "image", place / "disk" / "volume"
    with open(image, "wb") as file:
        file.truncate(256 << 20)
    volume.parent.mkdir()
    _do("mkfs.btrfs", "-q", str(image))
    _do("mount", "-o", "loop", str(image), str(volume.parent))
    try:
        _do("btrfs", "quota", "enable", str(volume.parent))
        _do("btrfs", "subvolume", "create", str(volume))
        _do("btrfs", "qgroup", "limit", size, str(volume))
        yield volume
    finally:
        subprocess.run(["umount", "--lazy", str(volume.parent)], check=False, capture_output=True)


class Disk:
    """An ext4 file system in a file, mounted at `place`, whose power can be cut."""

    def __init__(self, directory: Path, megabytes: int = 128) -> None:
        self.place = directory / "disk"
        self.place.mkdir()
        self._image = directory / "image"
        with open(self._image, "wb") as file:
            file.truncate(megabytes << 20)
        _do("mkfs.ext4", "-q", "-F", "-E", "nodiscard", str(self._image))

    def mount(self) -> None:
        """Mount the file system, which replays its journal."""
        _do("mount", "-o", "loop,errors=remount-ro", str(self._image), str(self.place))

    def flush(self) -> None:
        """Write everything to the disk, so that it survives a power cut."""
        _do("sync", "--file-system", str(self.place))

    def cut(self) -> None:
        """Cut the power: unflushed data is lost, and every access fails until the next `mount`."""
        root = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(root, _EXT4_SHUTDOWN, struct.pack("I", _WITHOUT_LOG))
        finally:
            os.close(root)

    def turn_read_only(self) -> None:
        """Make the file system report an error and become read-only, like on a failing disk."""
        loop = next(
            line.split()[0] for line in Path("/proc/mounts").read_text().splitlines() if str(self.place) in line
        )
        trigger = Path("/sys/fs/ext4") / Path(loop).name / "trigger_fs_error"
        if not trigger.exists():
            raise Unavailable(f"{trigger} is not there")
        trigger.write_text("punchlist")

    def unmount(self) -> None:
        _do("umount", str(self.place))


@contextmanager
def disk(directory: Path) -> Generator[Disk]:
    made = Disk(directory)
    made.mount()
    try:
        yield made
    finally:
        subprocess.run(["umount", "--lazy", str(made.place)], check=False, capture_output=True)
