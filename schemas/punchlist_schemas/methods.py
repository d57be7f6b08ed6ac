"""The method table, which drives the server, both clients, the documentation and `punch daemon call`."""

from typing import Any, Literal

import msgspec

from punchlist_schemas import params as p
from punchlist_schemas import results as r
from punchlist_schemas import spaces as s
from punchlist_schemas.changes import ListApply

PROTOCOL = 1
"""Version of the wire contract."""

Kind = Literal["read", "write", "session"]
"""`write` goes through the writer, `read` returns durable state, and `session` concerns the connection itself."""


class Method(msgspec.Struct, frozen=True):
    """One row of the table."""

    name: str
    kind: Kind
    params: type[p.Params]
    result: type[r.Result]
    summary: str


_ROWS = (
    Method(
        "daemon.hello", "session", p.Hello, r.HelloResult, "Introduces the client and returns the daemon's identity."
    ),
    Method("rpc.discover", "session", p.NoParams, r.Result, "The OpenRPC document of this contract."),
    Method("rpc.cancel", "session", p.Cancel, r.Acknowledged, "Cancels a waiting call of this connection."),
    Method("$/cancelRequest", "session", p.Cancel, r.Acknowledged, "Same as rpc.cancel, for LSP clients."),
    Method("initialize", "session", p.LanguageClient, r.InitializeResult, "LSP initialize: offers no capabilities."),
    Method("initialized", "session", p.AnyParams, r.Acknowledged, "LSP initialized: no-op."),
    Method("shutdown", "session", p.AnyParams, r.Acknowledged, "LSP shutdown: acknowledges; the daemon keeps running."),
    Method("exit", "session", p.AnyParams, r.Acknowledged, "LSP exit: closes this connection."),
    Method("daemon.status", "read", p.NoParams, r.StatusResult, "Uptime, clients, lag, sizes, durations, errors."),
    Method("daemon.backup", "read", p.Backup, r.BackupResult, "Makes a verified copy of the log while it is in use."),
    Method("daemon.shutdown", "session", p.Shutdown, r.Stopping, "Finishes accepted calls, then stops."),
    Method(
        "agent.enter", "session", p.AgentEnter, r.Acknowledged, "Registers the agent that this connection works for."
    ),
    Method("agent.leave", "session", p.AgentLeave, r.Acknowledged, "Reports the end of an agent's session."),
    Method(
        "agent.list", "read", p.AgentList, r.AgentListResult, "Agents and people that are connected or left recently."
    ),
    Method(
        "confirmation.get",
        "read",
        p.ConfirmationGet,
        r.ConfirmationResult,
        "The call that a confirmation token stands for.",
    ),
    Method(
        "conversation.open", "write", p.ConversationOpen, r.ConversationResult, "Creates or returns a conversation."
    ),
    Method("conversation.get", "read", p.ConversationParams, r.ConversationGetResult, "One conversation."),
    Method(
        "conversation.presence",
        "read",
        p.ConversationParams,
        r.PresenceResult,
        "Current subscribers of a conversation.",
    ),
    Method("conversation.list", "read", p.ConversationList, r.ConversationListResult, "Conversations, newest first."),
    Method("conversation.resolve", "read", p.ConversationResolve, r.ConversationResolveResult, "A directory's list."),
    Method(
        "conversation.configure",
        "write",
        p.ConversationConfigure,
        r.ConversationResult,
        "Sets title, settings, metadata.",
    ),
    Method("conversation.attach", "write", p.ConversationAttach, r.ConversationResult, "Makes a session id an alias."),
    Method("conversation.detach", "write", p.ConversationDetach, r.ConversationResult, "Undoes an attach."),
    Method("conversation.delete", "write", p.ConversationDelete, r.ConversationDeleteResult, "Erases a conversation."),
    Method("task.add", "write", p.TaskAdd, r.TaskResult, "Adds a task."),
    Method("task.add_many", "write", p.TaskAddMany, r.TasksResult, "Adds tasks and their edges, all or none."),
    Method("task.get", "read", p.TaskGet, r.TaskGetResult, "One task."),
    Method(
        "task.list", "read", p.TaskList, r.TaskListResult, "Tasks of a list, filtered, in pages, now or at a version."
    ),
    Method(
        "task.search", "read", p.TaskSearch, r.TaskSearchResult, "Tasks by words or filters, in one list or in all."
    ),
    Method("task.explain", "read", p.TaskExplain, r.TaskExplainResult, "Why a task can't start or be completed now."),
    Method("task.edit", "write", p.TaskEdit, r.TaskResult, "Sets members and edges of a task."),
    Method("task.set_status", "write", p.TaskSetStatus, r.SetStatusResult, "Changes a task's status."),
    Method("task.approve", "write", p.TaskApprove, r.SetStatusResult, "Approves or rejects a task at its gate."),
    Method("task.note", "write", p.TaskNote, r.TaskResult, "Adds a note to a task."),
    Method("task.move", "write", p.TaskMove, r.TaskResult, "Changes a task's place in the list."),
    Method("task.delete", "write", p.TaskDelete, r.DeleteResult, "Deletes tasks."),
    Method("task.claim", "write", p.TaskClaim, r.ClaimResult, "Claims a task for one owner; can wait for one."),
    Method("task.renew", "write", p.TaskRenew, r.TaskResult, "Extends a claim."),
    Method("task.release", "write", p.TaskRelease, r.TaskResult, "Releases a claimed task."),
    Method("list.apply", "write", ListApply, r.ApplyResult, "Makes several changes, all or none."),
    Method("list.replace", "write", p.ListReplace, r.TasksResult, "Replaces the tasks of the list."),
    Method("list.clear", "write", p.ListClear, r.ClearResult, "Removes all tasks, restarts numbering."),
    Method("turn.end", "write", p.TurnEnd, r.ClearResult, "Ends a turn: clears a finished list with auto_clear idle."),
    Method("list.undo", "write", p.ListUndo, r.UndoResult, "Undoes calls by appending new events."),
    Method("message.append", "write", p.MessageAppend, r.MessageResult, "Appends a message."),
    Method("message.retract", "write", p.MessageRetract, r.MessageRetractResult, "Hides a message."),
    Method("message.get", "read", p.MessageGet, r.MessageGetResult, "One message."),
    Method("message.list", "read", p.MessageList, r.MessageListResult, "Messages, in pages."),
    Method("event.read", "read", p.EventRead, r.EventsResult, "Events after a position, or the newest ones."),
    Method("event.find", "read", p.EventFind, r.EventFindResult, "Events of the call with a key."),
    Method("event.histogram", "read", p.EventHistogram, r.HistogramResult, "Number of events by time and actor."),
    Method("event.spans", "read", p.EventSpans, r.SpansResult, "When tasks were in progress, in one list or in all."),
    Method("event.wait", "read", p.EventWait, r.EventsResult, "Waits for events after a position."),
    Method("event.subscribe", "session", p.EventSubscribe, r.SubscribeResult, "Pushes every change from a position."),
    Method("event.unsubscribe", "session", p.EventUnsubscribe, r.Acknowledged, "Ends a subscription."),
    Method("space.add", "session", s.SpaceAdd, s.SpaceResult, "Adds a space, in which several machines share lists."),
    Method("space.list", "session", p.NoParams, s.SpaceListResult, "The spaces, their links and their shared lists."),
    Method("space.remove", "session", s.SpaceParams, s.SpaceRemoved, "Removes a space in which no list is shared."),
    Method("space.repair", "session", s.SpaceRepair, s.SpaceRepaired, "Finds or removes posts that block a list."),
    Method("list.share", "session", s.ListShare, s.SharedResult, "Shares a list with its history in a space."),
    Method("list.join", "session", s.ListJoin, s.SharedResult, "Follows a list in a space."),
    Method("list.leave", "session", s.ListLeave, s.LeftResult, "Stops following a shared list."),
)

METHODS: dict[str, Method] = {row.name: row for row in _ROWS}

NOTIFICATIONS: dict[str, type[Any]] = {
    "events": r.EventsPush,
    "list": r.ListPush,
    "rows": r.RowsPush,
    "board": r.BoardPush,
    "presence": r.PresencePush,
    "end": r.EndPush,
}
"""Names of the daemon's notifications → their params."""
