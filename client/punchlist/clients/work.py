"""Working through a list: claim a task, hold the claim while the body runs, finish the task when the body ends.

```python
with conversation.work("worker-1") as tasks:
    for task in tasks:
        build(task.title)
```

When the body reaches its end, the task is completed, unless the body has finished it with a result of its own:
`conversation.complete(task.id, result="…")`. An exception that leaves the `with` fails the task with its message.
Any other way out (`break`, an interrupt, a cancellation) releases the claim. A plain `for` does not learn why it was
left: without the `with`, an exception releases the claim too.

`conversation.claim(…)` does the same for one task. Asyncio has both, with `async with` and `async for`.
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
"""How often a claim is renewed, at least; a short lease is renewed three times in its length.

After a restart the daemon holds a claim for a short grace only.
"""

FOLLOW_MS = 3_600_000
"""How long one call waits for new tasks, in milliseconds; then it is repeated."""

MAX_REASON = 8_192
"""The longest reason of a failure, in characters."""

_SETTLED = frozenset({"completed", "failed", "paused"})


class Terms(msgspec.Struct, frozen=True):
    """How tasks are claimed: by whom, which one (None: the next ready one), for how long, and how long to wait."""

    owner: str
    task: str | None = None
    lease_ms: int = 60_000
    wait_ms: int = 0

    @property
    def renew_s(self) -> float:
        return min(self.lease_ms / 3_000, RENEW_S)


class Held(msgspec.Struct, frozen=True):
    """A claimed task, the number of the claim, and the parents above the task."""

    task: Task
    fence: int
    path: tuple[TaskName, ...] = ()

    @classmethod
    def of(cls, result: ClaimResult) -> "Held | None":
        return None if result.task is None else cls(result.task, result.fence or 0, result.path)


def reason_of(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__)[-MAX_REASON:]


def is_settled(error: RequestRefused) -> bool:
    """Whether the task that we can't finish is finished or paused already: a body may do that itself."""
    return isinstance(error, LeaseLost) and error.status in _SETTLED


class Connection(Protocol):
    """What makes the calls: an `AsyncClient`."""

    async def run(self, call: Call[R]) -> R:
        """Make a call and return its result."""
        ...

    def post(self, request: Request) -> None:
        """Send a request whose response nobody waits for; never blocks."""
        ...


class AsyncWork:
    """Tasks claimed one after the other, for an `async for` in an `async with`. See `AsyncConversation.work`."""

    # Of the class: a finalizer also meets what an interrupted constructor left half made.
    _held: Held | None = None
    _renewing: asyncio.Task[None] | None = None

    def __init__(self, connection: Connection, calls: ConversationCalls, terms: Terms) -> None:
        self._connection = connection
        self._calls = calls
        self._terms = terms
        on_fork(self, AsyncWork._reset_after_fork)

    @property
    def fence(self) -> int | None:
        """The number of the current claim."""
        return None if self._held is None else self._held.fence

    @property
    def path(self) -> tuple[TaskName, ...]:
        """The parents above the current task, the outermost first."""
        return () if self._held is None else self._held.path

    async def take(self, task: str | None = None, *, wait_ms: int = 0) -> Task | None:
        """Claim the next task, or a named one, waiting for it if asked; None if there is none to be had."""
        terms = self._terms
        while True:
            named = task or terms.task
            patience = max(wait_ms, terms.wait_ms)
            claim = self._calls.take(terms.owner, named, lease_ms=terms.lease_ms, wait_ms=patience)
            result = await self._connection.run(claim)
            self._held = Held.of(result)
            if self._held is not None or terms.wait_ms < FOLLOW_MS:
                break
        if self._held is None:
            return None
        self._renewing = asyncio.create_task(_renew(self._connection, self._calls, terms, self._held))
        return self._held.task

    async def complete(self, result: str | None = None) -> SetStatusResult | None:
        """Complete the current task with its result, unless it is finished or paused already.

        Returns what came of that, if anything did: a task with a gate waits for what the gate asks for.

        Raises:
            LeaseLost: The claim was lost, and the task is open again.
            LeaseHeld: The claim was lost, and somebody else has the task now.
        """
        if (held := self._pop_claim()) is None:
            return None
        return await self._finish(self._calls.complete(held.task.id, result, fence=held.fence))

    async def fail(self, reason: str) -> None:
        """Mark the current task as failed; raises the same errors as `complete`."""
        if (held := self._pop_claim()) is not None:
            await self._finish(self._calls.fail(held.task.id, reason[:MAX_REASON], fence=held.fence))

    async def postpone(self, reason: str, until_ms: int) -> None:
        """Give the present task back with the reason why it failed, not to be claimed before a time (ms since 1970)."""
        if (held := self._pop_claim()) is not None:
            task, fence = held.task.id, held.fence
            await self._finish(self._calls.edit(task, not_before=until_ms, owner=None, fence=fence))
            again = self._calls.set_status(task, "pending", fail_reason=reason[:MAX_REASON], fence=fence)
            await self._finish(again)

    async def release(self) -> None:
        """Release the current task, so that others can claim it."""
        if (held := self._pop_claim()) is not None:
            try:
                await self._connection.run(self._calls.release(held.task.id, self._terms.owner, fence=held.fence))
            except (RequestRefused, ConnectionLost, DaemonUnavailable):
                return  # the claim is gone, or soon will be

    def give_back(self, _task: Task | None) -> None:
        """Release the current task, which its taker didn't get, without waiting; must be called on the loop."""
        if (held := self._pop_claim()) is not None:
            self._connection.post(self._calls.release(held.task.id, self._terms.owner, fence=held.fence).request)

    async def end(self, error: BaseException | None) -> None:
        """Finish the current task after its body; if the body raised an error, a lost claim raises no second one."""
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
        # It runs in any thread, also within a call of this very client: it posts to the loop and waits for nothing.
        with suppress(RuntimeError):  # the loop is closed
            renewing.get_loop().call_soon_threadsafe(_forget, renewing, self._connection, release)


def _forget(renewing: "asyncio.Task[None]", connection: Connection, release: Request) -> None:
    renewing.cancel()
    connection.post(release)


class AsyncClaim:
    """One claimed task for an `async with`. See `AsyncConversation.claim`."""

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
    """Renew a claim until cancelled, or until it is lost.

    Holds no reference to the work: when a `for` loop leaves it, it is collected, and that releases its task.
    """
    while True:
        await asyncio.sleep(terms.renew_s)
        try:
            await connection.run(calls.renew(held.task.id, terms.owner, fence=held.fence))
        except (LeaseLost, LeaseHeld):
            return
        except PunchlistError:
            continue  # the daemon is away: the claim may still hold when it comes back
