"""Calls about the tasks of a conversation, declared once for both clients; see `punchlist.calls.call`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar, Unpack

from msgspec import UNSET, UnsetType

from punchlist.calls.call import Call, TaskConfirming, TaskWrite, Write, ids_of, itself, new_tasks
from punchlist.calls.cursor import TaskList
from punchlist_schemas import params as p
from punchlist_schemas import results as r
from punchlist_schemas.params import NewTask
from punchlist_schemas.things import (
    Gate,
    Link,
    Priority,
    Status,
    Task,
    Waits,
)

S = TypeVar("S")


class TaskCalls:
    """Calls about tasks. `ConversationCalls` adds those about the list as a whole."""

    def __init__(self, conversation: str, actor: str | None = None) -> None:
        self.id = conversation
        self.actor = actor

    def _write(self, params: Callable[..., S], write: Write, **members: Any) -> S:
        if self.actor is not None:
            members.setdefault("actor", self.actor)
        return params(conversation=self.id, **{**members, **write})

    def add(  # noqa: PLR0913 - the members of a task
        self,
        title: str,
        *,
        description: str = "",
        status: Status = "pending",
        priority: Priority = "normal",
        active_form: str = "",
        owner: str = "",
        parent: str | None = None,
        blocked_by: Iterable[str] = (),
        blocks: Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
        result_summary: str = "",
        fail_reason: str = "",
        due: int | None = None,
        not_before: int | None = None,
        due_day: str | None = None,
        not_before_day: str | None = None,
        labels: Iterable[str] = (),
        links: Iterable[Link] = (),
        estimate_ms: int | None = None,
        gate: Gate | None = None,
        before: str | None = None,
        after: str | None = None,
        keep_equal: bool = False,
        **write: Unpack[Write],
    ) -> Call[Task]:
        """Add a task at the end of the list, or at the position given by `before` or `after`.

        Args:
            title: One line of 1 to 500 characters.
            description: Text of up to 64 Ki characters.
            status: Initial status.
            priority: `low`, `normal`, `high` or `urgent`.
            active_form: Text to show while the task is in progress ("Writing the copy").
            owner: Name of the owner. A pending task with an owner is reserved for that owner.
            parent: Id of the parent task.
            blocked_by: Ids of the tasks that have to be completed first.
            blocks: Ids of the tasks that this task blocks.
            metadata: Any JSON object.
            result_summary: Result of a task that is already completed.
            fail_reason: Failure reason of a task that has already failed.
            due: Due date in milliseconds since 1970 UTC. It doesn't affect whether the task is ready.
            not_before: End of a deferral in milliseconds since 1970 UTC. The task is not ready before this time.
            due_day: Due date without a time, such as "2026-12-24", instead of `due`.
            not_before_day: Day on which a deferral ends. `not_before` is then the start of that day in the caller's
                time zone.
            labels: Up to 32 labels without commas.
            links: Links to a URL, a location in a file, a commit or another task.
            estimate_ms: Estimated work in milliseconds.
            gate: Check or approval that the task needs before it is completed.
            before: Id of the task to insert this one before.
            after: Id of the task to insert this one after.
            keep_equal: If an open task with the same title and parent exists, return that task instead of adding one.
            **write: See `Write`.

        Raises:
            NotFound: The list has no task with one of these ids.
            DependencyCycle: The dependencies would close a cycle.
        """
        members = {
            "title": title,
            "description": description,
            "status": status,
            "priority": priority,
            "active_form": active_form,
            "owner": owner,
            "parent": parent,
            "blocked_by": ids_of(blocked_by),
            "blocks": ids_of(blocks),
            "metadata": dict(metadata or {}),
            "result_summary": result_summary,
            "fail_reason": fail_reason,
            "due": due,
            "not_before": not_before,
            "due_day": due_day,
            "not_before_day": not_before_day,
            "labels": ids_of(labels),
            "links": tuple(links),
            "estimate_ms": estimate_ms,
            "gate": gate,
            "before": before,
            "after": after,
            "keep_equal": keep_equal,
        }
        return Call("task.add", self._write(p.TaskAdd, write, **members), attrgetter("task"))

    def add_many(
        self, tasks: Iterable[NewTask | str], *, keep_equal: bool = False, **write: Unpack[Write]
    ) -> Call[tuple[Task, ...]]:
        """Add many tasks, with the dependencies between them: all or none.

        Args:
            tasks: 1 to 10,000 new tasks. A string is the title of a task. A task's `ref` is a temporary id that others
                can use in `blocked_by` and `parent`.
            keep_equal: Instead of adding a task, use an open task of the list with the same title and parent, if one
                exists.
            **write: See `Write`.
        """
        members = {"tasks": new_tasks(tasks), "keep_equal": keep_equal}
        return Call("task.add_many", self._write(p.TaskAddMany, write, **members), attrgetter("tasks"))

    def get(self, task: str, *, min_version: int | None = None) -> Call[Task]:
        """Return one task. For `min_version` see `list`.

        Raises:
            NotFound: The list has no such task.
            VersionConflict: The list did not reach `min_version` in time.
        """
        params = p.TaskGet(conversation=self.id, task=task, min_version=min_version)
        return Call("task.get", params, attrgetter("task"))

    def explain(
        self, task: str | None = None, *, owner: str = "", min_version: int | None = None
    ) -> Call[r.TaskExplainResult]:
        """Explain why a task can't be started or completed now; without `task`, why no task of the list is available.

        Args:
            task: Id of the task.
            owner: Explain for this owner. Tasks reserved for it count as ready.
            min_version: See `list`.

        Raises:
            NotFound: The list has no such task.
        """
        params = p.TaskExplain(conversation=self.id, task=task, owner=owner, min_version=min_version)
        return Call("task.explain", params, itself)

    def list(  # noqa: PLR0913 - the filters of the wire
        self,
        *,
        status: Status | Iterable[Status] | None = None,
        owner: str | None = None,
        ready: bool | None = None,
        limit: int | None = None,
        offset: int = 0,
        at_version: int | None = None,
        min_version: int | None = None,
        label: str | Iterable[str] | None = None,
        parent: str | None = None,
        due_before: int | None = None,
        due_by: str | None = None,
        text: str | None = None,
        waits_for: Waits | None = None,
        sort: p.Sort | None = None,
    ) -> Call[TaskList]:
        """Return the tasks in list order, with `counts`, `version`, `seq` and `total` as attributes.

        Args:
            status: Return only tasks with one of these statuses.
            owner: Return only tasks of this owner.
            ready: Return only tasks that can be started now (True), or only those that can't (False).
            limit: Maximum number of tasks, 1 to 10,000; by default all.
            offset: Number of tasks to skip first.
            at_version: Return the list as it was right after this version.
            min_version: Wait up to 5 seconds for the list to reach this version on this machine. Pass the version
                returned on another machine to see that machine's changes to a shared list.
            label: Return only tasks with this label, or with all of these labels.
            parent: Return only children of this task.
            due_before: Return only tasks due before this time, in milliseconds since 1970 UTC.
            due_by: Return only tasks due on this day or earlier, such as "2026-12-24". Together with `due_before`,
                `due_by` applies to due days and `due_before` to due times.
            text: Return only tasks with these words in title, description, labels or notes, ignoring case.
            waits_for: Return only completed tasks that wait for a `check` or a `yes`.
            sort: Sort by `due`, `priority`, `created`, `updated` or `title` instead of list order.

        Raises:
            VersionConflict: The list did not reach `min_version` in time.
        """
        statuses: Any = status if status is None or isinstance(status, str) else tuple(status)
        params = p.TaskList(
            conversation=self.id,
            status=statuses,
            owner=owner,
            ready=ready,
            limit=limit,
            offset=offset,
            at_version=at_version,
            min_version=min_version,
            label=label if label is None or isinstance(label, str) else tuple(label),
            parent=parent,
            due_before=due_before,
            due_by=due_by,
            text=text,
            waits_for=waits_for,
            sort=sort,
        )
        return Call("task.list", params, TaskList.of)

    def edit(  # noqa: PLR0913 - the members of a task
        self,
        task: str,
        *,
        title: str | UnsetType = UNSET,
        description: str | None | UnsetType = UNSET,
        priority: Priority | None | UnsetType = UNSET,
        active_form: str | None | UnsetType = UNSET,
        owner: str | None | UnsetType = UNSET,
        parent: str | None | UnsetType = UNSET,
        metadata: Mapping[str, Any] | None | UnsetType = UNSET,
        due: int | None | UnsetType = UNSET,
        not_before: int | None | UnsetType = UNSET,
        due_day: str | None | UnsetType = UNSET,
        not_before_day: str | None | UnsetType = UNSET,
        labels: Iterable[str] | None | UnsetType = UNSET,
        links: Iterable[Link] | None | UnsetType = UNSET,
        estimate_ms: int | None | UnsetType = UNSET,
        gate: Gate | None | UnsetType = UNSET,
        add_labels: Iterable[str] = (),
        remove_labels: Iterable[str] = (),
        add_blocked_by: Iterable[str] = (),
        remove_blocked_by: Iterable[str] = (),
        add_blocks: Iterable[str] = (),
        remove_blocks: Iterable[str] = (),
        fence: int | None = None,
        confirm: str | None = None,
        **write: Unpack[TaskConfirming],
    ) -> Call[Task]:
        """Change a task. Omitted values are kept, and None clears a value. The other parameters are those of `add`.

        Args:
            task: Id of the task.
            metadata: Merged into the existing metadata; a value of None deletes a key.
            labels: Replaces all labels; `add_labels` and `remove_labels` keep the others.
            fence: Number of the claim that must be in force.
            confirm: Token; see `delete`.
            **write: See `TaskWrite` and `Confirming`.

        Raises:
            NotFound: The list has no such task.
            DependencyCycle: The dependencies would close a cycle.
            LeaseHeld: A claim other than `fence` is in force.
            LeaseLost: `fence` was passed, and the task is not claimed.
        """
        members = {
            "confirm": confirm,
            "title": title,
            "description": description,
            "priority": priority,
            "active_form": active_form,
            "owner": owner,
            "parent": parent,
            "metadata": dict(metadata) if isinstance(metadata, Mapping) else metadata,
            "due": due,
            "not_before": not_before,
            "due_day": due_day,
            "not_before_day": not_before_day,
            "labels": ids_of(labels) if not isinstance(labels, UnsetType) and labels is not None else labels,
            "links": tuple(links) if not isinstance(links, UnsetType) and links is not None else links,
            "estimate_ms": estimate_ms,
            "gate": gate,
            "add_labels": ids_of(add_labels),
            "remove_labels": ids_of(remove_labels),
            "add_blocked_by": ids_of(add_blocked_by),
            "remove_blocked_by": ids_of(remove_blocked_by),
            "add_blocks": ids_of(add_blocks),
            "remove_blocks": ids_of(remove_blocks),
            "fence": fence,
        }
        return Call("task.edit", self._write(p.TaskEdit, write, task=task, **members), attrgetter("task"))

    def approve(  # noqa: PLR0913 - the parameters of the wire
        self,
        task: str,
        text: str = "",
        *,
        waits_for: Waits = "yes",
        accept: bool = True,
        version: int | None = None,
        **write: Unpack[Write],
    ) -> Call[r.SetStatusResult]:
        """Approve a completed task that waits for approval, or report that its check has passed.

        Args:
            task: Id of the task.
            text: Text of a note; with `accept=False`, the reason.
            waits_for: `yes` to approve the task, `check` to report the result of its check.
            accept: False makes the task pending again; see also `reject`.
            version: Raise `VersionConflict` unless the task still has this version.
            **write: See `Write`.

        Raises:
            IllegalTransition: The task is not waiting for this.
            Forbidden: Another actor has to approve.
        """
        members = {"task": task, "waits_for": waits_for, "accept": accept, "text": text, "version": version}
        return Call("task.approve", self._write(p.TaskApprove, write, **members), itself)

    def reject(
        self, task: str, reason: str, *, waits_for: Waits = "yes", version: int | None = None, **write: Unpack[Write]
    ) -> Call[r.SetStatusResult]:
        """Reject a completed task that waits for approval or a check. It becomes pending again, with this reason."""
        return self.approve(task, reason, waits_for=waits_for, accept=False, version=version, **write)

    def note(self, task: str, text: str, **write: Unpack[Write]) -> Call[Task]:
        """Add a note of up to 8,192 characters to a task. Its actor and time are recorded. Notes can't be changed.

        Raises:
            NotFound: The list has no such task.
            LimitExceeded: The task has 200 notes, or its notes contain 256 Ki characters.
        """
        return Call("task.note", self._write(p.TaskNote, write, task=task, text=text), attrgetter("task"))

    def set_status(
        self,
        task: str,
        status: Status,
        *,
        result_summary: str | None = None,
        fail_reason: str | None = None,
        fence: int | None = None,
        force: bool = False,
        **write: Unpack[TaskWrite],
    ) -> Call[r.SetStatusResult]:
        """Set the status of a task. Calls to `start`, `complete` and similar methods are more readable.

        Setting the current status again changes nothing and is not an error.

        Args:
            task: Id of the task.
            status: The new status.
            result_summary: Result of a completed task.
            fail_reason: Reason why the task failed.
            fence: Number of the claim that must be in force.
            force: Complete the task even if it has unfinished children.
            **write: See `TaskWrite`.

        Raises:
            Blocked: The task has open blockers, or is started while it has unfinished children.
            IllegalTransition: The task can't change to this status, or unfinished children (`open_children`) prevent
                its completion.
            LeaseHeld: A claim other than `fence` is in force, or another connection has claimed the task.
            LeaseLost: `fence` was passed, and the task is not claimed.
        """
        texts = {"result_summary": result_summary, "fail_reason": fail_reason}
        params = self._write(p.TaskSetStatus, write, task=task, status=status, fence=fence, force=force, **texts)
        return Call("task.set_status", params, itself)

    def start(self, task: str, **write: Unpack[TaskWrite]) -> Call[r.SetStatusResult]:
        """Start a task: set it in progress. Raises `Blocked` if other tasks have to be completed first."""
        return self.set_status(task, "in_progress", **write)

    def complete(
        self,
        task: str,
        result: str | None = None,
        *,
        fence: int | None = None,
        force: bool = False,
        **write: Unpack[TaskWrite],
    ) -> Call[r.SetStatusResult]:
        """Complete a task and record its `result`. With `force`, do so even if it has unfinished children.

        The returned value contains `next_task`, the `unblocked` ids, and the number of `remaining` tasks.
        """
        return self.set_status(task, "completed", result_summary=result, fence=fence, force=force, **write)

    def fail(
        self, task: str, reason: str | None = None, *, fence: int | None = None, **write: Unpack[TaskWrite]
    ) -> Call[r.SetStatusResult]:
        """Mark a task as failed and record the `reason`."""
        return self.set_status(task, "failed", fail_reason=reason, fence=fence, **write)

    def pause(self, task: str, **write: Unpack[TaskWrite]) -> Call[r.SetStatusResult]:
        """Pause a task."""
        return self.set_status(task, "paused", **write)

    def resume(self, task: str, **write: Unpack[TaskWrite]) -> Call[r.SetStatusResult]:
        """Resume a paused task: set it in progress again."""
        return self.set_status(task, "in_progress", **write)

    def reopen(self, task: str, **write: Unpack[TaskWrite]) -> Call[r.SetStatusResult]:
        """Make a task pending again, regardless of its status."""
        return self.set_status(task, "pending", **write)

    def move(
        self,
        task: str,
        *,
        before: str | None = None,
        after: str | None = None,
        to_end: bool = False,
        **write: Unpack[TaskWrite],
    ) -> Call[Task]:
        """Move a task before `before`, after `after`, or to the end. Pass exactly one of the three."""
        members = {"task": task, "before": before, "after": after, "to_end": to_end}
        return Call("task.move", self._write(p.TaskMove, write, **members), attrgetter("task"))

    def take(  # noqa: PLR0913 - the parameters of the wire
        self,
        owner: str,
        task: str | None = None,
        *,
        also: Sequence[str] = (),
        count: int = 1,
        lease_ms: int = 60_000,
        wait_ms: int = 0,
        keep: bool = False,
        **write: Unpack[Write],
    ) -> Call[r.ClaimResult]:
        """Claim a task: the one with id `task`, or the next ready one.

        `claim` and `work` also renew the claim and finish the task.

        Args:
            owner: Name of the worker, recorded as the task's owner.
            task: Id of the task; by default the next ready one.
            also: Up to 8 additional names whose reserved tasks may be claimed.
            count: Maximum number of ready tasks to claim, 1 to 100.
            lease_ms: Milliseconds the claim lasts after this connection's last call or a renewal, from 1 second to 24
                hours.
            wait_ms: Milliseconds to wait for a task, up to 24 hours. If none becomes available, `task` of the result is
                None.
            keep: Keep the claim when the connection closes, until `lease_ms` has passed.
            **write: See `Write`.

        Raises:
            LeaseHeld: Another owner has claimed the task, or it is reserved.
            Blocked: The task has open blockers.
            IllegalTransition: The task is not pending.
        """
        how = {"also": tuple(also), "lease_ms": lease_ms, "wait_ms": wait_ms, "keep": keep}
        return Call("task.claim", self._write(p.TaskClaim, write, owner=owner, task=task, count=count, **how), itself)

    def renew(
        self, task: str, owner: str, *, lease_ms: int | None = None, fence: int | None = None, **write: Unpack[Write]
    ) -> Call[Task]:
        """Renew a claim for `lease_ms` milliseconds from now; by default, for the `lease_ms` of the claim.

        Raises:
            LeaseHeld: Another owner has claimed the task, or a claim other than `fence` is in force.
            LeaseLost: The task is not claimed.
        """
        members = {"task": task, "owner": owner, "lease_ms": lease_ms, "fence": fence}
        return Call("task.renew", self._write(p.TaskRenew, write, **members), attrgetter("task"))

    def release(self, task: str, owner: str, *, fence: int | None = None, **write: Unpack[Write]) -> Call[Task]:
        """Release a claimed task so that others can claim it. Raises the same errors as `renew`."""
        params = self._write(p.TaskRelease, write, task=task, owner=owner, fence=fence)
        return Call("task.release", params, attrgetter("task"))

    def delete(self, *tasks: str, confirm: str | None = None, **write: Unpack[TaskConfirming]) -> Call[tuple[str, ...]]:
        """Delete tasks, all or none, and return their ids.

        With `ask=True`, or on a connection with `confirm=True`, the first call raises `ConfirmationRequired`. Repeat it
        with `confirm=error.token`.
        """
        members: dict[str, Any] = {"task": tasks[0]} if len(tasks) == 1 else {"tasks": tasks}
        return Call("task.delete", self._write(p.TaskDelete, write, confirm=confirm, **members), attrgetter("deleted"))
