"""Opens a log. The daemon's start and a restore use the same function to decide whether a file is usable."""

import sqlite3
from collections.abc import Callable, Sequence

from punchlist_schemas.system import os_calls
from punchlistd.store.file import reading, schema
from punchlistd.store.file.files import size_of, wal_path
from punchlistd.store.file.index import IndexDoubted
from punchlistd.store.file.operations import Operations
from punchlistd.store.port import LogUnusable
from punchlistd.store.recovery import integrity

# Write-ahead logging needs locks and memory that are shared by all processes that open the file. Network file systems
# guarantee neither, so they are rejected.
_REMOTE = frozenset(
    "9p afpfs afs beegfs ceph cifs coda davfs gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 orangefs prl_fs smb3 "
    "smbfs vboxsf vmhgfs webdav".split()
)
_LOCAL_FUSE = frozenset(
    f"fuse.{name}" for name in "bindfs encfs fuse-overlayfs gocryptfs lxcfs mergerfs ntfs ntfs-3g securefs".split()
)


def is_remote(kind: str) -> bool:
    """Whether a file system is, or may be, on another machine. FUSE counts as remote, except for known local ones."""
    return kind in _REMOTE or (kind.startswith("fuse.") and kind not in _LOCAL_FUSE)


def _build_error(path: str, error: Exception) -> LogUnusable:
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LogUnusable(f"{path} is in use by another program; end that one first")
    if isinstance(error, sqlite3.DatabaseError):
        return LogUnusable(f"{path} can't be opened ({error}); run punch daemon verify, or put a backup in its place")
    return LogUnusable(f"{path} can't be opened ({error}); grant access or choose another data directory")


def open_log(
    path: str,
    *,
    watch: Sequence[str] = (),
    twin: str | None = None,
    reserve_bytes: int = 0,
    allow_network: bool = False,
    file_system: Callable[[str], str] = os_calls.find_file_system,
) -> Operations:
    """Open a log or create one, in the calling thread. See `SqliteLog.open`."""
    kind = file_system(path)
    if is_remote(kind) and not allow_network:
        raise LogUnusable(f"{path} is on a network file system ({kind}), which can lose it; choose a local directory")
    connection = None
    try:
        if not schema.identify(path, 1 + len(schema.UPGRADES)):
            schema.create(path)
        integrity.check_pages(path)
        connection = schema.connect(path, "rw")
        schema.apply_settings(connection)
        if connection.execute("PRAGMA user_version").fetchone() == (1,):
            integrity.check_schema(connection, path)  # before the upgrade changes it
        schema.upgrade(connection, path, schema.UPGRADES)
        integrity.check_schema(connection, path)
        operations = Operations(connection, path, reserve_bytes, watch, twin)
        try:
            reading.scan(operations, operations.indexed)
        except IndexDoubted as error:
            reading.rebuild_index(operations, str(error))
        if operations.index.seq == 0:
            # Without an index, a tombstone without earlier events counts as erased. If the process was killed during
            # the erasure, the bytes may still be in the write-ahead log.
            operations.checkpoint_if(size_of(wal_path(path)) > 0, "TRUNCATE")
        return operations
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, sqlite3.Error | OSError):
            raise _build_error(path, error) from error
        raise


def try_log(path: str) -> None:
    """Open a log the way the daemon's start does, and close it.

    Raises:
        LogUnusable: The daemon would reject the log.
    """
    log = open_log(path)
    try:
        log.finish()
    finally:
        log.connection.close()
