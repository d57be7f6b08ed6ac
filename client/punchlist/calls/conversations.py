"""Calls about a conversation as a whole, declared once for both clients; see `punchlist.calls.call`."""

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any, Literal, Unpack

from punchlist.calls.call import Call, Confirming, Write, itself, new_tasks, to_task_change
from punchlist.calls.tasks import TaskCalls
from punchlist_schemas import params as p
from punchlist_schemas import results as r
from punchlist_schemas.changes import ListApply
from punchlist_schemas.events import Recorded
from punchlist_schemas.params import NewTask
from punchlist_schemas.spaces import (
    LeftResult,
    ListJoin,
    ListLeave,
    ListShare,
    SharedResult,
    SpaceRepair,
    SpaceRepaired,
)
from punchlist_schemas.things import Conversation as ConversationThing
from punchlist_schemas.things import (
    ListKind,
    Message,
    Metadata,
    SettingsPatch,
    Task,
)


class ConversationCalls(TaskCalls):
    """Calls about one conversation and its tasks. The conversations of both clients have these methods."""

    def apply(
        self,
        changes: Iterable[Call[Any] | Mapping[str, Any]],
        *,
        confirm: str | None = None,
        **write: Unpack[Confirming],
    ) -> Call[r.ApplyResult]:
        """Make several changes to tasks in one call, all or none. Each applies to the result of the previous ones.

        Args:
            changes: Calls built by `calls` of this conversation, such as `plan.calls.edit("3", title="x")`: `add`,
                `edit`, `set_status`, `move`, `delete` or `note`. Or their JSON form, `{"method": "task.edit", …}`,
                where an added task may have a `ref` that later changes can use as its id.
            confirm: Token; see `delete`. Connections with `confirm=True` need it if tasks are deleted.
            **write: See `Write` and `Confirming`. These apply to all changes together.

        Raises:
            RequestRefused: The error of the first change that can't be made; `data["change"]` is its index.
        """
        members = {"changes": tuple(map(to_task_change, changes)), "confirm": confirm}
        return Call("list.apply", self._write(ListApply, write, **members), itself)

    def replace(
        self,
        tasks: Iterable[NewTask | str],
        *,
        keep_unfinished: bool = True,
        confirm: str | None = None,
        **write: Unpack[Confirming],
    ) -> Call[tuple[Task, ...]]:
        """Replace the tasks of the list. Existing tasks with the same titles are kept and updated.

        Args:
            tasks: The new tasks. A string is the title of a task.
            keep_unfinished: Keep other unfinished tasks, and put them before the new ones.
            confirm: Token; see `delete`.
            **write: See `Write` and `Confirming`.
        """
        members = {"tasks": new_tasks(tasks), "keep_unfinished": keep_unfinished, "confirm": confirm}
        return Call("list.replace", self._write(p.ListReplace, write, **members), attrgetter("tasks"))

    def share(self, space: str, *, repair: bool = False) -> Call[SharedResult]:
        """Share the list in a space, with its whole history. Repeating the call resumes an interrupted one.

        Args:
            space: Name of the space.
            repair: For a list that is already shared: restore the changes that the space has lost from this machine's
                copy.

        Raises:
            Unreachable: The space can't be reached.
            Forbidden: This machine may not write to the space, or the space already has a list of this name. With
                `repair`: another machine has a more complete copy.
            Diverged: The space has different changes than the ones to restore.
        """
        return Call("list.share", ListShare(conversation=self.id, space=space, repair=repair), itself)

    def repair_space(self, space: str, *, remove: Iterable[str] = ()) -> Call[SpaceRepaired]:
        """Find the posts of the list that no machine can apply, and remove some of them.

        Args:
            space: Name of the space.
            remove: Ids of the posts to remove from the space.

        Raises:
            Unreachable: The space can't be reached.
            Forbidden: This machine's credentials are not those of a keeper.
            NotFound: This machine has no such space, or the space has no such list.
        """
        return Call("space.repair", SpaceRepair(conversation=self.id, space=space, remove=tuple(remove)), itself)

    def join(self, space: str) -> Call[SharedResult]:
        """Join the list of this name in a space, with its whole history. Repeating the call resumes an interrupted one.

        Raises:
            NotFound: The space has no such list.
            Forbidden: This machine has a list of this name that is not empty.
        """
        return Call("list.join", ListJoin(conversation=self.id, space=space), itself)

    def leave(self, *, keep_as: str | None = None) -> Call[LeftResult]:
        """Stop following a shared list. This machine's copy stays and becomes read-only.

        Args:
            keep_as: Name of a new local list that starts with the list's history.
        """
        return Call("list.leave", ListLeave(conversation=self.id, keep_as=keep_as), itself)

    def clear(self, *, confirm: str | None = None, **write: Unpack[Confirming]) -> Call[int]:
        """Remove all tasks and return how many. Numbering restarts at 1. For `confirm` see `delete`."""
        return Call("list.clear", self._write(p.ListClear, write, confirm=confirm), attrgetter("cleared"))

    def end_turn(self, **write: Unpack[Write]) -> Call[int]:
        """End a turn: clear the list if all tasks are finished and its `auto_clear` is `idle`.

        Returns the number of tasks removed.
        """
        return Call("turn.end", self._write(p.TurnEnd, write), attrgetter("cleared"))

    def undo(  # noqa: PLR0913 - one parameter for each member of the wire
        self,
        count: int | None = None,
        *,
        of: str | None = None,
        actor: str | None = None,
        preview: bool = False,
        call: int | None = None,
        redo: bool = False,
        to_version: int | None = None,
        whole: bool = False,
        claims: bool = False,
        also: tuple[str, ...] = (),
        key: str | None = None,
        expect_version: int | None = None,
    ) -> Call[tuple[str, ...]]:
        """Undo the latest `count` calls (default: 1) and return a readable line for each change.

        Args:
            count: Number of calls.
            of: Undo only calls by this actor; `count` then defaults to all of them.
            actor: Actor recorded with the undo. Without `of`, `call` or `to_version`, only this actor's calls are
                undone.
            preview: Return what would change, without changing anything.
            call: Undo the single call that created this version, by any actor.
            redo: Undo undos instead of other calls.
            to_version: Restore the list as it was right after this version.
            whole: Raise `UndoConflict` unless everything can be undone. Otherwise, changes that newer calls depend on
                are kept.
            claims: Undo claims and releases too, instead of skipping them.
            also: Other actors whose calls are undone like those of `of`.
            key: See `Write`.
            expect_version: See `Write`.
        """
        # Without `of`, `call` and `to_version`, the daemon undoes only the calls of `actor`, so the conversation's own
        # actor must not be sent.
        selects_by_actor = (of, call, to_version) == (None, None, None)
        params = p.ListUndo(
            conversation=self.id,
            count=count,
            of=of,
            actor=self.actor if actor is None and not selects_by_actor else actor,
            preview=preview,
            call=call,
            redo=redo,
            to_version=to_version,
            whole=whole,
            claims=claims,
            also=also,
            key=key,
            expect_version=expect_version,
        )
        return Call("list.undo", params, attrgetter("undone"))

    # the conversation itself

    def open(
        self,
        *,
        title: str = "",
        user: str | None = None,
        settings: SettingsPatch | None = None,
        kind: ListKind = "list",
        metadata: Metadata | None = None,
        **write: Unpack[Write],
    ) -> Call[r.ConversationResult]:
        """Open the conversation, creating it if needed (see `created` in the result). Adding a task creates it too.

        Args:
            title: Title of a new conversation.
            user: User to whom the conversation belongs.
            settings: Settings of a new conversation.
            kind: `list`, or `chat` for a chat thread.
            metadata: Any JSON object.
            **write: See `Write`.
        """
        members = {"title": title, "user": user, "settings": settings, "kind": kind, "metadata": metadata or {}}
        return Call("conversation.open", self._write(p.ConversationOpen, write, **members), itself)

    def info(self) -> Call[ConversationThing]:
        """Return the conversation's title, settings, counts and times."""
        return Call("conversation.get", p.ConversationParams(conversation=self.id), attrgetter("conversation"))

    def configure(
        self,
        *,
        title: str | None = None,
        settings: SettingsPatch | None = None,
        metadata: Metadata | None = None,
        **write: Unpack[Write],
    ) -> Call[ConversationThing]:
        """Change the title or settings; omitted values are kept. Merge `metadata`; a value of None deletes a key."""
        members = {"title": title, "settings": settings, "metadata": metadata}
        params = self._write(p.ConversationConfigure, write, **members)
        return Call("conversation.configure", params, attrgetter("conversation"))

    def attach(self, session: str, **write: Unpack[Write]) -> Call[ConversationThing]:
        """Make an external id, such as a host's session, an alias of this conversation.

        An id that is attached to another conversation moves here.
        """
        params = self._write(p.ConversationAttach, write, session=session)
        return Call("conversation.attach", params, attrgetter("conversation"))

    def detach(self, session: str, **write: Unpack[Write]) -> Call[ConversationThing]:
        """Remove an alias made by `attach`."""
        params = self._write(p.ConversationDetach, write, session=session)
        return Call("conversation.detach", params, attrgetter("conversation"))

    def erase(self, *, confirm: str | None = None, **write: Unpack[Confirming]) -> Call[str]:
        """Erase the conversation from the disk, permanently. It always needs confirmation; see `delete`."""
        params = self._write(p.ConversationDelete, write, confirm=confirm)
        return Call("conversation.delete", params, attrgetter("deleted"))

    # messages

    def append_message(
        self,
        role: str,
        content: Any,
        *,
        message: str | None = None,
        supersedes: str | None = None,
        **write: Unpack[Write],
    ) -> Call[Message]:
        """Append a message. It can later be superseded or retracted, but not deleted.

        Args:
            role: Role of the author, such as `user` or `assistant`.
            content: Any JSON value.
            message: Id of the new message; generated by default.
            supersedes: Id of a message that this one replaces. Neither may have the role `user` or `assistant`.
            **write: See `Write`.
        """
        members = {"role": role, "content": content, "message": message, "supersedes": supersedes}
        return Call("message.append", self._write(p.MessageAppend, write, **members), attrgetter("message"))

    def retract(self, message: str, reason: str = "", **write: Unpack[Write]) -> Call[r.MessageRetractResult]:
        """Hide a message, which stays in the log. Retracting it again changes nothing.

        Raises:
            NotFound: The conversation has no message with this id.
        """
        return Call("message.retract", self._write(p.MessageRetract, write, message=message, reason=reason), itself)

    def message(self, message: str) -> Call[Message]:
        """Return one message.

        Raises:
            NotFound: The conversation has no message with this id.
        """
        params = p.MessageGet(conversation=self.id, message=message)
        return Call("message.get", params, attrgetter("message"))

    def presence(self) -> Call[tuple[r.Present, ...]]:
        """Return the actors whose connections are subscribed to this conversation, in the order they subscribed.

        `since` is in milliseconds since 1970 UTC. A conversation can have subscribers before its first change.
        """
        return Call("conversation.presence", p.ConversationParams(conversation=self.id), attrgetter("present"))

    def find(self, key: str) -> Call[tuple[Recorded, ...]]:
        """Return the events of the change with this idempotency key; none if it changed nothing or was never made."""
        return Call("event.find", p.EventFind(conversation=self.id, key=key), attrgetter("events"))

    def histogram(
        self, *, buckets: int = 100, from_version: int | None = None, to_version: int | None = None
    ) -> Call[r.HistogramResult]:
        """Return the number of events by actor, in equal parts of the time from the first to the last event.

        Args:
            buckets: Maximum number of parts, 1 to 200.
            from_version: Count only from this version on.
            to_version: Count only up to this version.
        """
        params = p.EventHistogram(
            conversation=self.id, buckets=buckets, from_version=from_version, to_version=to_version
        )
        return Call("event.histogram", params, itself)

    def messages(
        self,
        *,
        after: str | None = None,
        limit: int = 100,
        order: Literal["asc", "desc"] = "asc",
        roles: Iterable[str] = (),
        all: bool = False,
    ) -> Call[r.MessageListResult]:
        """Return one page of messages; in the result, `has_more` is true if more follow.

        Args:
            after: Return messages after the one with this id.
            limit: Maximum number of messages, 1 to 10,000.
            order: `asc` for oldest first, `desc` for newest first.
            roles: Return only messages with one of these roles; by default, all.
            all: Include superseded and retracted messages.
        """
        params = p.MessageList(conversation=self.id, after=after, limit=limit, order=order, roles=tuple(roles), all=all)
        return Call("message.list", params, itself)
