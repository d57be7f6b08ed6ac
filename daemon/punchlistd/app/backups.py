"""Implementation of `daemon.backup`."""

import os

import anyio.to_thread

from punchlist_schemas.errors import Rejection
from punchlist_schemas.params import Backup
from punchlist_schemas.results import BackupResult
from punchlistd.store.recovery.backup import BackupFailed
from punchlistd.store.sqlite import SqliteLog

_EXPECTED = {"taken": "an unused name", "place": "a location that the daemon can write to"}


async def back_up(log: SqliteLog, params: Backup) -> BackupResult | Rejection:
    try:
        report = await log.backup(params.path, check=params.check)
    except BackupFailed as error:
        return _build_rejection(error)
    return BackupResult(
        path=report.path,
        epoch=report.epoch,
        seq=report.head,
        bytes=(await anyio.to_thread.run_sync(os.stat, report.path)).st_size,
        checked=params.check,
        events=report.events if params.check else None,
        conversations=report.conversations if params.check else None,
    )


def _build_rejection(error: BackupFailed) -> Rejection:
    message = f"There is no backup: {error}."
    if error.kind == "full":
        return Rejection("storage_full", message)
    if error.kind == "damaged":
        problem = error.problem
        facts = {} if problem is None else {"conversation": problem.conversation, "seq": problem.seq}
        return Rejection("damaged", message, facts)
    return Rejection("invalid_params", message, {"field": "path", "expected": _EXPECTED[error.kind]})
