"""Lanes that work in parallel: each claims a task and runs the command for it, until no task is left."""

import asyncio
import errno
import os
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import msgspec

from punchlist.base.tree import with_path
from punchlist.clients.aio import AsyncConversation
from punchlist.clients.work import FOLLOW_MS, AsyncWork, Terms
from punchlist.errors import IllegalTransition, LeaseHeld, LeaseLost, RequestRefused
from punchlist_apps.cli.printing import stored
from punchlist_apps.cli.printing.failure import StateError
from punchlist_apps.cli.running.child import Child, Ending, build_environment
from punchlist_apps.cli.running.command import Command, UnusableText
from punchlist_apps.cli.running.display import Display, LogFile
from punchlist_apps.cli.running.notify import Notifier
from punchlist_schemas.results import SetStatusResult
from punchlist_schemas.things import PRIORITIES, Task, is_heading

LEASE_MS = 60_000

MAX_DELAY_MS = 3_600_000
"""Maximum delay before a retry, in milliseconds."""

_CLOCK_SLACK_S = 2.0
"""Time that a lane waits in addition to a retry's delay, in seconds. Unlike the daemon, lanes don't use the wall
clock."""

_MAX_NAMES = 5

_PROGRESS_S = 0.2
"""Minimum interval between updates of the progress line, in seconds."""


class Plan(msgspec.Struct, frozen=True):
    """The command to run, and how to run it.

    Attributes:
        log_dir: The directory of the tasks' log files.
        env: Variables for every command, in addition to those of its task.
        jobs: Number of lanes for tasks that are in no group.
        keep_going: Whether to continue on a list that has stopped at a failure.
        follow: Whether to wait for new tasks.
        groups: Label → number of lanes for its tasks.
        retries: Maximum number of retries of a task.
        retry_ms: Delay before the first retry; doubles with each retry.
        restart_failed: Whether to reopen failed tasks first.
    """

    command: Command
    owner: str
    log_dir: str
    env: dict[str, str]
    jobs: int = 1
    keep_going: bool = False
    follow: bool = False
    timeout_ms: int | None = None
    groups: dict[str, int] = {}
    retries: int = 0
    retry_ms: int = 0
    restart_failed: bool = False


class Lanes:
    """One run of `punch run` on a list.

    Attributes:
        failed: The tasks whose last attempt failed.
        done: Number of completed tasks.
        waiting: Number of tasks that are done but still wait at their gate.
    """

    def __init__(
        self, conversation: AsyncConversation, plan: Plan, display: Display, notifier: Notifier | None = None
    ) -> None:
        self._notifier = notifier or Notifier(None, None, {}, display)
        self._retry_at = 0.0
        """Monotonic time at which all postponed tasks will be ready."""
        self._conversation = conversation
        self._plan = plan
        self._display = display
        self._children: set[Child] = set()
        self._claiming: set[asyncio.Task[Any]] = set()
        self._busy = 0
        self._changed = asyncio.Event()
        self._finishing = False
        self._stopped = False
        self.failed: set[str] = set()
        self.done = 0
        self.waiting = 0

    async def run(self) -> None:
        """Run tasks until none are left, or until `finish` or `stop` is called."""
        if self._plan.restart_failed:
            await self._restart_failed()
        helpers = [asyncio.create_task(self._update_progress())] if self._display.has_progress else []
        if self._plan.groups:
            helpers.append(asyncio.create_task(self._wake_on_changes()))
        try:
            async with asyncio.TaskGroup() as lanes:
                for label, jobs in {"": self._plan.jobs, **self._plan.groups}.items():
                    for _ in range(jobs):
                        lanes.create_task(self._run_lane(label))
        finally:
            for helper in helpers:
                helper.cancel()
            await self._stop_children()
        await self._report()

    async def _restart_failed(self) -> None:
        restarted = 0
        for task in await self._conversation.list(status="failed"):
            # A parent that failed because of its children is reopened together with these children.
            with suppress(IllegalTransition):
                await self._conversation.reopen(task.id)
                restarted += not is_heading(task.metadata)
        self._display.note(f"restarted {restarted} failed {'task' if restarted == 1 else 'tasks'}")

    async def _report(self) -> None:
        info = await self._conversation.info()
        counts = info.counts
        left = counts.pending + counts.in_progress + counts.paused - self.waiting
        if left > 0:  # don't count headings
            unfinished = await self._conversation.list(status=("pending", "in_progress", "paused"))
            left -= sum(is_heading(task.metadata) for task in unfinished)
        parts = [f"{self.done} done", f"{len(self.failed)} failed" if self.failed else ""]
        parts += [f"{self.waiting} waiting for approval" if self.waiting else "", f"{left} left" if left > 0 else ""]
        summary = ", ".join(part for part in parts if part)
        reason = await self._explain_rest() if left > 0 and not self._stopped else ""
        self._display.note(f"{'' if self.done or self.failed or self.waiting else 'nothing to do: '}{summary}{reason}")
        facts = {"conversation": self._conversation.id, "done": self.done, "failed": len(self.failed)}
        self._notifier.send("finished", {**facts, "waiting": self.waiting, "left": max(left, 0), "counts": counts})
        await self._notifier.drain()

    async def _explain_rest(self) -> str:
        explained = await self._conversation.explain(owner=self._plan.owner)
        failed = [reason for reason in explained.reasons if reason.kind in ("stopped", "failed")]
        if not failed:
            return " (see why: punch why ID)" if not explained.ready else ""
        names = ", ".join(f"#{reason.by}" for reason in failed[:_MAX_NAMES])
        names += ", …" if len(failed) > _MAX_NAMES else ""
        return f" behind {names}, which failed (to retry: punch run --restart-failed)"

    async def _stop_children(self) -> None:
        """Stop the running commands and wait until they have ended.

        Call this before the event loop stops, because killing a command needs the loop.
        """
        for child in self._children:
            child.stop()
        await asyncio.gather(*(child.wait(None) for child in self._children))

    def finish(self) -> None:
        """Stop claiming tasks, but let running commands finish."""
        self._finishing = True
        for claiming in self._claiming:
            claiming.cancel()
        self._wake_lanes()

    def stop(self) -> None:
        """Stop claiming tasks, stop the running commands and release their tasks."""
        self._stopped = True
        self.finish()
        for child in self._children:
            child.stop()

    @property
    def is_stopped(self) -> bool:
        return self._stopped

    async def _update_progress(self) -> None:
        """Update the progress line after each change by a lane, at most once every `_PROGRESS_S` seconds."""
        while True:
            changed = self._changed
            self._display.show_progress((await self._conversation.info()).counts)
            await asyncio.sleep(_PROGRESS_S)
            await changed.wait()

    def _wake_lanes(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _wake_on_changes(self) -> None:
        """Wake the lanes after each change to the list.

        This is needed with groups, where lanes choose tasks themselves.
        """
        async with self._conversation.watch() as changes:
            async for _ in changes:
                self._wake_lanes()

    async def _run_lane(self, label: str) -> None:
        waits = self._plan.follow and not self._plan.groups
        terms = Terms(self._plan.owner, None, LEASE_MS, FOLLOW_MS if waits else 0)
        work = AsyncWork(self._conversation.client, self._conversation.calls, terms)
        task = await self._next_task(work, label)
        while task is not None:
            self._busy += 1
            finish = await self._run_task(work, task)
            # Send the outcome of one task and the claim for the next together, so that they share a commit.
            finishing = asyncio.create_task(self._finish_task(task, finish))
            await asyncio.sleep(0)
            task = await self._next_task(work, label)
            await finishing
            self._wake_lanes()

    async def _finish_task(self, task: Task, finish: Coroutine[Any, Any, object]) -> None:
        try:
            result = await finish
            if isinstance(result, SetStatusResult):
                stored.record_tasks(self._conversation.id, [task.id])
                if result.task.waits_for is not None:
                    self.done -= 1
                    self.waiting += 1
                    self._display.note(f"#{task.id} waits for a {result.task.waits_for}")
                    self._notify("waiting", result.task)
        except (LeaseLost, LeaseHeld) as error:
            self._display.note(f"#{task.id}: the claim was lost: {error}")
        finally:
            # Count down only now: an idle lane must not exit before this task's outcome has made other tasks ready.
            self._busy -= 1
            self._wake_lanes()

    async def _next_task(self, work: AsyncWork, label: str) -> Task | None:
        while not self._finishing:
            changed = self._changed
            task = await self._claim_cancellably(work, label)
            if task is not None:
                return task
            # If another lane has finished a task since the claim was sent, other tasks may have become ready after the
            # response.
            if not changed.is_set():
                retry_s = self._retry_at - time.monotonic()
                follows = self._plan.follow and bool(self._plan.groups)
                if not (self._busy or follows or retry_s > 0):
                    return None
                # A postponed task becomes ready when its delay ends, without a change to the list.
                with suppress(TimeoutError):
                    async with asyncio.timeout(retry_s if retry_s > 0 else None):
                        await changed.wait()
        return None

    async def _claim_cancellably(self, work: AsyncWork, label: str) -> Task | None:
        claiming = asyncio.create_task(self._claim(work, label))
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

    async def _claim(self, work: AsyncWork, label: str) -> Task | None:
        groups = self._plan.groups
        if not groups:
            wait_s = self._retry_at - time.monotonic()
            task = await work.take(wait_ms=int(wait_s * 1000) if wait_s > 0 else 0)
            if task is not None or not self._plan.keep_going:
                return task
        elif not self._plan.keep_going and not (await self._conversation.explain(owner=self._plan.owner)).ready:
            return None
        urgent_first = sorted(
            await self._conversation.list(ready=True), key=lambda task: -PRIORITIES.index(task.priority)
        )
        for ready in urgent_first:
            if label in ready.labels or (not label and groups.keys().isdisjoint(ready.labels)):
                with suppress(RequestRefused):  # another worker was faster
                    return await work.take(ready.id)
        return None

    async def _run_task(self, work: AsyncWork, task: Task) -> Coroutine[Any, Any, object]:
        """Run the command for a task and return the call that reports its outcome to the daemon."""
        self._display.show_start(task, _build_title_path(work, task))
        self._wake_lanes()
        log = LogFile(self._plan.log_dir, task)
        try:
            ending = await self._run_command(work, task, log)
        except (UnusableText, ValueError) as error:  # ValueError: a word contains a null byte
            log.write(str(error))
            return self._fail(work, task, str(error))
        except OSError as error:
            problem = f"can't start {self._plan.command.words[0]}: {error.strerror}"
            # E2BIG is caused by the task. Any other error is caused by the command, so all tasks would fail: end the
            # run.
            if error.errno != errno.E2BIG:
                await work.release()
                raise StateError(problem) from error
            log.write(problem)
            return self._fail(work, task, problem)
        finally:
            log.close()
        if self._stopped:
            self._display.show_end(task, "pending", "released")
            return work.release()
        if ending.code == 0 and not ending.timed_out:
            self.done += 1
            self.failed.discard(task.id)
            self._display.show_end(task, "completed", ending.out.rpartition("\n")[2])
            return work.complete(ending.out or None)
        reason = ending.format_reason(self._plan.timeout_ms)
        if task.attempts <= self._plan.retries:
            return self._postpone(work, task, reason)
        return self._fail(work, task, reason, log.path)

    def _postpone(self, work: AsyncWork, task: Task, reason: str) -> Coroutine[Any, Any, None]:
        plan = self._plan
        delay_ms = min(plan.retry_ms << min(max(task.attempts - 1, 0), 32), MAX_DELAY_MS)
        self._display.show_end(task, "pending", reason)
        when = f"in {delay_ms / 1000:g} s" if delay_ms else "now"
        self._display.note(f"  attempt {task.attempts} of {plan.retries + 1} failed; retry {when}")
        self._retry_at = max(self._retry_at, time.monotonic() + delay_ms / 1000 + _CLOCK_SLACK_S)
        return work.postpone(reason, round(time.time() * 1000) + delay_ms)

    def _notify(self, event: str, task: Task, **facts: str) -> None:
        self._notifier.send(event, {"conversation": self._conversation.id, "task": task, **facts})

    def _fail(self, work: AsyncWork, task: Task, reason: str, log: str = "") -> Coroutine[Any, Any, None]:
        self.failed.add(task.id)
        self._notify("failed", task, reason=reason)
        self._display.show_end(task, "failed", reason)
        if log:
            self._display.note(f"  {log}")
        return work.fail(reason)

    async def _run_command(self, work: AsyncWork, task: Task, log: LogFile) -> Ending:
        words = self._plan.command.build_words(task)
        claim = {
            "PUNCHLIST_OWNER": self._plan.owner,
            "PUNCHLIST_FENCE": str(work.fence),
            "PUNCHLIST_LOG": log.path,
            "PUNCHLIST_PATH": _build_title_path(work, task),
        }
        env = {**os.environ, **self._plan.env, **build_environment(task, **claim)}

        def on_line(stream: str, text: str) -> None:
            log.write(text)
            self._display.show_output(task, text)

        child = Child(words, env, msgspec.json.encode(task) + b"\n", on_line)
        self._children.add(child)
        if self._stopped:
            child.stop()
        try:
            return await child.wait(None if self._plan.timeout_ms is None else self._plan.timeout_ms / 1000)
        finally:
            self._children.discard(child)


def _build_title_path(work: AsyncWork, task: Task) -> str:
    return with_path(task.title, [parent.title for parent in work.path])
