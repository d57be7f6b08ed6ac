"""Which file system a path is on, and whether a log may live there.

Write-ahead logging needs locks and memory that are shared by everybody who sees the file. A network file system
promises neither, so it is refused before it can lose anything.
"""

from punchlist_schemas.system import os_calls

_REMOTE = frozenset(
    "9p afpfs afs beegfs ceph cifs coda davfs gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 orangefs prl_fs smb3 "
    "smbfs vboxsf vmhgfs webdav".split()
)
_LOCAL_FUSE = frozenset(
    f"fuse.{name}" for name in "bindfs encfs fuse-overlayfs gocryptfs lxcfs mergerfs ntfs ntfs-3g securefs".split()
)


file_system_of = os_calls.file_system


def is_remote(kind: str) -> bool:
    """Whether a file system is served by another machine, or by a program that may well be asking one."""
    return kind in _REMOTE or (kind.startswith("fuse.") and kind not in _LOCAL_FUSE)
