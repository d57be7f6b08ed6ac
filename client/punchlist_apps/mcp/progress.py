"""Reports the progress of long calls to hosts that sent a progress token."""

from collections.abc import Awaitable
from typing import Any, TypeVar

import anyio
from mcp.server.context import ServerRequestContext

R = TypeVar("R")
Context = ServerRequestContext[Any, Any]

PROGRESS_S = 10.0
"""Time between progress notifications for a call, in seconds."""


async def await_with_progress(context: Context, call: Awaitable[R]) -> R:
    """Await a call and report progress until it returns, because hosts may extend their timeouts after each report."""
    results: list[R] = []
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_report_progress, context)
            results.append(await call)
            group.cancel_scope.cancel()
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return results[0]


async def _report_progress(context: Context) -> None:
    started_at = anyio.current_time()
    while True:
        await anyio.sleep(PROGRESS_S)
        waited_s = anyio.current_time() - started_at
        await context.session.report_progress(waited_s, message=f"waiting for {waited_s:.0f} s")
