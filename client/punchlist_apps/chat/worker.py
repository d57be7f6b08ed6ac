"""Takes the turns of a thread one by one, so that one process works on a turn at a time, whoever else wants to.

A turn is a task of the thread's serial list. Claiming it makes it ours while we live; pausing it, from anywhere, stops
it. A worker that dies loses its claim, and the next one goes on with what is written.
"""

import os
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import anyio

from punchlist.calls.call import Call, itself
from punchlist.connection.core import new_key
from punchlist.errors import NotFound, PunchlistError, RequestRefused
from punchlist_apps.chat.live import Live
from punchlist_apps.chat.models.away import Circuit
from punchlist_apps.chat.models.port import Model
from punchlist_apps.chat.thread import Thread
from punchlist_apps.chat.trace import log_tools
from punchlist_apps.chat.turn import STALE_S, Turn
from punchlist_apps.chat.usage import Limits
from punchlist_schemas.params import EventWait
from punchlist_schemas.results import ClaimResult
from punchlist_schemas.things import Task

LEASE_MS = 30_000
"""How long a claim of a turn outlives the last sign of life of its worker."""

_LOOK_MS = 8_000
"""How long one wait for news lasts; each is a sign of life too."""


class Worker:
    """Works on threads."""

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
        self._kept: dict[str, ClaimResult] = {}
        self._name = f"chat-{os.getpid()}-{new_key()[:8]}"

    async def answer(self, thread: Thread, turn: str) -> dict[str, Any]:
        """The answer of a turn: work on the thread's turns until there is one, or wait for whoever does.

        Raises:
            NotFound: There is no such message.
        """
        is_queued = False
        while True:
            claim = await self._claim(thread)
            if claim.task is not None:
                answer = await self._run(thread, claim.task, claim.fence, claim.seq)
                if answer is not None and claim.task.metadata.get("turn") == turn:
                    return answer
            elif (found := await thread.answer(turn)) is not None:
                return found
            elif (found := await self._stopped(thread, claim.seq, turn)) is not None:
                return found
            elif not is_queued:
                await thread.enqueue(turn)
                is_queued = True
            else:
                params = EventWait(after=claim.seq, conversation=thread.id, timeout_ms=_LOOK_MS // 8)
                await thread.client.run(Call("event.wait", params, itself))

    async def settle(self, thread: Thread) -> None:
        """Finish what an earlier process left: messages without a turn, turns that wait or were stopped."""
        await thread.enqueue_all()
        left = await thread.queue.list(status=("pending", "in_progress", "paused"))
        while left and await self.work(thread):
            pass
        if left:
            await self._stopped(thread, left.seq)

    async def work(self, thread: Thread) -> bool:
        claim = await self._claim(thread)
        if claim.task is None:
            return False
        await self._run(thread, claim.task, claim.fence, claim.seq)
        return True

    async def _stopped(self, thread: Thread, seq: int, turn: str = "") -> dict[str, Any] | None:
        """Answer the turns, or this one, that were stopped while nobody worked on them; the last one's answer.

        Nobody can take a paused turn. One that had a worker is left to it for as long as it may be at work: it alone
        knows whether a call that is on its way is made.
        """
        answer = None
        for task in await thread.queue.list(status="paused"):
            is_meant = not turn or task.metadata.get("turn") == turn
            if is_meant and (not task.owner or task.status_changed_at < time.time() * 1000 - LEASE_MS):
                answer = await self._run(thread, task, None, seq)
        return answer

    async def _claim(self, thread: Thread) -> ClaimResult:
        """The next turn: one that an error has ended is ours still."""
        return self._kept.pop(thread.id, None) or await thread.queue.take(self._name, lease_ms=LEASE_MS)

    async def _run(self, thread: Thread, task: Task, fence: int | None, seq: int) -> dict[str, Any] | None:
        id = str(task.metadata.get("turn", ""))
        tell = self.live.teller(thread.place(id))
        turn = Turn(
            thread, id, model=self.model, circuit=self.circuit, tell=tell, limits=self._limits, stale_s=self._stale_s
        )
        if fence is None:
            turn.stopped.set()
        answer = None
        try:
            with _single():
                async with _watching(thread, task, turn, seq if self.model is not None else None):
                    with suppress(NotFound):  # a task that somebody added by hand is no turn
                        answer = await turn.run()
            with anyio.CancelScope(shield=True):
                await _over(thread, task.id, fence)
        except PunchlistError as error:  # such as a full disk
            if answer is None:
                tell("failed", {"text": str(error)})
            if fence is not None:
                self._kept[thread.id] = ClaimResult(version=0, seq=seq, task=task, fence=fence)
            raise
        finally:
            tell("end", {})
        return answer


async def _over(thread: Thread, task: str, fence: int | None) -> None:
    try:
        await thread.queue.complete(task, fence=fence)
    except RequestRefused:  # it was paused meanwhile, or is another worker's, which finds the answer
        with suppress(RequestRefused):
            await thread.queue.complete(task)


@contextmanager
def _single() -> Generator[None]:
    """An error that came out of groups of tasks alone is raised as itself, so that it is told as what it is."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
            error = error.exceptions[0]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        raise error from None


@asynccontextmanager
async def _watching(thread: Thread, task: Task, turn: Turn, seq: int | None) -> AsyncGenerator[None]:
    """Stops the turn when its task is not ours any more since position `seq`; None: nobody looks.

    A turn by rules is over before anybody could stop it.
    """
    if seq is None:
        yield
        return

    async def poll(after: int = seq) -> None:
        while True:
            params = EventWait(after=after, conversation=thread.id, timeout_ms=_LOOK_MS)
            news = await thread.client.run(Call("event.wait", params, itself))
            after = news.next
            if news.events and (await thread.queue.get(task.id)).status not in ("in_progress", "completed"):
                turn.stopped.set()
                return

    async with anyio.create_task_group() as group:
        group.start_soon(poll)
        yield
        group.cancel_scope.cancel()
