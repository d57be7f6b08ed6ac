"""Everything that can go wrong, as exceptions that carry the facts.

The branches tell whose fault it is:

    PunchlistError
    ├── DaemonUnavailable        no daemon answers and none could be started; the message says what to change
    │   ├── DaemonStopped        somebody stopped it on purpose (`punch daemon stop`)
    │   └── WrongDataDirectory   the daemon that answers keeps its lists elsewhere
    ├── ConnectionLost           the daemon went away and did not come back while we retried
    ├── TimedOut                 the time that the caller gave has passed (also a TimeoutError)
    ├── NoConversation           no conversation was named, by argument, scope or environment
    ├── MisplacedScope           a scope was opened where it would not hold, such as in a generator
    ├── ProtocolError            the answer does not follow the protocol that we speak
    └── RequestRefused           the daemon refused the call and changed nothing (but see OutcomeUnknown)
        ├── ParseError, InvalidRequest, MethodNotFound, InvalidParams, InternalError
        ├── NotFound, Forbidden, LimitExceeded, KeyConflict, VersionConflict, UndoConflict
        ├── IllegalTransition, Blocked, DependencyCycle, LeaseHeld, LeaseLost, ConfirmationRequired
        ├── RateLimited, StorageFull, OutcomeUnknown, ShuttingDown, Damaged
        ├── Unreachable, Diverged, UpgradeNeeded
        └── Gap, WrongEpoch, Cancelled

There is one subclass of `RequestRefused` for each kind in `punchlist_schemas.errors.ERRORS`; its annotations name the
members that the data of this kind may carry; each is an attribute (None when the daemon left it out).

This module imports nothing heavy: each command of the command line loads it.
"""

from typing import Any, ClassVar


class PunchlistError(Exception):
    """Base of every error that this library raises on purpose."""


class DaemonUnavailable(PunchlistError):
    """No daemon answers. `temporary`: trying again later may help, with nothing changed in between.

    `exit_code` is the exit code of a daemon that was started and ended at once.
    """

    def __init__(self, message: str, *, temporary: bool = False, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.temporary = temporary
        self.exit_code = exit_code


class DaemonStopped(DaemonUnavailable):
    """Somebody stopped the daemon on purpose, and this process, which was connected to it, does not start it again."""


class WrongDataDirectory(DaemonUnavailable):
    """The daemon on the socket serves another data directory than the one that this process asked for.

    It was started for another directory, or in a sandbox that sees other files. The message says what to set.
    """


class ConnectionLost(PunchlistError):
    """The connection to the daemon ended before the answer came. `final`: this program closed it."""

    def __init__(self, message: str = "", *, final: bool = False) -> None:
        super().__init__(message)
        self.final = final


class TimedOut(PunchlistError, TimeoutError):
    """The call, or the change that was waited for, did not happen in the given time."""


class NoConversation(PunchlistError):
    """No list was named, by argument, scope or environment."""


class MisplacedScope(PunchlistError):
    """A scope would not hold for its block: a generator or a thread opened it, or it was closed elsewhere."""


class ProtocolError(PunchlistError):
    """The daemon does not speak this version of the protocol."""


class RequestRefused(PunchlistError):
    """The daemon refused a call.

    Attributes:
        kind: The stable name of the refusal, a key of the error table.
        code: Its JSON-RPC error code.
        message: One sentence that says what to do.
        data: All facts that came with the error.
    """

    kinds: "ClassVar[dict[str, type[RequestRefused]]]" = {}
    """Kind to class, for every kind of the contract."""

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
        """Names of the attributes that this class adds; a trailing underscore is not part of the name on the wire."""
        return () if cls is RequestRefused else tuple(cls.__dict__.get("__annotations__", ()))


def refusal(code: int, message: str, data: "dict[str, Any]") -> RequestRefused:
    """The exception for an error object from the wire; a kind that this version does not know is a `RequestRefused`."""
    kind = str(data.get("kind", "internal_error"))
    return RequestRefused.kinds.get(kind, RequestRefused)(kind, code, message, data)


class ParseError(RequestRefused, kind="parse_error"):
    """The frame is not JSON that the daemon accepts."""


class InvalidRequest(RequestRefused, kind="invalid_request"):
    """The JSON is not a JSON-RPC 2.0 request."""


class MethodNotFound(RequestRefused, kind="method_not_found"):
    """There is no such method; `nearest` is the most similar name."""

    method: str | None
    nearest: str | None


class InvalidParams(RequestRefused, kind="invalid_params"):
    """A parameter is missing, unknown or wrong."""

    field: str | None
    expected: str | None
    nearest: str | None


class InternalError(RequestRefused, kind="internal_error"):
    """A bug in the daemon; its log has the details."""


class NotFound(RequestRefused, kind="not_found"):
    """No such task, conversation, message or subscription.

    Attributes:
        names: The lists that share this short name.
    """

    what: str
    id: str
    names: list[str]


class VersionConflict(RequestRefused, kind="version_conflict"):
    """`expect_version` did not match: somebody else changed the list."""

    expected: int
    actual: int


class IllegalTransition(RequestRefused, kind="illegal_transition"):
    """The task can't change from its status to the new one.

    In a serial list `running` is the task in the way. `open_children` are the unfinished children that keep a parent
    from being completed, each a mapping with its `id`, `title` and `status`.
    """

    task: str
    from_: str
    to: str
    allowed: list[str]
    running: str | None
    open_children: list[dict[str, str]] | None


class Blocked(RequestRefused, kind="blocked"):
    """The task has open blockers, each a mapping with its `id` and `title`, or is deferred until `not_before`.

    `not_before` is in milliseconds since 1970 UTC, and None if the task is not deferred. Where the blockers are the
    task's own unfinished children, `open_children` holds them as well.
    """

    task: str
    blockers: list[dict[str, str]]
    not_before: int | None
    open_children: list[dict[str, str]] | None


class DependencyCycle(RequestRefused, kind="dependency_cycle"):
    """The dependency would close a cycle; `path` holds the ids along it, with the first one repeated at the end."""

    path: list[str]


class LeaseHeld(RequestRefused, kind="lease_held"):
    """Another owner holds the task, until `expires_at` (milliseconds since 1970 UTC).

    With `reserved` nobody has claimed it: it is pending, and only its owner can claim it.
    """

    task: str
    owner: str
    expires_at: int
    reserved: bool | None


class LeaseLost(RequestRefused, kind="lease_lost"):
    """The claim that the call refers to has ended; `status` is the status of the task now."""

    task: str
    fence: int | None
    status: str


class KeyConflict(RequestRefused, kind="key_conflict"):
    """The idempotency key was already used for a different call."""

    key: str


class LimitExceeded(RequestRefused, kind="limit_exceeded"):
    """The call exceeds a limit."""

    limit: str
    value: int
    maximum: int


class RateLimited(RequestRefused, kind="rate_limited"):
    """The actor makes more changes than the list allows: `maximum` per minute; the next one in `retry_after_ms`."""

    actor: str
    maximum: int
    retry_after_ms: int


class Unreachable(RequestRefused, kind="unreachable"):
    """A space can't be reached or used, `since` then (milliseconds since 1970 UTC); nothing was written.

    `reason` is a word for programs where it is known.
    """

    space: str
    since: int
    reason: str | None


class Diverged(RequestRefused, kind="diverged"):
    """The shared list in the space does not go on from what this machine has: it can be read, not written."""

    conversation: str
    space: str


class UpgradeNeeded(RequestRefused, kind="upgrade_needed"):
    """A later version of punchlist has written to the shared list: it can be read, not written."""

    conversation: str
    space: str


class StorageFull(RequestRefused, kind="storage_full"):
    """The disk is full; nothing was written, and reads still work."""


class OutcomeUnknown(RequestRefused, kind="outcome_unknown"):
    """The write failed, and may have happened all the same. Repeat the call with the same key to find out.

    `space` names the space of a shared list if it was that which did not answer.
    """

    space: str


class Forbidden(RequestRefused, kind="forbidden"):
    """Outside the connection's user scope, or for somebody else to do."""

    what: str


class ShuttingDown(RequestRefused, kind="shutting_down"):
    """The daemon is stopping."""


class UndoConflict(RequestRefused, kind="undo_conflict"):
    """The call `newer` of `actor` rests on what `call` did to `task`; without a newer call it just can't go as a whole.

    `newer` and `actor` are None then.
    """

    call: int
    newer: int | None
    actor: str | None
    task: str


class ConfirmationRequired(RequestRefused, kind="confirmation_required"):
    """Show `summary` to the person who decides; with their yes, repeat the call with `confirm=error.token`.

    `space` names the space of a shared list that would be deleted on every machine; else it is None.
    """

    token: str
    summary: str
    expires_at: int
    space: str | None


class Gap(RequestRefused, kind="gap"):
    """Events after this position are no longer available; `first` is the position of the next one that is."""

    after: int
    first: int

    @property
    def behind(self) -> int:
        """Where to continue: pass it as `after`."""
        return self.first - 1


class WrongEpoch(RequestRefused, kind="wrong_epoch"):
    """The position belongs to another log: start again from the current list."""

    epoch: str | None
    expected: str


class Damaged(RequestRefused, kind="damaged"):
    """The conversation's log is damaged; it is read-only."""

    conversation: str
    seq: int


class Cancelled(RequestRefused, kind="cancelled"):
    """The waiting call was cancelled."""
