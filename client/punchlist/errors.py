"""What can go wrong, as exceptions that carry the facts.

Whose fault it is decides the branch:

    PunchlistError
    ├── DaemonUnavailable        nobody answers and none could be started; the message says what to change
    │   └── WrongDataDirectory   the daemon that answers keeps its lists elsewhere
    ├── ConnectionLost           the daemon went away and stayed away for longer than we retry
    ├── TimedOut                 the time given by the caller is over (also a TimeoutError)
    ├── NoConversation           no conversation was named, by argument, scope or environment
    ├── ProtocolError            what came back is not the contract we speak
    └── RequestRefused           the daemon said no: nothing was changed (but see OutcomeUnknown)
        ├── ParseError, InvalidRequest, MethodNotFound, InvalidParams, InternalError
        ├── NotFound, Forbidden, LimitExceeded, KeyConflict, VersionConflict
        ├── IllegalTransition, Blocked, DependencyCycle, LeaseHeld, LeaseLost, ConfirmationRequired
        ├── RateLimited, StorageFull, OutcomeUnknown, ShuttingDown, Damaged
        └── Gap, WrongEpoch, Cancelled

There is one subclass of `RequestRefused` for each kind in `punchlist_schemas.errors.ERRORS`; its annotations are the
members that this kind's data may carry, and become attributes (None when the daemon left one out).

The module imports nothing, since the command line's fast path raises from here too.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar


class PunchlistError(Exception):
    """Base of everything this library raises on purpose."""


class DaemonUnavailable(PunchlistError):
    """No daemon answers. `temporary` tells whether trying again later can help without changing anything.

    `exit_code` is that of a daemon which was started and ended at once.
    """

    def __init__(self, message: str, *, temporary: bool = False, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.temporary = temporary
        self.exit_code = exit_code


class WrongDataDirectory(DaemonUnavailable):
    """The daemon on the socket does not serve the data directory that is meant, as it is seen from here.

    It was started for another one, or in a sandbox whose files are not ours. The message says what to set.
    """


class ConnectionLost(PunchlistError):
    """The connection to the daemon ended before the answer came. `final` tells that we closed it ourselves."""

    def __init__(self, message: str = "", *, final: bool = False) -> None:
        super().__init__(message)
        self.final = final


class TimedOut(PunchlistError, TimeoutError):
    """What was waited for did not happen in the time given."""


class NoConversation(PunchlistError):
    """It is not clear which list is meant."""


class ProtocolError(PunchlistError):
    """The peer does not speak this version of the contract."""


class RequestRefused(PunchlistError):
    """The daemon refused a call.

    Attributes:
        kind: The stable name of the refusal, a key of the error table.
        code: Its JSON-RPC error code.
        message: One sentence that says what to do.
        data: All facts that came with it.
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
        """Names of the attributes that this class adds; a trailing underscore is not part of the wire's name."""
        return () if cls is RequestRefused else tuple(cls.__dict__.get("__annotations__", ()))


def refusal(code: int, message: str, data: "dict[str, Any]") -> RequestRefused:
    """The exception for an error object from the wire. Kinds this version does not know stay `RequestRefused`."""
    kind = str(data.get("kind", "internal_error"))
    return RequestRefused.kinds.get(kind, RequestRefused)(kind, code, message, data)


class ParseError(RequestRefused, kind="parse_error"):
    """The frame is not JSON that the daemon accepts."""


class InvalidRequest(RequestRefused, kind="invalid_request"):
    """The JSON is not a JSON-RPC 2.0 request."""


class MethodNotFound(RequestRefused, kind="method_not_found"):
    """There is no such method; `nearest` is the closest name there is."""

    method: str | None
    nearest: str | None


class InvalidParams(RequestRefused, kind="invalid_params"):
    """A parameter is missing, unknown or wrong."""

    field: str | None
    expected: str | None
    nearest: str | None


class InternalError(RequestRefused, kind="internal_error"):
    """A fault of the daemon's; its log has the details."""


class NotFound(RequestRefused, kind="not_found"):
    """No such task, conversation, message or subscription."""

    what: str
    id: str


class VersionConflict(RequestRefused, kind="version_conflict"):
    """`expect_version` did not match: somebody else changed the list."""

    expected: int
    actual: int


class IllegalTransition(RequestRefused, kind="illegal_transition"):
    """The status can't go there from where it is; in a serial list `running` is the task in the way."""

    task: str
    from_: str
    to: str
    allowed: list[str]
    running: str | None


class Blocked(RequestRefused, kind="blocked"):
    """The task has open blockers, each a mapping with its `id` and `title`, or is deferred until `not_before`.

    `not_before` is in milliseconds since 1970 UTC; None of a task that is not deferred.
    """

    task: str
    blockers: list[dict[str, str]]
    not_before: int | None


class DependencyCycle(RequestRefused, kind="dependency_cycle"):
    """The edge would close a cycle; `path` holds the ids round it, the first also last."""

    path: list[str]


class LeaseHeld(RequestRefused, kind="lease_held"):
    """Another owner holds the task, until `expires_at` (milliseconds since 1970 UTC)."""

    task: str
    owner: str
    expires_at: int


class LeaseLost(RequestRefused, kind="lease_lost"):
    """The claim that the call refers to has ended; `status` is what the task is now."""

    task: str
    fence: int | None
    status: str


class KeyConflict(RequestRefused, kind="key_conflict"):
    """The idempotency key was used before with other content."""

    key: str


class LimitExceeded(RequestRefused, kind="limit_exceeded"):
    """A limit was broken."""

    limit: str
    value: int
    maximum: int


class RateLimited(RequestRefused, kind="rate_limited"):
    """The actor makes more changes than the list allows: `maximum` per minute; the next one in `retry_after_ms`."""

    actor: str
    maximum: int
    retry_after_ms: int


class StorageFull(RequestRefused, kind="storage_full"):
    """The disk is full; nothing was written, reads go on."""


class OutcomeUnknown(RequestRefused, kind="outcome_unknown"):
    """The write failed below the daemon: it may have happened. A retry with the same key tells."""


class Forbidden(RequestRefused, kind="forbidden"):
    """Outside the connection's user scope, or for somebody else to do."""

    what: str


class ShuttingDown(RequestRefused, kind="shutting_down"):
    """The daemon is stopping."""


class ConfirmationRequired(RequestRefused, kind="confirmation_required"):
    """Repeat the call with `confirm=error.token`; `summary` is what to show to whoever decides."""

    token: str
    summary: str
    expires_at: int


class Gap(RequestRefused, kind="gap"):
    """Events after that position can't be had any more; `first` is the next one there is."""

    after: int
    first: int

    @property
    def behind(self) -> int:
        """The position to go on from: pass it as `after`."""
        return self.first - 1


class WrongEpoch(RequestRefused, kind="wrong_epoch"):
    """The position belongs to another log: start again from the present."""

    epoch: str | None
    expected: str


class Damaged(RequestRefused, kind="damaged"):
    """The conversation's log is damaged; it is read-only."""

    conversation: str
    seq: int


class Cancelled(RequestRefused, kind="cancelled"):
    """The waiting call was given up."""
