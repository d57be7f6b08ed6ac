"""Runs a daemon from parsed options to an exit code: settings, inherited socket, event loop, systemd notifications."""

import argparse
import contextlib
import gc
import logging
import os

import anyio
import msgspec

from punchlist_schemas.system.notify import notify
from punchlistd.app.app import App
from punchlistd.net import systemd
from punchlistd.net.listener import PlaceUnusable, SocketTaken
from punchlistd.offline.read_only import copy_log
from punchlistd.process.guards import LastResort, Replaced, pick_exception
from punchlistd.process.limits import TooFewDescriptors, detach, reduce_address_space
from punchlistd.process.lock import AlreadyRunning
from punchlistd.settings import Misconfigured, resolve
from punchlistd.store.port import LogUnusable, StorageFailed

logger = logging.getLogger(__name__)

EXITS: dict[type[Exception], int] = {
    StorageFailed: 74,
    Replaced: 74,
    AlreadyRunning: 75,
    SocketTaken: 75,
    PlaceUnusable: 78,
    LogUnusable: 78,
    Misconfigured: 78,
    TooFewDescriptors: 78,
    OSError: 74,
}
"""Exit codes by exception. A service manager should not restart the daemon after exit code 75 or 78."""

FAULT = 70
"""EX_SOFTWARE: exit code after a bug, which is logged with its traceback."""


def run(options: argparse.Namespace) -> int:
    if options.ready_fd is not None:
        with contextlib.suppress(OSError):  # a bad descriptor is ignored, as in `_notify_manager`
            os.set_inheritable(options.ready_fd, False)
    try:
        reduce_address_space()
        settings = resolve(os.environ, options.socket, options.data_dir)
        connections = min(settings.limits.connections, detach())
        limits = msgspec.structs.replace(settings.limits, connections=connections)
        settings = msgspec.structs.replace(
            settings, idle_exit_s=options.idle_exit, grace_s=options.grace, limits=limits
        )
        with contextlib.ExitStack() as stack:
            if options.read_only:
                settings = msgspec.structs.replace(settings, data_dir=stack.enter_context(copy_log(settings)))
            ending = LastResort(FAULT).start_timer
            app = App(settings, systemd.take_inherited_socket(os.environ), read_only=options.read_only, ending=ending)
            anyio.run(_run, app, options.ready_fd, backend_options={"use_uvloop": _have_uvloop()})
    except tuple(EXITS) as error:
        logger.error("%s", error)
        return next(code for kind, code in EXITS.items() if isinstance(error, kind))
    except Exception:
        logger.exception("internal error: the daemon stops; report this as a bug")
        return FAULT
    return 0


async def _run(app: App, ready_fd: int | None) -> None:
    # The daemon's objects are long-lived and rarely in reference cycles, so collect garbage less often.
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_notify_manager, app, ready_fd)
            await app.run()
            group.cancel_scope.cancel()
    except ExceptionGroup as failures:
        raise pick_exception(failures, tuple(EXITS)) from None


async def _notify_manager(app: App, ready_fd: int | None) -> None:
    """Notify the service manager of readiness, health (at the watchdog's interval) and the start of shutdown."""
    await app.ready.wait()
    if ready_fd is not None:
        with contextlib.suppress(OSError):  # the starting process is no longer waiting
            os.write(ready_fd, b"ready\n")
        with contextlib.suppress(OSError):
            os.close(ready_fd)
    notify(os.environ, "READY=1", f"STATUS=Serving {app.settings.socket}")
    async with anyio.create_task_group() as group:
        if (interval := systemd.watchdog_s(os.environ)) is not None:
            group.start_soon(_feed_watchdog, app, interval / 3)
        await app.stopping.wait()
        group.cancel_scope.cancel()
    notify(os.environ, "STOPPING=1", "STATUS=Finishing open calls")


async def _feed_watchdog(app: App, every_s: float) -> None:
    while True:
        await app.check()
        notify(os.environ, "WATCHDOG=1")
        await anyio.sleep(every_s)


def _have_uvloop() -> bool:
    try:
        import uvloop  # noqa: F401, PLC0415 # pyright: ignore[reportUnusedImport]
    except ImportError:
        return False
    return True
