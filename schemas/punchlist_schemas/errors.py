"""Every refusal the daemon can give, as one table: kind, JSON-RPC code, and what its data tells."""

from typing import Any, final

import msgspec


class ErrorKind(msgspec.Struct, frozen=True):
    """A row of the error table."""

    kind: str
    code: int
    meaning: str
    data: tuple[str, ...] = ()
    """Names of the members that `data` may carry beside `kind`."""


_ROWS = (
    ErrorKind("parse_error", -32700, "The frame is not JSON that we accept."),
    ErrorKind("invalid_request", -32600, "The JSON is not a JSON-RPC 2.0 request."),
    ErrorKind("method_not_found", -32601, "Unknown method.", ("method", "nearest")),
    ErrorKind("invalid_params", -32602, "A parameter is missing, unknown or wrong.", ("field", "expected", "nearest")),
    ErrorKind("internal_error", -32603, "A fault of ours; the daemon's log has the details."),
    ErrorKind("not_found", -32001, "No such task, conversation, message or subscription.", ("what", "id", "names")),
    ErrorKind(
        "version_conflict",
        -32002,
        "expect_version did not match, or min_version did not come.",
        ("expected", "actual"),
    ),
    ErrorKind(
        "illegal_transition",
        -32003,
        "The status can't go there from here.",
        ("task", "from", "to", "allowed", "running", "open_children"),
    ),
    ErrorKind(
        "blocked",
        -32004,
        "The task has open blockers or unfinished children, or is deferred.",
        ("task", "blockers", "not_before", "open_children"),
    ),
    ErrorKind("dependency_cycle", -32005, "The edge would close a cycle.", ("path",)),
    ErrorKind(
        *("lease_held", -32006, "Another owner holds the task, or it is reserved for one."),
        ("task", "owner", "expires_at", "reserved"),
    ),
    ErrorKind("key_conflict", -32007, "The idempotency key was used with other content.", ("key",)),
    ErrorKind("limit_exceeded", -32008, "A limit was broken.", ("limit", "value", "maximum")),
    ErrorKind("storage_full", -32009, "The disk is full; nothing was written, reads go on."),
    ErrorKind(
        "outcome_unknown",
        -32010,
        "The write failed below us; retry with the same key once the daemon, or the space of a shared list, is back.",
        ("space",),
    ),
    ErrorKind("forbidden", -32011, "Outside the connection's user scope, or another's to do.", ("what",)),
    ErrorKind("shutting_down", -32012, "The daemon is stopping; reconnect and retry."),
    ErrorKind(
        "confirmation_required",
        -32013,
        "Repeat the call with confirm: token.",
        ("token", "summary", "expires_at", "space"),
    ),
    ErrorKind("gap", -32014, "Events after that position can't be had any more.", ("after", "first")),
    ErrorKind("wrong_epoch", -32015, "The position belongs to another log.", ("epoch", "expected")),
    ErrorKind("damaged", -32016, "The conversation's log is damaged; it is read-only.", ("conversation", "seq")),
    ErrorKind("lease_lost", -32018, "The claim is not in force any more.", ("task", "fence", "status")),
    ErrorKind(
        "rate_limited",
        -32019,
        "The actor makes more changes than the list allows per minute.",
        ("actor", "maximum", "retry_after_ms"),
    ),
    ErrorKind(
        "undo_conflict", -32020, "A newer call rests on what would be taken back.", ("call", "newer", "actor", "task")
    ),
    ErrorKind(
        "unreachable", -32021, "The space can't be reached or used; nothing was written.", ("space", "since", "reason")
    ),
    ErrorKind("diverged", -32022, "The shared list is not what this replica follows from.", ("conversation", "space")),
    ErrorKind(
        "upgrade_needed", -32023, "A later version wrote to the shared list; read-only.", ("conversation", "space")
    ),
    ErrorKind("cancelled", -32017, "The waiting call was given up by rpc.cancel."),
)

ERRORS: dict[str, ErrorKind] = {row.kind: row for row in _ROWS}


@final
class Rejection(msgspec.Struct, frozen=True):
    """A refusal as a value: its kind, one sentence that says what to do, and the facts.

    `kind` is a key of `ERRORS`; `data` holds the members which that row names.
    """

    kind: str
    message: str
    data: dict[str, Any] = {}

    @property
    def code(self) -> int:
        """The JSON-RPC error code of this kind."""
        return ERRORS[self.kind].code


class ErrorObject(msgspec.Struct, frozen=True):
    """The `error` member of a JSON-RPC response; `data.kind` is always there."""

    code: int
    message: str
    data: dict[str, Any] = {}


def error_object(rejection: Rejection) -> ErrorObject:
    """The wire form of a refusal."""
    return ErrorObject(rejection.code, rejection.message, {"kind": rejection.kind, **rejection.data})
