"""Table of all errors of the daemon: kind, JSON-RPC code, and members of `data`."""

from typing import Any, final

import msgspec


class ErrorKind(msgspec.Struct, frozen=True):
    """A row of the error table."""

    kind: str
    code: int
    meaning: str
    data: tuple[str, ...] = ()
    """Names of the optional members of `data`, in addition to `kind`."""


_ROWS = (
    ErrorKind("parse_error", -32700, "The frame is not valid JSON."),
    ErrorKind("invalid_request", -32600, "The JSON is not a JSON-RPC 2.0 request."),
    ErrorKind("method_not_found", -32601, "The method does not exist.", ("method", "nearest")),
    ErrorKind("invalid_params", -32602, "A parameter is missing, unknown or wrong.", ("field", "expected", "nearest")),
    ErrorKind("internal_error", -32603, "A bug in the daemon; its log has the details."),
    ErrorKind("not_found", -32001, "No such task, conversation, message or subscription.", ("what", "id", "names")),
    ErrorKind(
        "version_conflict",
        -32002,
        "The list or the task has changed, or min_version was not reached in time.",
        ("task", "expected", "actual"),
    ),
    ErrorKind(
        "illegal_transition",
        -32003,
        "The status can't change this way.",
        ("task", "from", "to", "allowed", "running", "open_children"),
    ),
    ErrorKind(
        "blocked",
        -32004,
        "The task has open blockers or unfinished children, or is deferred.",
        ("task", "blockers", "not_before", "open_children"),
    ),
    ErrorKind("dependency_cycle", -32005, "The dependency would close a cycle.", ("path",)),
    ErrorKind(
        *("lease_held", -32006, "Another owner holds the task, or it is reserved for one."),
        ("task", "owner", "expires_at", "reserved"),
    ),
    ErrorKind("key_conflict", -32007, "The idempotency key was used with other content.", ("key",)),
    ErrorKind("limit_exceeded", -32008, "A limit was exceeded.", ("limit", "value", "maximum")),
    ErrorKind("storage_full", -32009, "The disk is full; nothing was written, reading still works."),
    ErrorKind(
        "outcome_unknown",
        -32010,
        "The write failed, but may be stored; retry with the same key once the daemon or the space is back.",
        ("space",),
    ),
    ErrorKind("forbidden", -32011, "Not allowed for this user, actor or machine.", ("what",)),
    ErrorKind("shutting_down", -32012, "The daemon is stopping; reconnect and retry."),
    ErrorKind(
        "confirmation_required",
        -32013,
        "Repeat the call with confirm: token.",
        ("token", "summary", "expires_at", "space"),
    ),
    ErrorKind("gap", -32014, "Events after the position are no longer available.", ("after", "first")),
    ErrorKind("wrong_epoch", -32015, "The position belongs to another log.", ("epoch", "expected")),
    ErrorKind("damaged", -32016, "The conversation's log is damaged; it is read-only.", ("conversation", "seq")),
    ErrorKind("lease_lost", -32018, "The claim is no longer in force.", ("task", "fence", "status")),
    ErrorKind(
        "rate_limited",
        -32019,
        "The actor exceeded the list's limit of changes per minute.",
        ("actor", "maximum", "retry_after_ms"),
    ),
    ErrorKind(
        "undo_conflict", -32020, "A newer call depends on the changes to undo.", ("call", "newer", "actor", "task")
    ),
    ErrorKind(
        "unreachable", -32021, "The space can't be reached or used; nothing was written.", ("space", "since", "reason")
    ),
    ErrorKind("diverged", -32022, "The shared list differs from this machine's copy.", ("conversation", "space")),
    ErrorKind(
        "upgrade_needed",
        -32023,
        "A later version of punchlist wrote to the shared list; it is read-only here.",
        ("conversation", "space"),
    ),
    ErrorKind("cancelled", -32017, "The waiting call was cancelled with rpc.cancel."),
)

ERRORS: dict[str, ErrorKind] = {row.kind: row for row in _ROWS}


@final
class Rejection(msgspec.Struct, frozen=True):
    """An error as a value.

    Attributes:
        kind: Key of `ERRORS`.
        message: Full sentences for people: the cause, and what to do.
        data: The members listed in the row of `ERRORS`.
    """

    kind: str
    message: str
    data: dict[str, Any] = {}

    @property
    def code(self) -> int:
        """The JSON-RPC error code of this kind."""
        return ERRORS[self.kind].code


class ErrorObject(msgspec.Struct, frozen=True):
    """The `error` member of a JSON-RPC response; `data.kind` is always present."""

    code: int
    message: str
    data: dict[str, Any] = {}


def error_object(rejection: Rejection) -> ErrorObject:
    """Return the wire form of a rejection."""
    return ErrorObject(rejection.code, rejection.message, {"kind": rejection.kind, **rejection.data})
