"""From parsed options to an exit code: settings, the inherited socket, the event loop, and readiness."""

import argparse
import logging
import os

import anyio
import msgspec

from punchlistd.app import App, Replaced
from punchlistd.lock import AlreadyRunning
from punchlistd.net import systemd
from punchlistd.net.listener import SocketTaken, SocketUnusable
from punchlistd.settings import resolve
from punchlistd.store.port import LogUnusable, StorageFailed

logger = logging.getLogger(__name__)

_EXITS: dict[type[Exception], int] = {
    StorageFailed: 74,
    Replaced: 74,
    AlreadyRunning: 75,
    SocketTaken: 75,
    SocketUnusable: 78,
    LogUnusable: 78,
    OSError: 78,
    ValueError: 78,
}
"""What an end means to whoever started the daemon: 75 and 78 are not worth a restart."""


def run(options: argparse.Namespace) -> int:
    """Run one daemon to its end and return its exit code."""
    try:
        settings = resolve(os.environ, options.socket, options.data_dir)
        settings = msgspec.structs.replace(settings, idle_exit_s=options.idle_exit)
        inherited = systemd.inherited_sockets(os.environ)
        app = App(settings, inherited[0] if inherited else None)
        anyio.run(_run, app, options.ready_fd, backend_options={"use_uvloop": _have_uvloop()})
    except tuple(_EXITS) as error:
        logger.error("%s", error)
        return next(code for kind, code in _EXITS.items() if isinstance(error, kind))
    return 0


async def _run(app: App, ready_fd: int | None) -> None:
    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(_tell_ready, app, ready_fd)
        try:
            await app.run()
        except tuple(_EXITS) as error:
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _tell_ready(app: App, ready_fd: int | None) -> None:
    await app.ready.wait()
    systemd.notify(os.environ, "READY=1", f"STATUS=Serving {app.settings.socket}")
    if ready_fd is not None:
        os.write(ready_fd, b"ready\n")
        os.close(ready_fd)


def _have_uvloop() -> bool:
    try:
        import uvloop  # noqa: F401, PLC0415 # pyright: ignore[reportUnusedImport]
    except ImportError:
        return False
    return True
