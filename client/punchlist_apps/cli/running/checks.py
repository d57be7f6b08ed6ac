"""Runs a check for each task that waits at its gate, and approves or rejects the task depending on the exit code."""

import asyncio
from collections.abc import Collection

import msgspec

from punchlist.clients.aio import AsyncConversation
from punchlist.errors import NotFound, RequestRefused
from punchlist_apps.cli.printing import stored
from punchlist_apps.cli.printing.failure import StateError
from punchlist_apps.cli.running.child import Child, build_environment
from punchlist_apps.cli.running.command import Command, UnusableText
from punchlist_apps.cli.running.display import Display
from punchlist_schemas.things import Task


class Checks:
    """One check, run for the tasks of a list one at a time.

    If a task changes during its check, it is checked again, because the result applies to an older version.

    Args:
        conversation: The list.
        check: The name of the check.
        command: The command that performs the check.
        env: The environment of the command, without the task's variables.
        timeout_ms: Upper limit for one run of the command. If a run takes longer, the command and its descendants are
            killed, and the check fails.
        display: Prints the output.
        tasks: Ids of the tasks to check; None for all.

    Attributes:
        passed: Number of tasks that have passed.
        failed: Number of tasks that have not passed.
    """

    def __init__(  # noqa: PLR0913 - the parts of a check
        self,
        conversation: AsyncConversation,
        check: str,
        command: Command,
        *,
        env: dict[str, str],
        timeout_ms: int,
        display: Display,
        tasks: Collection[str] | None = None,
    ) -> None:
        self._conversation = conversation
        self._check = check
        self._command = command
        self._env = env
        self._timeout_ms = timeout_ms
        self._display = display
        self._tasks = tasks
        self._child: Child | None = None
        self._running: asyncio.Task[None] | None = None
        self._stopped = False
        self.passed = 0
        self.failed = 0

    async def run(self, *, once: bool) -> None:
        """Check the waiting tasks. Unless `once`, continue with tasks that start waiting later, until stopped.

        Raises:
            StateError: The command can't be started. No task was touched.
        """
        self._running = asyncio.current_task()
        try:
            if once:
                waiting = [task for task in await self._conversation.list(waits_for="check") if self._is_mine(task)]
                for id in sorted({*(self._tasks or ())} - {task.id for task in waiting}):
                    self._display.note(f"#{id} doesn't wait for the check {self._check}")
                await self._check_tasks(waiting)
                return
            async with self._conversation.watch(view="list") as lists:
                async for tasks in lists:
                    await self._check_tasks([task for task in tasks if self._is_mine(task)])
        except asyncio.CancelledError:
            if not self._stopped:
                raise

    def stop(self) -> None:
        """Stop without a result. The task whose check is running continues to wait at its gate."""
        self._stopped = True
        if self._child is not None:
            self._child.stop()
        elif self._running is not None:
            self._running.cancel()

    def _is_mine(self, task: Task) -> bool:
        if self._tasks is not None and task.id not in self._tasks:
            return False
        return task.waits_for == "check" and task.gate is not None and task.gate.check == self._check

    async def _check_tasks(self, waiting: list[Task]) -> None:
        for listed in waiting:
            try:
                task = await self._conversation.get(listed.id)
                while self._is_mine(task) and not self._stopped:
                    if await self._check_task(task):
                        break
                    task = await self._conversation.get(task.id)
            except NotFound:
                continue  # the task was deleted
        if self._stopped and self._running is not None:
            self._running.cancel()

    async def _check_task(self, task: Task) -> bool:
        """Check a task and report the result; return False if the task has changed since."""
        self._display.show_start(task)
        reason = await self._run_check(task)
        if reason is None:
            return True
        try:
            if reason:
                await self._conversation.reject(task.id, reason, waits_for="check", version=task.version)
            else:
                await self._conversation.approve(task.id, waits_for="check", version=task.version)
        except RequestRefused:
            self._display.note(f"#{task.id} changed during the check")
            return False
        stored.record_tasks(self._conversation.id, [task.id])
        self.failed += bool(reason)
        self.passed += not reason
        self._display.show_end(task, "failed" if reason else "completed", reason or f"{self._check} passed")
        return True

    async def _run_check(self, task: Task) -> str | None:
        """Run the command and return why the task doesn't pass; empty if it does, None if the check was stopped."""
        env = {**self._env, **build_environment(task, PUNCHLIST_CHECK=self._check)}
        try:
            words = self._command.build_words(task)
            self._child = Child(
                words,
                env,
                msgspec.json.encode(task) + b"\n",
                lambda _stream, text: self._display.show_output(task, text),
            )
        except (UnusableText, ValueError) as error:
            return f"{self._check}: {error}"
        except OSError as error:
            raise StateError(f"can't start {self._command.words[0]}: {error.strerror}; no task was touched") from error
        try:
            ending = await self._child.wait(self._timeout_ms / 1000)
        finally:
            self._child = None
        if self._stopped:
            return None
        passed = ending.code == 0 and not ending.timed_out
        return "" if passed else f"{self._check}: {ending.format_reason(self._timeout_ms)}"
