"""Runs a thread's turns one at a time, so that only one process works on each turn.

A turn is a task in the thread's serial list. The worker that claims the task owns the turn for as long as the worker is
alive. Pausing the task from any client stops the turn. A worker that dies loses its claim, and the next one resumes
from the stored records.
"""

import os
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from typing import Any

import anyio

from punchlist.calls.call import Call, itself
from punchlist.connection.core import new_key
from punchlist.errors import NotFound, PunchlistError, RequestRefused
from punchlist_apps.chat.live import Live
from punchlist_apps.chat.models.circuit import Circuit
from punchlist_apps.chat.models.port import Model
from punchlist_apps.chat.thread import Thread
from punchlist_apps.chat.trace import log_tools
from punchlist_apps.chat.turn import STALE_S, Turn
from punchlist_apps.chat.usage import Limits
from punchlist_schemas.params import EventWait
from punchlist_schemas.results import ClaimResult
from punchlist_schemas.things import Task

LEASE_MS = 30_000
"""Time after a worker's last heartbeat until its claim of a turn expires, in milliseconds."""

_WAIT_MS = 8_000
"""Duration of one wait for events, in milliseconds. Each wait is also a heartbeat."""


class Worker:
    """Runs the turns of threads."""

    def __init__(
        self,
        model: Model | None = None,
        live: Live | None = None,
        *,
        limits: Limits | None = None,
        stale_s: float = STALE_S,
    ) -> None:
        self.circuit = Circuit()
        self.live = live or Live()
        self.model = model
        self._limits = limits or Limits()
        self._stale_s = stale_s
        log_tools("the rules" if model is None else model.name)
        self._claims_after_errors: dict[str, ClaimResult] = {}
        self._name = f"chat-{os.getpid()}-{new_key()[:8]}"

    async def answer(self, thread: Thread, turn: str) -> dict[str, Any]:
        """Return the answer of a turn. Run the thread's turns up to this one, or wait for another worker to do so.

        Raises:
            NotFound: The message doesn't exist.
        """
        is_queued = False
        while True:
            claim = await self._claim(thread)
            if claim.task is not None:
                answer = await self._run(thread, claim.task, claim.fence, claim.seq)
                if answer is not None and claim.task.metadata.get("turn") == turn:
                    return answer
            elif (answer := await thread.find_answer(turn)) is not None:
                return answer
            elif (answer := await self._answer_stopped(thread, claim.seq, turn)) is not None:
                return answer
            elif not is_queued:
                await thread.enqueue(turn)
                is_queued = True
            else:
                params = EventWait(after=claim.seq, conversation=thread.id, timeout_ms=_WAIT_MS // 8)
                await thread.client.run(Call("event.wait", params, itself))

    async def settle(self, thread: Thread) -> None:
        """Finish the work left by earlier processes: messages without a turn, waiting turns and stopped turns."""
        await thread.enqueue_all()
        unfinished = await thread.queue.list(status=("pending", "in_progress", "paused"))
        while unfinished and await self._run_next(thread):
            pass
        if unfinished:
            await self._answer_stopped(thread, unfinished.seq)

    async def _run_next(self, thread: Thread) -> bool:
        claim = await self._claim(thread)
        if claim.task is None:
            return False
        await self._run(thread, claim.task, claim.fence, claim.seq)
        return True

    async def _answer_stopped(self, thread: Thread, seq: int, turn: str = "") -> dict[str, Any] | None:
        """Answer the turns that were stopped without a worker, or only `turn`. Return the last answer."""
        answer = None
        for task in await thread.queue.list(status="paused"):
            is_target = not turn or task.metadata.get("turn") == turn
            # A paused turn can't be claimed. If its worker may still be alive, let that worker answer, because only
            # that worker knows whether a call in flight was made.
            if is_target and (not task.owner or task.status_changed_at < time.time() * 1000 - LEASE_MS):
                answer = await self._run(thread, task, None, seq)
        return answer

    async def _claim(self, thread: Thread) -> ClaimResult:
        """Claim the next turn. If the last turn ended with an error, return this worker's existing claim of it."""
        return self._claims_after_errors.pop(thread.id, None) or await thread.queue.take(self._name, lease_ms=LEASE_MS)

    async def _run(self, thread: Thread, task: Task, fence: int | None, seq: int) -> dict[str, Any] | None:
        id = str(task.metadata.get("turn", ""))
        publish = self.live.start(thread.turn_path(id))
        turn = Turn(
            thread,
            id,
            model=self.model,
            circuit=self.circuit,
            publish=publish,
            limits=self._limits,
            stale_s=self._stale_s,
        )
        # Only turns that have already been stopped run without a claim.
        if fence is None:
            turn.stopped.set()
        answer = None
        try:
            with _unwrap_groups():
                # A turn that uses only the rules finishes before a user could stop it.
                async with _stop_on_pause(thread, task, turn, seq) if self.model is not None else nullcontext():
                    with suppress(NotFound):  # The task was added by hand and isn't a turn.
                        answer = await turn.run()
            with anyio.CancelScope(shield=True):
                await _complete(thread, task.id, fence)
        except PunchlistError as error:  # For example, the disk is full.
            if answer is None:
                publish("failed", {"text": str(error)})
            if fence is not None:
                self._claims_after_errors[thread.id] = ClaimResult(version=0, seq=seq, task=task, fence=fence)
            raise
        finally:
            publish("end", {})
        return answer


async def _complete(thread: Thread, task: str, fence: int | None) -> None:
    try:
        await thread.queue.complete(task, fence=fence)
    except RequestRefused:
        # The task was paused, or another worker has claimed it and will find the answer.
        with suppress(RequestRefused):
            await thread.queue.complete(task)


@contextmanager
def _unwrap_groups() -> Generator[None]:
    """If nested groups have a single exception, raise it alone so that callers can handle it by its class."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
            error = error.exceptions[0]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        raise error from None


@asynccontextmanager
async def _stop_on_pause(thread: Thread, task: Task, turn: Turn, seq: int) -> AsyncGenerator[None]:
    """Stop the turn when its task is no longer in progress after position `seq`, for example because it is paused."""

    async def poll(after: int = seq) -> None:
        while True:
            params = EventWait(after=after, conversation=thread.id, timeout_ms=_WAIT_MS)
            page = await thread.client.run(Call("event.wait", params, itself))
            after = page.next
            if page.events and (await thread.queue.get(task.id)).status not in ("in_progress", "completed"):
                turn.stopped.set()
                return

    async with anyio.create_task_group() as group:
        group.start_soon(poll)
        yield
        group.cancel_scope.cancel()
