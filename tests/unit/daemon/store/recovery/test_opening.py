from pathlib import Path

import pytest

from punchlist_schemas.system import os_calls
from punchlistd.store.recovery.opening import is_remote

TABLE = """\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 21 0:30 / /home rw - nfs4 server:/home rw,vers=4.2
31 30 0:31 / /home/me/with\\040space rw shared:2 master:3 - fuse.sshfs host: rw
32 21 0:32 / /mnt rw - ext4 /dev/sdb rw
33 32 0:33 / /mnt rw - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/log.db", "ext4"),
        ("/home/me/log.db", "nfs4"),
        ("/homes/log.db", "ext4"),
        ("/home", "nfs4"),
        ("/home/me/with space/log.db", "fuse.sshfs"),
        ("/mnt/log.db", "tmpfs"),
    ],
)
def test_deepest_and_latest_mount_wins(tmp_path: Path, path: str, kind: str) -> None:
    (tmp_path / "table").write_text(TABLE)
    assert os_calls.find_file_system(path, str(tmp_path / "table")) == kind


def test_missing_mount_table_gives_none(tmp_path: Path) -> None:
    assert os_calls.find_file_system("/x", str(tmp_path / "missing")) == ""


def test_real_mount_table_is_parsed(tmp_path: Path) -> None:
    kind = os_calls.find_file_system(str(tmp_path / "log.db"))
    assert kind and not is_remote(kind)


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "fuse.s3fs", "ceph", "davfs"])
def test_network_file_systems_are_remote(kind: str) -> None:
    assert is_remote(kind)


@pytest.mark.parametrize("kind", ["", "ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "fuseblk", "fuse.gocryptfs"])
def test_local_file_systems_are_not_remote(kind: str) -> None:
    assert not is_remote(kind)
