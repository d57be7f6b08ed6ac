"""Lanes: each claims one task after the other and runs the command for it, until there is nothing more to do."""

import asyncio
import errno
import os
from collections.abc import Coroutine
from typing import Any

import msgspec

from punchlist.aio import AsyncConversation
from punchlist.cli.failure import UsageError
from punchlist.cli.runner.child import Child, Ending, environment
from punchlist.cli.runner.command import Command, Unfit
from punchlist.cli.runner.display import LogFile, Show
from punchlist.errors import LeaseHeld, LeaseLost, RequestRefused
from punchlist.work import FOLLOW_MS, AsyncWork, Terms
from punchlist_schemas.things import Task

LEASE_MS = 60_000

_PROGRESS_S = 0.2
"""How long a state of the progress line stands at least."""


class Plan(msgspec.Struct, frozen=True):
    """What to run and how.

    `env` is what every command is given besides its task; `log_dir` where the logs of the tasks are.
    """

    command: Command
    owner: str
    log_dir: str
    env: dict[str, str]
    jobs: int = 1
    keep_going: bool = False
    follow: bool = False
    timeout_ms: int | None = None


class Lanes:
    """A run of the command over a list.

    Attributes:
        failed: How many tasks have failed.
        done: How many were completed.
    """

    def __init__(self, conversation: AsyncConversation, plan: Plan, show: Show) -> None:
        self._conversation = conversation
        self._plan = plan
        self._show = show
        self._children: set[Child] = set()
        self._claiming: set[asyncio.Task[Any]] = set()
        self._busy = 0
        self._turned = asyncio.Event()
        self._finishing = False
        self._stopped = False
        self.failed = 0
        self.done = 0

    async def run(self) -> None:
        """Work until there is nothing more to be had, or until told to stop."""
        watching = asyncio.create_task(self._watch()) if self._show.has_progress else None
        try:
            async with asyncio.TaskGroup() as lanes:
                for _ in range(self._plan.jobs):
                    lanes.create_task(self._lane())
        finally:
            if watching is not None:
                watching.cancel()
            await self._stopped_children()

    async def _stopped_children(self) -> None:
        """Stop what still runs, and wait until nothing of it is left: the loop that would kill it ends with this."""
        for child in self._children:
            child.stop()
        await asyncio.gather(*(child.wait(None) for child in self._children))

    def finish(self) -> None:
        """Begin nothing new."""
        self._finishing = True
        for claiming in self._claiming:
            claiming.cancel()
        self._turn()

    def stop(self) -> None:
        """Stop the commands and give their tasks back."""
        self._stopped = True
        self.finish()
        for child in self._children:
            child.stop()

    @property
    def was_stopped(self) -> bool:
        """Whether commands were stopped."""
        return self._stopped

    async def _watch(self) -> None:
        """Keep the progress line current: after what happens here, and not more often than somebody can read."""
        while True:
            turned = self._turned
            self._show.progress((await self._conversation.info()).counts)
            await asyncio.sleep(_PROGRESS_S)
            await turned.wait()

    def _turn(self) -> None:
        self._turned.set()
        self._turned = asyncio.Event()

    async def _lane(self) -> None:
        terms = Terms(self._plan.owner, None, LEASE_MS, FOLLOW_MS if self._plan.follow else 0)
        work = AsyncWork(self._conversation.client, self._conversation.calls, terms)
        task = await self._next(work)
        while task is not None:
            self._busy += 1
            finish = await self._run(work, task)
            # The end of one task and the claim of the next go out together: one commit for both.
            finishing = asyncio.create_task(self._settled(task, finish))
            await asyncio.sleep(0)
            task = await self._next(work)
            await finishing
            self._turn()

    async def _settled(self, task: Task, finish: Coroutine[Any, Any, None]) -> None:
        try:
            await finish
        except (LeaseLost, LeaseHeld) as error:
            self._show.note(f"#{task.id}: the claim was lost meanwhile: {error}")
        finally:
            self._busy -= 1  # not sooner: a lane that found nothing would leave before this made something ready
            self._turn()

    async def _next(self, work: AsyncWork) -> Task | None:
        """The next task; None when this lane is done."""
        while not self._finishing:
            turned = self._turned
            task = await self._claimed(work)
            if task is not None:
                return task
            # What another lane finished meanwhile may have made something ready after the daemon had answered this one.
            if not turned.is_set():
                if not self._busy:
                    return None
                await turned.wait()
        return None

    async def _claimed(self, work: AsyncWork) -> Task | None:
        claiming = asyncio.create_task(self._take(work))
        self._claiming.add(claiming)
        try:
            return await claiming
        except asyncio.CancelledError:
            if not self._finishing:
                raise
            await work.release()
            return None
        finally:
            self._claiming.discard(claiming)

    async def _take(self, work: AsyncWork) -> Task | None:
        task = await work.take()
        if task is None and self._plan.keep_going:
            for ready in await self._conversation.list(ready=True):
                try:
                    return await work.take(ready.id)
                except RequestRefused:
                    continue
        return task

    async def _run(self, work: AsyncWork, task: Task) -> Coroutine[Any, Any, None]:
        """Run the command for a task; what is to be told of it."""
        self._show.started(task)
        self._turn()
        log = LogFile(self._plan.log_dir, task)
        try:
            ending = await self._ending(work, task, log)
        except (Unfit, ValueError) as error:  # ValueError: a word holds a null byte
            said = str(error)
            log.line(said)
            return self._fail(work, task, said)
        except OSError as error:
            if error.errno != errno.E2BIG:  # the command is at fault, not the task: every other task would fail as well
                await work.release()
                raise UsageError(f"can't start {self._plan.command.words[0]}: {error.strerror}") from error
            said = f"can't start {self._plan.command.words[0]}: {error.strerror}"
            log.line(said)
            return self._fail(work, task, said)
        finally:
            log.close()
        if self._stopped:
            self._show.ended(task, "pending", "given back")
            return work.release()
        if ending.code == 0 and not ending.timed_out:
            self.done += 1
            self._show.ended(task, "completed", ending.out.rpartition("\n")[2])
            return work.complete(ending.out or None)
        return self._fail(work, task, ending.reason(self._plan.timeout_ms), log.path)

    def _fail(self, work: AsyncWork, task: Task, reason: str, log: str = "") -> Coroutine[Any, Any, None]:
        self.failed += 1
        self._show.ended(task, "failed", reason)
        if log:
            self._show.note(f"  {log}")
        return work.fail(reason)

    async def _ending(self, work: AsyncWork, task: Task, log: LogFile) -> Ending:
        words = self._plan.command.for_task(task)
        told = {"PUNCHLIST_OWNER": self._plan.owner, "PUNCHLIST_FENCE": str(work.fence), "PUNCHLIST_LOG": log.path}
        env = {**os.environ, **self._plan.env, **environment(task, **told)}

        def on_line(stream: str, text: str) -> None:
            log.line(text)
            self._show.output(task, text)

        child = Child(words, env, msgspec.json.encode(task) + b"\n", on_line)
        self._children.add(child)
        if self._stopped:
            child.stop()
        try:
            return await child.wait(None if self._plan.timeout_ms is None else self._plan.timeout_ms / 1000)
        finally:
            self._children.discard(child)
