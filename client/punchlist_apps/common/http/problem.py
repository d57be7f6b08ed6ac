"""Errors over HTTP: `application/problem+json` (RFC 9457), and the HTTP status for each kind of error."""

from typing import Any, NamedTuple

import msgspec

from punchlist.errors import PunchlistError, RequestRefused
from punchlist_schemas.errors import ERRORS

STATUS: dict[str, int] = {
    "parse_error": 400,
    "invalid_request": 400,
    "forbidden": 403,
    "not_found": 404,
    "method_not_found": 404,
    "illegal_transition": 409,
    "blocked": 409,
    "dependency_cycle": 409,
    "lease_held": 409,
    "lease_lost": 409,
    "damaged": 409,
    "gap": 410,
    "wrong_epoch": 410,
    "version_conflict": 412,
    "undo_conflict": 409,
    "invalid_params": 422,
    "key_conflict": 422,
    "limit_exceeded": 422,
    "confirmation_required": 428,
    "rate_limited": 429,
    "internal_error": 500,
    "shutting_down": 503,
    "outcome_unknown": 503,
    "cancelled": 503,
    "unreachable": 503,
    "diverged": 409,
    "upgrade_needed": 409,
    "storage_full": 507,
}
"""Kind in the protocol's error table -> HTTP status."""

HTTP_ERRORS: dict[str, tuple[int, str]] = {
    "unauthorized": (401, "A bearer token is needed."),
    "ticket_used": (401, "This link was already used: each link signs in one browser, once."),
    "ticket_late": (401, "This link is older than a minute."),
    "ticket_unknown": (401, "This server did not make this link, or all links were revoked."),
    "code_wrong": (401, "This code is wrong, was already used, or is older than a minute."),
    "origin": (403, "Requests of other origins and sites are refused."),
    "read_only": (403, "This token may read and nothing else."),
    "out_of_scope": (403, "This token is for something else."),
    "no_such_path": (404, "Nothing is served at this path."),
    "verb": (405, "This path takes other methods."),
    "too_large": (413, "The body is too large."),
    "content_type": (415, "The body must be application/json."),
    "host": (421, "The Host header must name this server."),
    "too_many_streams": (429, "Too many streams are open."),
    "daemon_unavailable": (503, "The daemon does not answer."),
}
"""Additional kind that is used only over HTTP -> its status and title."""

RETRY_S = 1
"""Minimum `Retry-After` of a 429 or 503, in seconds."""

Headers = list[tuple[bytes, bytes]]


class Problem(NamedTuple):
    """An error: its kind, a sentence that describes it, and details."""

    kind: str
    detail: str = ""
    facts: dict[str, Any] = {}
    headers: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def status(self) -> int:
        if self.kind in HTTP_ERRORS:
            return HTTP_ERRORS[self.kind][0]
        is_frame = self.kind == "limit_exceeded" and self.facts.get("limit") == "frame_bytes"
        return 413 if is_frame else STATUS.get(self.kind, 500)

    def build_response(self) -> tuple[int, Headers, bytes]:
        title = HTTP_ERRORS[self.kind][1] if self.kind in HTTP_ERRORS else ERRORS[self.kind].meaning
        members = {
            "type": f"urn:punchlist:{self.kind}",
            "title": title,
            "status": self.status,
            "detail": self.detail or title,
            "kind": self.kind,
        }
        body = msgspec.json.encode({**self.facts, **members})
        headers = [(b"content-type", b"application/problem+json"), *self.headers]
        if self.status == 401:  # noqa: PLR2004 - RFC 9110 requires the header
            headers.append((b"www-authenticate", b"Bearer"))
        if self.status in (429, 503):
            wait_s = -(-int(self.facts.get("retry_after_ms", 0)) // 1000)
            headers.append((b"retry-after", b"%d" % max(wait_s, RETRY_S)))
        return self.status, headers, body


class Refused(Exception):
    """Raised by a handler that rejects a request."""

    def __init__(self, kind: str, detail: str = "", **facts: Any) -> None:
        super().__init__(kind)
        self.problem = Problem(kind, detail, facts)


def build_problem(error: PunchlistError) -> Problem:
    """Return the problem for an error of the client library."""
    if isinstance(error, RequestRefused) and error.kind in ERRORS:
        return Problem(error.kind, error.message, {name: value for name, value in error.data.items() if name != "kind"})
    return Problem("daemon_unavailable", str(error))
