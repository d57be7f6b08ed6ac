"""Which file system a path is on, and whether a log may live there.

Write-ahead logging needs locks and memory that are shared by everybody who sees the file. A network file system
promises neither, so it is refused before it can lose anything.
"""

import os
import re

_REMOTE = frozenset(
    "9p afs beegfs ceph cifs coda davfs gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 orangefs prl_fs smb3 smbfs "
    "vboxsf vmhgfs".split()
)
_LOCAL_FUSE = frozenset(
    f"fuse.{name}" for name in "bindfs encfs fuse-overlayfs gocryptfs lxcfs mergerfs ntfs ntfs-3g securefs".split()
)


def file_system_of(path: str, table: str = "/proc/self/mountinfo") -> str:
    """Type of the file system a path is on, as the kernel names it; "" where there is no table of mounts."""
    try:
        with open(table, encoding="utf-8", errors="surrogateescape") as lines:
            mounts = [line.split() for line in lines]
    except OSError:
        return ""
    path = os.path.realpath(path)
    best, kind = "", ""
    for fields in mounts:
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):  # a later mount on the same point hides an earlier one
            best, kind = point, fields[fields.index("-") + 1]
    return kind


def is_remote(kind: str) -> bool:
    """Whether a file system is served by another machine, or by a program that may well be asking one."""
    return kind in _REMOTE or (kind.startswith("fuse.") and kind not in _LOCAL_FUSE)
