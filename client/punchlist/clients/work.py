"""Works through a list: claims a task, renews the claim while the body runs, and finishes the task when the body ends.

```python
with conversation.work("worker-1") as tasks:
    for task in tasks:
        build(task.title)
```

When the body reaches its end, the task is completed, unless the body has already finished it with its own result:
`conversation.complete(task.id, result="…")`. If an exception leaves the `with` block, the task is marked as failed with
the exception's message. Any other exit (`break`, an interrupt, a cancellation) releases the claim. Without a `with`
block, an exception also only releases the claim, because a plain `for` loop can't detect why it was left.

`conversation.claim(…)` does the same for one task. The asyncio client has both, for `async with` and `async for`.
"""

import asyncio
from contextlib import suppress
from typing import Protocol, Self, TypeVar

import anyio
import msgspec

from punchlist.calls.call import Call
from punchlist.calls.conversations import ConversationCalls
from punchlist.connection.core import Request
from punchlist.connection.forks import on_fork
from punchlist.errors import ConnectionLost, DaemonUnavailable, LeaseHeld, LeaseLost, PunchlistError, RequestRefused
from punchlist_schemas.results import ClaimResult, SetStatusResult
from punchlist_schemas.things import Task, TaskName

R = TypeVar("R")

RENEW_S = 3.0
"""Longest interval between renewals of a claim, in seconds. A short lease is renewed after each third of its length.

Long leases need this too: after a restart, the daemon keeps claims only for a short grace period.
"""

FOLLOW_MS = 3_600_000
"""Longest time that one call waits for new tasks, in milliseconds. The call is then repeated."""

MAX_REASON = 8_192
"""Longest failure reason, in characters."""

_SETTLED = frozenset({"completed", "failed", "paused"})


class Terms(msgspec.Struct, frozen=True):
    """Parameters of a worker's claims.

    Attributes:
        owner: Name of the worker.
        task: Id of the task to claim; None for the next ready one.
        lease_ms: Milliseconds a claim lasts after the last renewal.
        wait_ms: Milliseconds to wait for a task.
    """

    owner: str
    task: str | None = None
    lease_ms: int = 60_000
    wait_ms: int = 0

    @property
    def renew_s(self) -> float:
        return min(self.lease_ms / 3_000, RENEW_S)


class Held(msgspec.Struct, frozen=True):
    """A claimed task.

    Attributes:
        fence: Number of the claim.
        path: Parents of the task, outermost first.
    """

    task: Task
    fence: int
    path: tuple[TaskName, ...] = ()

    @classmethod
    def of(cls, result: ClaimResult) -> "Held | None":
        return None if result.task is None else cls(result.task, result.fence or 0, result.path)


def reason_of(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__)[-MAX_REASON:]


def is_settled(error: RequestRefused) -> bool:
    """Return whether finishing a task failed because the body had already finished or paused it."""
    return isinstance(error, LeaseLost) and error.status in _SETTLED


class Connection(Protocol):
    """The part of `AsyncClient` that `AsyncWork` needs."""

    async def run(self, call: Call[R]) -> R: ...

    def post(self, request: Request) -> None:
        """Send a request without waiting, and ignore its response."""
        ...


class AsyncWork:
    """Tasks claimed one after another, for `async for` in an `async with` block; see `AsyncConversation.work`."""

    # Set on the class, because `__del__` also runs after an interrupted `__init__`.
    _held: Held | None = None
    _renewing: asyncio.Task[None] | None = None

    def __init__(self, connection: Connection, calls: ConversationCalls, terms: Terms) -> None:
        self._connection = connection
        self._calls = calls
        self._terms = terms
        on_fork(self, AsyncWork._reset_after_fork)

    @property
    def fence(self) -> int | None:
        """Number of the current claim; None if no task is claimed."""
        return None if self._held is None else self._held.fence

    @property
    def path(self) -> tuple[TaskName, ...]:
        """Parents of the current task, outermost first."""
        return () if self._held is None else self._held.path

    async def take(self, task: str | None = None, *, wait_ms: int = 0) -> Task | None:
        """Claim the next ready task, or the task with id `task`. Return None if no task is available.

        Args:
            task: Id of the task.
            wait_ms: Milliseconds to wait for a task, if longer than the `wait_ms` of this object's terms.
        """
        terms = self._terms
        target = task or terms.task
        wait_ms = max(wait_ms, terms.wait_ms)
        while True:
            claim = self._calls.take(terms.owner, target, lease_ms=terms.lease_ms, wait_ms=wait_ms)
            self._held = Held.of(await self._connection.run(claim))
            if self._held is not None or terms.wait_ms < FOLLOW_MS:
                break
        if self._held is None:
            return None
        self._renewing = asyncio.create_task(_renew(self._connection, self._calls, terms, self._held))
        return self._held.task

    async def complete(self, result: str | None = None) -> SetStatusResult | None:
        """Complete the current task with its result, unless it is already finished or paused.

        Returns the result of the call. A task with a gate then waits for its check or approval. Returns None if there
        was nothing to complete.

        Raises:
            LeaseLost: The claim was lost, and the task is open again.
            LeaseHeld: The claim was lost, and another owner has claimed the task.
        """
        if (held := self._pop_claim()) is None:
            return None
        return await self._finish(self._calls.complete(held.task.id, result, fence=held.fence))

    async def fail(self, reason: str) -> None:
        """Mark the current task as failed; raises the same errors as `complete`."""
        if (held := self._pop_claim()) is not None:
            await self._finish(self._calls.fail(held.task.id, reason[:MAX_REASON], fence=held.fence))

    async def postpone(self, reason: str, until_ms: int) -> None:
        """Make the current task pending again, deferred until `until_ms` (milliseconds since 1970 UTC).

        `reason` is recorded as its failure reason.
        """
        if (held := self._pop_claim()) is not None:
            task, fence = held.task.id, held.fence
            await self._finish(self._calls.edit(task, not_before=until_ms, owner=None, fence=fence))
            reopen = self._calls.set_status(task, "pending", fail_reason=reason[:MAX_REASON], fence=fence)
            await self._finish(reopen)

    async def release(self) -> None:
        """Release the current task so that others can claim it."""
        if (held := self._pop_claim()) is not None:
            try:
                await self._connection.run(self._calls.release(held.task.id, self._terms.owner, fence=held.fence))
            except (RequestRefused, ConnectionLost, DaemonUnavailable):
                return  # the claim has ended or will expire

    def give_back(self, _task: Task | None) -> None:
        """Release the current task without waiting, because it can't be delivered. Must be called on the loop."""
        if (held := self._pop_claim()) is not None:
            self._connection.post(self._calls.release(held.task.id, self._terms.owner, fence=held.fence).request)

    async def end(self, error: BaseException | None) -> None:
        """Fail the current task if its body raised an exception, else release it.

        Args:
            error: The exception that left the body, if any. In that case, an error about a lost claim is ignored.
        """
        with anyio.CancelScope(shield=True):
            if isinstance(error, Exception):
                try:
                    await self.fail(reason_of(error))
                except RequestRefused:
                    return
            else:
                await self.release()

    def _pop_claim(self) -> Held | None:
        held, self._held = self._held, None
        if self._renewing is not None:
            self._renewing.cancel()
            self._renewing = None
        return held

    async def _finish(self, call: Call[R]) -> R | None:
        try:
            return await self._connection.run(call)
        except RequestRefused as error:
            if not is_settled(error):
                raise
            return None

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

    def _reset_after_fork(self) -> None:
        self._held = self._renewing = None

    def __del__(self) -> None:
        held, renewing = self._held, self._renewing
        if held is None or renewing is None:
            return
        release = self._calls.release(held.task.id, self._terms.owner, fence=held.fence).request
        # A finalizer may run in any thread, even during a call of this client, so it must not wait.
        with suppress(RuntimeError):  # the loop is closed
            renewing.get_loop().call_soon_threadsafe(_forget, renewing, self._connection, release)


def _forget(renewing: "asyncio.Task[None]", connection: Connection, release: Request) -> None:
    renewing.cancel()
    connection.post(release)


class AsyncClaim:
    """One claimed task for an `async with` block; see `AsyncConversation.claim`."""

    def __init__(self, work: AsyncWork) -> None:
        self._work = work

    def give_back(self, task: Task | None) -> None:
        self._work.give_back(task)

    async def __aenter__(self) -> Task | None:
        return await self._work.take()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                await self._work.complete()
        finally:
            await self._work.end(error)


async def _renew(connection: Connection, calls: ConversationCalls, terms: Terms, held: Held) -> None:
    """Renew a claim until cancelled or until the claim is lost."""
    # Holds no reference to the `AsyncWork`, so that it is garbage-collected, and its task released, when a `for` loop
    # is left.
    while True:
        await asyncio.sleep(terms.renew_s)
        try:
            await connection.run(calls.renew(held.task.id, terms.owner, fence=held.fence))
        except (LeaseLost, LeaseHeld):
            return
        except PunchlistError:
            continue  # the daemon is unreachable; the claim may still be in force when it returns
