"""Functions that save a file with the same system calls as common programs."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

Saver = Callable[[Path, bytes], None]


def _in_place(path: Path, data: bytes, chunk: int = 64) -> None:
    with open(path, "r+b" if path.exists() else "wb", buffering=0) as file:
        file.truncate(0)
        for start in range(0, len(data), chunk):
            file.write(data[start : start + chunk])


def nano(path: Path, data: bytes) -> None:
    """Truncate the file and write in place."""
    _in_place(path, data, 4096)


def vscode(path: Path, data: bytes) -> None:
    """Truncate the file, write in place in pieces, and fsync."""
    _in_place(path, data, 50)
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def vim(path: Path, data: bytes) -> None:
    """Rename the file to the backup, write a new one, and remove the backup (backupcopy=no)."""
    probe = path.with_name("4913")
    probe.write_bytes(b"")
    probe.unlink()
    backup = path.with_name(path.name + "~")
    os.rename(path, backup)
    _in_place(path, data)
    backup.unlink()


def vim_copy(path: Path, data: bytes) -> None:
    """Copy the file to the backup, write in place, and remove the backup (backupcopy=yes)."""
    backup = path.with_name(path.name + "~")
    backup.write_bytes(path.read_bytes())
    _in_place(path, data)
    backup.unlink()


def emacs(path: Path, data: bytes) -> None:
    """Rename the file to the backup, which is kept, and write a new one. The lock is a dangling link."""
    lock = path.with_name(f".#{path.name}")
    lock.symlink_to("nobody@nowhere.1:1")
    os.rename(path, path.with_name(path.name + "~"))
    path.write_bytes(data)
    lock.unlink()


def renaming(path: Path, data: bytes) -> None:
    """Write a temporary file and rename it, like rsync, JetBrains' safe write and most programs."""
    temporary = path.with_name(f".{path.name}.Xy12Za")
    _in_place(temporary, data)
    os.rename(temporary, path)


def git_checkout(path: Path, data: bytes) -> None:
    """Remove the file and create a new one."""
    path.unlink()
    _in_place(path, data, 4096)


def cloud_sync(path: Path, data: bytes) -> None:
    """Write a temporary file, remove the old file, rename, and set an old modification time."""
    part = path.with_name(path.name + ".part")
    _in_place(part, data, 200)
    path.unlink()
    os.rename(part, path)
    os.utime(path, (1_000_000_000, 1_000_000_000))


def truncate_late(path: Path, data: bytes) -> None:
    """Overwrite the old content, then truncate the rest."""
    with open(path, "r+b", buffering=0) as file:
        file.write(data)
        file.truncate(len(data))


def shell(path: Path, data: bytes) -> None:
    """Redirect a command's output to the file."""
    subprocess.run(["sh", "-c", 'cat > "$1"', "sh", str(path)], input=data, check=True, timeout=10)


SAVERS: tuple[Saver, ...] = (
    nano,
    vscode,
    vim,
    vim_copy,
    emacs,
    renaming,
    git_checkout,
    cloud_sync,
    truncate_late,
    shell,
)


def sed(path: Path, script: str) -> None:
    """Run `sed -i`."""
    subprocess.run(["sed", "-i", script, str(path)], check=True, timeout=10)
