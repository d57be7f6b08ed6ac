"""Working through a list: claim a task, keep it while the body runs, finish it by how the body ended.

```python
with conversation.work("worker-1") as tasks:
    for task in tasks:
        build(task.title)
```

A body that reaches its end completes the task; so does one that has finished it by itself, with a result:
`conversation.complete(task.id, result="…")`. An exception that leaves the `with` fails the task with its message.
Leaving otherwise, by `break`, an interrupt or a cancellation, gives it back. A plain `for` is not told why it was left:
without the `with` an exception gives the task back too.

`conversation.claim(…)` is the same for one task. The asyncio face has both, with `async with` and `async for`.
"""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import anyio
import msgspec

from punchlist.core import Request
from punchlist.errors import ConnectionLost, DaemonUnavailable, LeaseHeld, LeaseLost, PunchlistError, RequestRefused
from punchlist.forks import on_fork
from punchlist_schemas import params as p
from punchlist_schemas.results import ClaimResult
from punchlist_schemas.things import Task

if TYPE_CHECKING:
    from punchlist.aio import AsyncClient, AsyncConversation

RENEW_S = 3.0
"""A claim is renewed this often, or three times in its lease: a restarted daemon keeps it only for a short grace."""

FOLLOW_MS = 3_600_000
"""How long one call waits for new tasks; then it is made again."""

MAX_REASON = 8_192
"""Longest reason of a failure, in characters."""

_SETTLED = frozenset({"completed", "failed", "paused"})


class Terms(msgspec.Struct, frozen=True):
    """How tasks are claimed: by whom, which one (None: the next ready one), for how long, and how long to wait."""

    owner: str
    task: str | None = None
    lease_ms: int = 60_000
    wait_ms: int = 0

    @property
    def renew_s(self) -> float:
        """Seconds between two renewals."""
        return min(self.lease_ms / 3_000, RENEW_S)


class Held(msgspec.Struct, frozen=True):
    """A claimed task and the number of the claim."""

    task: Task
    fence: int

    @classmethod
    def of(cls, result: ClaimResult) -> "Held | None":
        """What a claim got."""
        return None if result.task is None else cls(result.task, result.fence or 0)


def reason_of(error: BaseException) -> str:
    """Why a task failed, for people."""
    return (str(error).strip() or type(error).__name__)[-MAX_REASON:]


def is_settled(error: RequestRefused) -> bool:
    """Whether a task that we can't finish is finished or laid aside already, as a body may do by itself."""
    return isinstance(error, LeaseLost) and error.status in _SETTLED


def _is_lost(error: PunchlistError) -> bool:
    return isinstance(error, LeaseLost | LeaseHeld)


class AsyncWork:
    """Tasks claimed one after the other, for an `async for` in an `async with`. See `AsyncConversation.work`."""

    # Of the class: a finalizer also meets what an interrupted constructor left half made.
    _held: Held | None = None
    _renewing: asyncio.Task[None] | None = None

    def __init__(self, conversation: "AsyncConversation", terms: Terms) -> None:
        self._conversation = conversation
        self._terms = terms
        on_fork(self, AsyncWork._forked)

    @property
    def fence(self) -> int | None:
        """The number of the present claim."""
        return None if self._held is None else self._held.fence

    async def take(self, task: str | None = None) -> Task | None:
        """Claim the next task, or a named one; None if there is none to be had."""
        terms = self._terms
        while True:
            result = await self._conversation.take(
                terms.owner, task or terms.task, lease_ms=terms.lease_ms, wait_ms=terms.wait_ms
            )
            self._held = Held.of(result)
            if self._held is not None or terms.wait_ms < FOLLOW_MS:
                break
        if self._held is None:
            return None
        self._renewing = asyncio.create_task(_renew(self._conversation, terms, self._held))
        return self._held.task

    async def complete(self, result: str | None = None) -> None:
        """Complete the present task, saying in `result` what came of it, unless it was finished or laid aside already.

        Raises:
            LeaseLost: The claim was lost meanwhile, and the task is somebody else's or open again.
            LeaseHeld: Somebody else has it by now.
        """
        if (held := self._let_go()) is not None:
            await self._finish(self._conversation.complete(held.task.id, result, fence=held.fence))

    async def fail(self, reason: str) -> None:
        """Give the present task up as failed; raises as `complete` does."""
        if (held := self._let_go()) is not None:
            await self._finish(self._conversation.fail(held.task.id, reason[:MAX_REASON], fence=held.fence))

    async def release(self) -> None:
        """Give the present task back, for another to claim."""
        if (held := self._let_go()) is not None:
            try:
                await self._conversation.release(held.task.id, self._terms.owner, fence=held.fence)
            except (RequestRefused, ConnectionLost, DaemonUnavailable):
                return  # it is not ours any more, or won't be for long

    async def end(self, error: BaseException | None) -> None:
        """Finish the present task by how its body ended; a claim that was lost over an error is not told as well."""
        with anyio.CancelScope(shield=True):
            if isinstance(error, Exception):
                try:
                    await self.fail(reason_of(error))
                except RequestRefused:
                    return
            else:
                await self.release()

    def _let_go(self) -> Held | None:
        held, self._held = self._held, None
        if self._renewing is not None:
            self._renewing.cancel()
            self._renewing = None
        return held

    @staticmethod
    async def _finish(call: Any) -> None:
        try:
            await call
        except RequestRefused as error:
            if not is_settled(error):
                raise

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Task:
        await self.complete()
        task = await self.take()
        if task is None:
            raise StopAsyncIteration
        return task

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        await self.end(error)

    def _forked(self) -> None:
        """The claim is the parent's."""
        self._held = self._renewing = None

    def __del__(self) -> None:
        held, renewing = self._held, self._renewing
        if held is None or renewing is None:
            return
        params = p.TaskRelease(
            conversation=self._conversation.id, task=held.task.id, owner=self._terms.owner, fence=held.fence
        )
        # It runs in any thread, also within a call of this very client: it posts to the loop and waits for nothing.
        with suppress(RuntimeError):  # the loop is closed
            request = Request.of("task.release", params)
            renewing.get_loop().call_soon_threadsafe(_forget, renewing, self._conversation.client, request)


def _forget(renewing: "asyncio.Task[None]", client: "AsyncClient", release: Request) -> None:
    renewing.cancel()
    client.post(release)


class AsyncClaim:
    """One claimed task for an `async with`. See `AsyncConversation.claim`."""

    def __init__(self, work: AsyncWork) -> None:
        self._work = work

    async def __aenter__(self) -> Task | None:
        return await self._work.take()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                await self._work.complete()
        finally:
            await self._work.end(error)


async def _renew(conversation: "AsyncConversation", terms: Terms, held: Held) -> None:
    """Keep a claim in force until cancelled, or until it is lost."""
    while True:
        await asyncio.sleep(terms.renew_s)
        try:
            await conversation.renew(held.task.id, terms.owner, fence=held.fence)
        except PunchlistError as error:
            if _is_lost(error):
                return
