"""Exceptions of the library. Their attributes carry the details of an error.

The class hierarchy:

    PunchlistError
    ├── DaemonUnavailable        no daemon answers and none could be started; the message says what to change
    │   ├── DaemonStopped        the daemon was stopped on purpose (`punch daemon stop`)
    │   └── WrongDataDirectory   the daemon on this socket uses another data directory
    ├── ConnectionLost           the connection ended and retries did not restore it
    ├── TimedOut                 the caller's timeout has passed (also a TimeoutError)
    ├── NoConversation           no conversation was named by argument, scope or environment
    ├── MisplacedScope           a scope was opened where it would not cover its block, such as in a generator
    ├── ProtocolError            the daemon's message does not follow this version of the protocol
    └── RequestRefused           the daemon rejected the call and changed nothing (but see OutcomeUnknown)
        ├── ParseError, InvalidRequest, MethodNotFound, InvalidParams, InternalError
        ├── NotFound, Forbidden, LimitExceeded, KeyConflict, VersionConflict, UndoConflict
        ├── IllegalTransition, Blocked, DependencyCycle, LeaseHeld, LeaseLost, ConfirmationRequired
        ├── RateLimited, StorageFull, OutcomeUnknown, ShuttingDown, Damaged
        ├── Unreachable, Diverged, UpgradeNeeded
        └── Gap, WrongEpoch, Cancelled

There is one subclass of `RequestRefused` for each kind in `punchlist_schemas.errors.ERRORS`. Its annotations are the
members of the error's data. Each becomes an attribute, None if the daemon did not send it.

This module imports nothing heavy, because every command of the command line loads it.
"""

from typing import Any, ClassVar


class PunchlistError(Exception):
    """Base class of all errors of this library."""


class DaemonUnavailable(PunchlistError):
    """No daemon answers, and none could be started.

    Attributes:
        temporary: Whether a later retry may succeed even if the user changes nothing.
        exit_code: Exit code of the daemon, if one was started and ended immediately.
    """

    def __init__(self, message: str, *, temporary: bool = False, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.temporary = temporary
        self.exit_code = exit_code


class DaemonStopped(DaemonUnavailable):
    """The daemon was stopped on purpose. A process that was connected to it does not start it again."""


class WrongDataDirectory(DaemonUnavailable):
    """The daemon on the socket uses a different data directory than this process requested.

    It was started with other settings, or in a sandbox with its own files. The message says what to set.
    """


class ConnectionLost(PunchlistError):
    """The connection to the daemon ended before the response arrived.

    Attributes:
        final: Whether this program closed the connection, so that the call is not retried.
    """

    def __init__(self, message: str = "", *, final: bool = False) -> None:
        super().__init__(message)
        self.final = final


class TimedOut(PunchlistError, TimeoutError):
    """The call did not finish, or the awaited change did not happen, within the timeout."""


class NoConversation(PunchlistError):
    """No list was named, by argument, scope or environment."""


class MisplacedScope(PunchlistError):
    """A scope would not cover its block.

    It was opened by a generator or in another thread, or closed in a different task or thread than it was opened in.
    """


class ProtocolError(PunchlistError):
    """The daemon speaks another version of the protocol, or sent an invalid message."""


class RequestRefused(PunchlistError):
    """The daemon rejected a call. Each kind of error has a subclass.

    Attributes:
        kind: Stable name of the error, a key of the error table.
        code: JSON-RPC error code.
        message: One sentence that says what to do.
        data: All members of the error's data.
    """

    kinds: "ClassVar[dict[str, type[RequestRefused]]]" = {}
    """The subclass for each kind in the error table."""

    def __init_subclass__(cls, *, kind: str) -> None:
        super().__init_subclass__()
        RequestRefused.kinds[kind] = cls

    def __init__(self, kind: str, code: int, message: str, data: "dict[str, Any] | None" = None) -> None:
        super().__init__(kind, code, message, data)
        self.kind = kind
        self.code = code
        self.message = message
        self.data = data or {}
        for name in self.facts():
            setattr(self, name, self.data.get(name.rstrip("_")))

    def __str__(self) -> str:
        return self.message

    @classmethod
    def facts(cls) -> tuple[str, ...]:
        """Return the names of the attributes this class adds. On the wire they have no trailing underscore."""
        return () if cls is RequestRefused else tuple(cls.__dict__.get("__annotations__", ()))


def build_error(code: int, message: str, data: "dict[str, Any]") -> RequestRefused:
    """Return the exception for an error object; a plain `RequestRefused` if this version does not know its kind."""
    kind = str(data.get("kind", "internal_error"))
    return RequestRefused.kinds.get(kind, RequestRefused)(kind, code, message, data)


class ParseError(RequestRefused, kind="parse_error"):
    """The frame is not JSON that the daemon accepts."""


class InvalidRequest(RequestRefused, kind="invalid_request"):
    """The JSON is not a JSON-RPC 2.0 request."""


class MethodNotFound(RequestRefused, kind="method_not_found"):
    """The daemon has no such method.

    Attributes:
        nearest: The most similar method name.
    """

    method: str | None
    nearest: str | None


class InvalidParams(RequestRefused, kind="invalid_params"):
    """A parameter is missing, unknown or invalid.

    Attributes:
        field: The parameter.
        expected: Description of the valid values.
        nearest: The most similar parameter name, if `field` is unknown.
    """

    field: str | None
    expected: str | None
    nearest: str | None


class InternalError(RequestRefused, kind="internal_error"):
    """A bug in the daemon; its log has the details."""


class NotFound(RequestRefused, kind="not_found"):
    """No such task, conversation, message, space, subscription or confirmation token.

    Attributes:
        what: What was not found, such as `task` or `conversation`.
        id: The id that was passed.
        names: Lists that share this short name, if it is ambiguous.
    """

    what: str
    id: str
    names: list[str]


class VersionConflict(RequestRefused, kind="version_conflict"):
    """The list or a task has changed since the expected version, or `min_version` was not reached in time.

    Attributes:
        task: The task that has changed; unset if the versions are those of the list.
    """

    task: str
    expected: int
    actual: int


class IllegalTransition(RequestRefused, kind="illegal_transition"):
    """The task can't change from its status to the new one.

    Attributes:
        allowed: The statuses that it can change to.
        running: In a serial list, the task in progress that has to finish first.
        open_children: Unfinished children that prevent completion, each with `id`, `title` and `status`.
    """

    task: str
    from_: str
    to: str
    allowed: list[str]
    running: str | None
    open_children: list[dict[str, str]] | None


class Blocked(RequestRefused, kind="blocked"):
    """The task has open blockers or unfinished children, or is deferred.

    Attributes:
        blockers: The tasks to complete first, each with `id` and `title`.
        not_before: End of the deferral in milliseconds since 1970 UTC; None if the task is not deferred.
        open_children: The task's own unfinished children, which `blockers` contains as well.
    """

    task: str
    blockers: list[dict[str, str]]
    not_before: int | None
    open_children: list[dict[str, str]] | None


class DependencyCycle(RequestRefused, kind="dependency_cycle"):
    """The dependency would close a cycle.

    Attributes:
        path: Task ids along the cycle; the last one equals the first.
    """

    path: list[str]


class LeaseHeld(RequestRefused, kind="lease_held"):
    """Another owner has claimed the task, or it is reserved for another owner.

    Attributes:
        expires_at: End of the claim, in milliseconds since 1970 UTC.
        reserved: Whether the task is pending and only `owner` can claim it.
    """

    task: str
    owner: str
    expires_at: int
    reserved: bool | None


class LeaseLost(RequestRefused, kind="lease_lost"):
    """The claim that the call refers to has ended.

    Attributes:
        fence: Number of that claim.
        status: Current status of the task.
    """

    task: str
    fence: int | None
    status: str


class KeyConflict(RequestRefused, kind="key_conflict"):
    """The idempotency key was already used for a different call."""

    key: str


class LimitExceeded(RequestRefused, kind="limit_exceeded"):
    """The call exceeds a limit.

    Attributes:
        limit: Name of the limit.
        value: Value in the call.
        maximum: Largest accepted value.
    """

    limit: str
    value: int
    maximum: int


class RateLimited(RequestRefused, kind="rate_limited"):
    """The actor exceeds the list's rate limit.

    Attributes:
        maximum: Number of changes that an actor may make per minute.
        retry_after_ms: Milliseconds until the next change is accepted.
    """

    actor: str
    maximum: int
    retry_after_ms: int


class Unreachable(RequestRefused, kind="unreachable"):
    """A space can't be reached or used. Nothing was written.

    Attributes:
        since: When it became unreachable, in milliseconds since 1970 UTC.
        reason: Machine-readable reason, if known.
    """

    space: str
    since: int
    reason: str | None


class Diverged(RequestRefused, kind="diverged"):
    """The history of the shared list differs between the space and this machine. The list is read-only."""

    conversation: str
    space: str


class UpgradeNeeded(RequestRefused, kind="upgrade_needed"):
    """A later version of punchlist has written to the shared list. The list is read-only for this version."""

    conversation: str
    space: str


class StorageFull(RequestRefused, kind="storage_full"):
    """The disk is full. Nothing was written; reads still work."""


class OutcomeUnknown(RequestRefused, kind="outcome_unknown"):
    """The write failed, but the change may have been made anyway. Repeat the call with the same key to find out.

    Attributes:
        space: Space of the shared list, if the space caused the error by not responding.
    """

    space: str


class Forbidden(RequestRefused, kind="forbidden"):
    """The call is outside the connection's user scope, or only another user or machine may make it.

    Attributes:
        what: What the rejection is based on, such as `user`, `gate` or `space`.
    """

    what: str


class ShuttingDown(RequestRefused, kind="shutting_down"):
    """The daemon is stopping."""


class UndoConflict(RequestRefused, kind="undo_conflict"):
    """`whole` was requested, and the calls can be undone only in part.

    Attributes:
        call: Version of the call to undo.
        newer: Version of a newer call that depends on it; None if no newer call does.
        actor: Actor of the newer call; None if no newer call depends on it.
        task: The task concerned.
    """

    call: int
    newer: int | None
    actor: str | None
    task: str


class ConfirmationRequired(RequestRefused, kind="confirmation_required"):
    """The call needs confirmation. If the user agrees to `summary`, repeat it with `confirm=error.token`.

    Attributes:
        token: Pass it as `confirm`.
        summary: What the call would do, for the user who decides.
        expires_at: When the token expires, in milliseconds since 1970 UTC.
        space: Space of a shared list that would be deleted on every machine; otherwise None.
    """

    token: str
    summary: str
    expires_at: int
    space: str | None


class Gap(RequestRefused, kind="gap"):
    """Events after a position are no longer available.

    Attributes:
        after: The requested position.
        first: Position of the first available event.
    """

    after: int
    first: int

    @property
    def behind(self) -> int:
        """Position to continue from: pass it as `after`."""
        return self.first - 1


class WrongEpoch(RequestRefused, kind="wrong_epoch"):
    """The position belongs to another log. Start again from the current list.

    Attributes:
        epoch: The epoch that was passed.
        expected: The epoch of the log.
    """

    epoch: str | None
    expected: str


class Damaged(RequestRefused, kind="damaged"):
    """The conversation's log is damaged. The conversation is read-only.

    Attributes:
        seq: Position of the damage in the log.
    """

    conversation: str
    seq: int


class Cancelled(RequestRefused, kind="cancelled"):
    """The waiting call was cancelled by `rpc.cancel`."""
