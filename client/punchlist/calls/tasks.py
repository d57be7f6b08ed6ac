"""Calls about the tasks of a conversation, once for both clients: see `punchlist.calls.call`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar, Unpack

from msgspec import UNSET, UnsetType

from punchlist.calls.call import Call, Confirming, Write, ids_of, itself, new_tasks
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
    """The calls about tasks. `ConversationCalls` adds those about the list as a whole."""

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
        """Adds a task at the end of the list, or where `before` or `after` says.

        Args:
            title: One line of 1 to 500 characters.
            description: Free text up to 64 Ki characters.
            status: Its first status.
            priority: `low`, `normal`, `high` or `urgent`.
            active_form: What to show while it is in progress ("Writing the copy").
            owner: Who works on it.
            parent: Id of the task it is a part of.
            blocked_by: Ids of the tasks that have to be completed first.
            blocks: Ids of the tasks that have to wait for this one.
            metadata: Anything that JSON can hold.
            result_summary: What came of it, if it is completed already.
            fail_reason: Why it failed, if it has failed already.
            due: When it should be completed, in milliseconds since 1970 UTC. Nothing follows from it.
            not_before: The task is deferred: it is not ready before this time.
            due_day: The day by which it should be completed, such as "2026-12-24", in place of `due`.
            not_before_day: The day until which it is deferred; `not_before` is then when that day begins here.
            labels: Up to 32 words to find it by, each without commas.
            links: Where it leads: an address, a place in a file, a commit, another task.
            estimate_ms: How much work it is thought to be, in milliseconds.
            gate: What it needs before it counts as completed.
            before: Id of the task to stand in front of.
            after: Id of the task to stand behind.
            keep_equal: Return the open task with this title and parent instead, if there is one.
            **write: `key`, `expect_version`, `actor`.

        Raises:
            NotFound: An id is unknown.
            DependencyCycle: The edges would close a cycle.
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
        """Adds many tasks with the edges between them, all or none. A string is a task of that title.

        With `ref` a new task gets a temporary name, which others may use in `blocked_by` and `parent`. With
        `keep_equal`, an open task of the list with the same title and parent stands for a new one.
        """
        members = {"tasks": new_tasks(tasks), "keep_equal": keep_equal}
        return Call("task.add_many", self._write(p.TaskAddMany, write, **members), attrgetter("tasks"))

    def get(self, task: str, *, min_version: int | None = None) -> Call[Task]:
        """One task, or `NotFound`; as to `min_version` see `list`."""
        params = p.TaskGet(conversation=self.id, task=task, min_version=min_version)
        return Call("task.get", params, attrgetter("task"))

    def explain(
        self, task: str | None = None, *, owner: str = "", min_version: int | None = None
    ) -> Call[r.TaskExplainResult]:
        """Why a task can't be started or completed now; without `task`, why the list gives out none.

        With `owner`, what is reserved for that owner counts as ready. As to `min_version` see `list`.

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
        """The tasks in their order: a list that also has `counts`, `version`, `seq` and `total`.

        Args:
            status: Keep these statuses.
            owner: Keep this owner's.
            ready: Keep those that could be started now (True) or not (False).
            limit: At most so many.
            offset: Skip so many first.
            at_version: As the list was right after that version.
            min_version: Wait until the list has this version here, five seconds at most: with a version that another
                machine was told, what it did to a shared list is seen here, too.
            label: Keep those that have this label, or all of these.
            parent: Keep the parts of this task.
            due_before: Keep those that are due before this time, in milliseconds since 1970 UTC.
            due_by: Keep those that are due on a day up to this one, such as "2026-12-24". With `due_before` as well,
                that is for those that are due at a time.
            text: Keep those with these words in title, description, labels or notes, in any case.
            waits_for: Keep those that were completed and wait for a `check` or a `yes`.
            sort: By this instead of the list's own order: `due`, `priority`, `created`, `updated` or `title`.

        Raises:
            VersionConflict: `min_version` did not come.
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
        **write: Unpack[Confirming],
    ) -> Call[Task]:
        """Sets members and edges of a task. None clears one; `metadata` merges, and None deletes a key of it.

        `labels` sets all of them, `add_labels` and `remove_labels` leave the others as they are.

        With `fence` it is refused with `LeaseHeld` or `LeaseLost` unless the claim of that number is in force. As to
        `confirm` see `delete`.
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
        """Says yes to a completed task that waits for it, or that its check has passed; `text` becomes a note.

        Without `accept` it says no: the task is pending again, and `text` is the reason; `reject` reads better.
        With `version` it is refused with `VersionConflict` unless the task still has that version.

        Raises:
            IllegalTransition: The task does not wait for this.
            Forbidden: The yes is somebody else's to give.
        """
        members = {"task": task, "waits_for": waits_for, "accept": accept, "text": text, "version": version}
        return Call("task.approve", self._write(p.TaskApprove, write, **members), itself)

    def reject(
        self, task: str, reason: str, *, waits_for: Waits = "yes", version: int | None = None, **write: Unpack[Write]
    ) -> Call[r.SetStatusResult]:
        """Says no to a completed task that waits for a yes or a check: it is pending again, with this reason."""
        return self.approve(task, reason, waits_for=waits_for, accept=False, version=version, **write)

    def note(self, task: str, text: str, **write: Unpack[Write]) -> Call[Task]:
        """Adds a note of up to 8,192 characters to a task, with actor and time. It stays as it was written.

        Raises:
            NotFound: The list has no such task.
            LimitExceeded: The task has 200 notes, or 256 Ki characters of them.
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
        **write: Unpack[Write],
    ) -> Call[r.SetStatusResult]:
        """Moves a task through its life; `start`, `complete` and the others read better.

        Repeating the present status changes nothing and is no error. With `force` a task is completed without its
        unfinished children.

        Raises:
            Blocked: It has open blockers, or is to be started and has unfinished children.
            IllegalTransition: The status can't go there from here, or `open_children` keep it from being completed.
            LeaseHeld: `fence` is not the number of the claim in force, or another connection holds the task.
            LeaseLost: `fence` was given and nobody holds the task.
        """
        texts = {"result_summary": result_summary, "fail_reason": fail_reason}
        params = self._write(p.TaskSetStatus, write, task=task, status=status, fence=fence, force=force, **texts)
        return Call("task.set_status", params, itself)

    def start(self, task: str, **write: Unpack[Write]) -> Call[r.SetStatusResult]:
        """Takes up a task: it is in progress. `Blocked` if others have to be completed first."""
        return self.set_status(task, "in_progress", **write)

    def complete(
        self,
        task: str,
        result: str | None = None,
        *,
        fence: int | None = None,
        force: bool = False,
        **write: Unpack[Write],
    ) -> Call[r.SetStatusResult]:
        """Completes a task, saying in `result` what came of it; with `force` also if it has unfinished children.

        The answer tells what comes next: `next_task`, the ids that are `unblocked`, how many are `remaining`.
        """
        return self.set_status(task, "completed", result_summary=result, fence=fence, force=force, **write)

    def fail(
        self, task: str, reason: str | None = None, *, fence: int | None = None, **write: Unpack[Write]
    ) -> Call[r.SetStatusResult]:
        """Gives a task up, saying in `reason` why."""
        return self.set_status(task, "failed", fail_reason=reason, fence=fence, **write)

    def pause(self, task: str, **write: Unpack[Write]) -> Call[r.SetStatusResult]:
        """Lays a task aside."""
        return self.set_status(task, "paused", **write)

    def resume(self, task: str, **write: Unpack[Write]) -> Call[r.SetStatusResult]:
        """Goes on with a paused task: it is in progress again."""
        return self.set_status(task, "in_progress", **write)

    def reopen(self, task: str, **write: Unpack[Write]) -> Call[r.SetStatusResult]:
        """Makes a task pending again, whatever it was."""
        return self.set_status(task, "pending", **write)

    def move(
        self,
        task: str,
        *,
        before: str | None = None,
        after: str | None = None,
        to_end: bool = False,
        **write: Unpack[Write],
    ) -> Call[Task]:
        """Moves a task in front of `before`, behind `after`, or to the end: exactly one of the three."""
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
        """Claims a task: the named one, or the next ready one. `claim` and `work` also renew and finish it.

        Args:
            owner: Who takes it.
            task: Its id; by default the next ready one.
            also: Further names whose reserved tasks it may get.
            count: Up to so many of the next ready ones.
            lease_ms: How long the claim lasts after the last sign of life: 1 second to 24 hours.
            wait_ms: How long to wait for one; then the answer's `task` is None.
            keep: Keep it when the connection closes; then only `lease_ms` counts.

        Raises:
            LeaseHeld: Somebody else has the named task.
            Blocked: The named task has open blockers.
            IllegalTransition: The named task is not pending.
        """
        how = {"also": tuple(also), "lease_ms": lease_ms, "wait_ms": wait_ms, "keep": keep}
        return Call("task.claim", self._write(p.TaskClaim, write, owner=owner, task=task, count=count, **how), itself)

    def renew(
        self, task: str, owner: str, *, lease_ms: int | None = None, fence: int | None = None, **write: Unpack[Write]
    ) -> Call[Task]:
        """Keeps a claim in force for `lease_ms` from now, by default for as long as it was claimed.

        Raises:
            LeaseHeld: Another owner, or another claim than that of number `fence`, has it; `LeaseLost`: nobody has.
        """
        members = {"task": task, "owner": owner, "lease_ms": lease_ms, "fence": fence}
        return Call("task.renew", self._write(p.TaskRenew, write, **members), attrgetter("task"))

    def release(self, task: str, owner: str, *, fence: int | None = None, **write: Unpack[Write]) -> Call[Task]:
        """Gives a claimed task back, for another to claim. Raises as `renew` does."""
        params = self._write(p.TaskRelease, write, task=task, owner=owner, fence=fence)
        return Call("task.release", params, attrgetter("task"))

    def delete(self, *tasks: str, confirm: str | None = None, **write: Unpack[Confirming]) -> Call[tuple[str, ...]]:
        """Deletes tasks, all or none, and returns their ids.

        On a connection made with `confirm=True`, or with `ask=True`, the first call raises `ConfirmationRequired`;
        repeat it with `confirm=error.token`.
        """
        members: dict[str, Any] = {"task": tasks[0]} if len(tasks) == 1 else {"tasks": tasks}
        return Call("task.delete", self._write(p.TaskDelete, write, confirm=confirm, **members), attrgetter("deleted"))
