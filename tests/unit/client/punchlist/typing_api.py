"""Checked by the type checker but never run: the types that an editor shows for the library's values."""

from typing import assert_type

import punchlist
from punchlist import Change, NewTask, SetStatusResult, Task, TaskList


def blocking() -> None:
    with punchlist.connect(name="editor", timeout_s=5.0) as client:
        plan = client.conversation("website")
        assert_type(plan.add("one", priority="high", blocked_by=["1"], key="k"), Task)
        assert_type(plan.add_many([NewTask(title="a", ref="x"), "b"]), tuple[Task, ...])
        assert_type(plan.list(status="pending"), TaskList)
        assert_type(plan.complete("1", result="done", expect_version=3), SetStatusResult)
        assert_type(plan.complete("1").next_task, Task | None)
        assert_type(plan.delete("1", "2"), tuple[str, ...])
        assert_type(plan.wait(lambda tasks: tasks.remaining == 0, timeout_s=1.0), TaskList)
        for change in plan.watch(after=3):
            assert_type(change, Change)
        for tasks in plan.watch(view="list"):
            assert_type(tasks, TaskList)
            for task in tasks:
                assert_type(task, Task)
        plan.add(3)  # pyright: ignore[reportArgumentType]
        plan.add("one", priority="highest")  # pyright: ignore[reportArgumentType]
        plan.add("one", colour="red")  # pyright: ignore[reportCallIssue]
        plan.watch(view="list", after=3)  # pyright: ignore[reportArgumentType]
        punchlist.conect()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        try:
            plan.start("1")
        except punchlist.Blocked as error:
            assert_type(error.blockers, list[dict[str, str]])


async def asynchronous() -> None:
    async with punchlist.connect_async(user="ann") as client:
        plan = client.conversation()
        assert_type(await plan.add("one", metadata={"k": 1}), Task)
        assert_type(await plan.list(), TaskList)
        assert_type(await plan.fail("1", reason="no"), SetStatusResult)
        async for change in plan.watch():
            assert_type(change, Change)
        async with plan.watch(view="list") as lists:
            assert_type(await lists.next(timeout_s=1), TaskList)
        await plan.start("1", owner="me")  # pyright: ignore[reportCallIssue]
