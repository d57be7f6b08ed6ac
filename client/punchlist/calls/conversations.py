"""What can be asked about a conversation, its tasks included, written down once for both clients."""

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
    """What can be asked of one conversation. The conversations of both clients have these methods."""

    def apply(
        self,
        changes: Iterable[Call[Any] | Mapping[str, Any]],
        *,
        confirm: str | None = None,
        **write: Unpack[Confirming],
    ) -> Call[r.ApplyResult]:
        """Makes several changes of the tasks as one call, all or none, each on the list as the ones before it left it.

        Args:
            changes: What `calls` of this conversation builds (`plan.calls.edit("3", title="x")`; of `add`, `edit`,
                `set_status`, `move`, `delete`, `note`), or the wire's form of it (`{"method": "task.edit", …}`), in
                which an addition may have a `ref` for the changes behind it.
            confirm: See `delete`; asked for on connections with `confirm=True` if it deletes tasks.
            **write: As for every mutation, for all of them together.

        Raises:
            RequestRefused: What the first change that can't be made is refused with; `data["change"]` is its place.
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
        """Makes the list be these tasks. One of the same title is kept and brought up to date.

        Unfinished tasks that are not among them stay, in front, unless `keep_unfinished` is false. As to `confirm` see
        `delete`.
        """
        members = {"tasks": new_tasks(tasks), "keep_unfinished": keep_unfinished, "confirm": confirm}
        return Call("list.replace", self._write(p.ListReplace, write, **members), attrgetter("tasks"))

    def share(self, space: str, *, repair: bool = False) -> Call[SharedResult]:
        """Shares the list with its whole history in a space; repeating it goes on where it stopped.

        Args:
            space: Where.
            repair: Whether the list is shared already, and the space lost changes that are to be put back from here.

        Raises:
            Unreachable: The space can't be reached.
            Forbidden: This machine may not change what is there, or a list of this name is there already; or another
                machine has more of a list that is to be put back.
            Diverged: The space has other changes than those that are to be put back.
        """
        return Call("list.share", ListShare(conversation=self.id, space=space, repair=repair), itself)

    def repair_space(self, space: str, *, remove: Iterable[str] = ()) -> Call[SpaceRepaired]:
        """Finds the posts of the list in a space that no machine can follow.

        Args:
            space: Where.
            remove: Ids of such posts that are removed from the space.

        Raises:
            Unreachable: The space can't be reached.
            Forbidden: The creds of this machine are not a keeper's.
            NotFound: There is no such space here, or no such list in it.
        """
        return Call("space.repair", SpaceRepair(conversation=self.id, space=space, remove=tuple(remove)), itself)

    def join(self, space: str) -> Call[SharedResult]:
        """Gets the list of this name from a space, and follows it; repeating it goes on where it stopped.

        Raises:
            NotFound: There is no such list in the space.
            Forbidden: A list of this name is here already, and not empty.
        """
        return Call("list.join", ListJoin(conversation=self.id, space=space), itself)

    def leave(self, *, keep_as: str | None = None) -> Call[LeftResult]:
        """Follows a shared list no more; its copy here goes, or stays as a list of another name."""
        return Call("list.leave", ListLeave(conversation=self.id, keep_as=keep_as), itself)

    def clear(self, *, confirm: str | None = None, **write: Unpack[Confirming]) -> Call[int]:
        """Removes all tasks and returns how many; numbering restarts at 1. As to `confirm` see `delete`."""
        return Call("list.clear", self._write(p.ListClear, write, confirm=confirm), attrgetter("cleared"))

    def end_turn(self, **write: Unpack[Write]) -> Call[int]:
        """Ends a turn: a finished list whose `auto_clear` is `idle` is cleared. Returns how many tasks went."""
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
        """Takes back the newest `count` calls (by default one), and returns a readable line for each change.

        Args:
            count: How many calls.
            of: Take back this actor's calls alone, by default all of them.
            actor: Who does it, as recorded in the log. Without `of` it also says whose calls.
            preview: Only tell what would happen.
            call: Take back the one call that made this version, whoever's it is.
            redo: Take back undos instead of other calls.
            to_version: Make the list what it was right after this version instead.
            whole: Refuse where something newer rests on what would be taken back, by `UndoConflict`.
            claims: Take back claims and releases as well, instead of passing over them.
            also: Actors whose calls are taken back like those of `of`.
            key: As for every mutation.
            expect_version: As for every mutation.
        """
        says_whose = (of, call, to_version) == (None, None, None)  # then `actor` does
        params = p.ListUndo(
            conversation=self.id,
            count=count,
            of=of,
            actor=self.actor if actor is None and not says_whose else actor,
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
        """Opens the conversation, or finds it; `created` tells which. Adding a task opens it just as well."""
        members = {"title": title, "user": user, "settings": settings, "kind": kind, "metadata": metadata or {}}
        return Call("conversation.open", self._write(p.ConversationOpen, write, **members), itself)

    def info(self) -> Call[ConversationThing]:
        """Title, settings, counts and times of the conversation."""
        return Call("conversation.get", p.Place(conversation=self.id), attrgetter("conversation"))

    def configure(
        self,
        *,
        title: str | None = None,
        settings: SettingsPatch | None = None,
        metadata: Metadata | None = None,
        **write: Unpack[Write],
    ) -> Call[ConversationThing]:
        """Changes title or settings; what is left out keeps its value. `metadata` merges, and None deletes a key."""
        members = {"title": title, "settings": settings, "metadata": metadata}
        params = self._write(p.ConversationConfigure, write, **members)
        return Call("conversation.configure", params, attrgetter("conversation"))

    def attach(self, session: str, **write: Unpack[Write]) -> Call[ConversationThing]:
        """Lets an outside id (a host's session, a thread) find this conversation wherever one is named."""
        params = self._write(p.ConversationAttach, write, session=session)
        return Call("conversation.attach", params, attrgetter("conversation"))

    def detach(self, session: str, **write: Unpack[Write]) -> Call[ConversationThing]:
        """Undoes an attach."""
        params = self._write(p.ConversationDetach, write, session=session)
        return Call("conversation.detach", params, attrgetter("conversation"))

    def erase(self, *, confirm: str | None = None, **write: Unpack[Confirming]) -> Call[str]:
        """Erases the conversation from the disk, for good. Always in two steps: see `delete`."""
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
        """Appends a message for ever. `content` is anything that JSON can hold; `message` may bring its own id.

        With `supersedes` it is shown instead of that message, which is neither a user's nor an assistant's.
        """
        members = {"role": role, "content": content, "message": message, "supersedes": supersedes}
        return Call("message.append", self._write(p.MessageAppend, write, **members), attrgetter("message"))

    def retract(self, message: str, reason: str = "", **write: Unpack[Write]) -> Call[r.MessageRetractResult]:
        """Takes a message out of what is shown; the log keeps it.

        Raises:
            NotFound: There is none with this id.
        """
        return Call("message.retract", self._write(p.MessageRetract, write, message=message, reason=reason), itself)

    def message(self, message: str) -> Call[Message]:
        """One message.

        Raises:
            NotFound: There is none with this id.
        """
        params = p.MessageGet(conversation=self.id, message=message)
        return Call("message.get", params, attrgetter("message"))

    def presence(self) -> Call[tuple[r.Present, ...]]:
        """Who follows this conversation now: the actors whose connections have a subscription to it, first come first.

        `since` is in milliseconds since 1970. A list that nobody has used yet can be followed too.
        """
        return Call("conversation.presence", p.Place(conversation=self.id), attrgetter("present"))

    def find(self, key: str) -> Call[tuple[Recorded, ...]]:
        """What the mutation with this idempotency key did: its events, none if it changed nothing or never happened."""
        return Call("event.find", p.EventFind(conversation=self.id, key=key), attrgetter("events"))

    def messages(
        self,
        *,
        after: str | None = None,
        limit: int = 100,
        order: Literal["asc", "desc"] = "asc",
        roles: Iterable[str] = (),
        all: bool = False,
    ) -> Call[r.MessageListResult]:
        """One page of messages behind the one with id `after`; `has_more` tells whether there are others.

        `roles` keeps those of these roles; `all` shows superseded and retracted ones too.
        """
        params = p.MessageList(conversation=self.id, after=after, limit=limit, order=order, roles=tuple(roles), all=all)
        return Call("message.list", params, itself)
