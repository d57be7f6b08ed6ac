"""The envelopes of MCP's messages, and what happens to a host's line: the worker's only knowledge of MCP.

The rest of a message stays as it is, in both directions.
"""

from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from punchlist_apps.mcp.event_types import CONVERSATION_KEY, RESUMED_KEY

KEPT = frozenset({"initialize", "notifications/initialized", "resources/subscribe", "logging/setLevel"})
"""Methods whose lines are the state of a session: each later worker gets them again."""

CHANGING = "tools/call"
CANCELLED = "notifications/cancelled"
SUBSCRIBE = "resources/subscribe"
UNSUBSCRIBE = "resources/unsubscribe"
STREAM = "events/stream"
_STREAM_FRAMES = "notifications/events/"

_INTERNAL_ERROR = -32603
_BROKE = (
    "punchlist's server ended several times during this request, so it was not tried again. "
    "See the list for what it has changed."
)


class Envelope(msgspec.Struct, omit_defaults=True):
    """A request, a notification or a response.

    Attributes:
        id: Missing in notifications; None in responses to lines that can't be read.
        method: Missing in responses.
    """

    jsonrpc: str = ""
    id: str | int | float | None | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET

    @property
    def is_request(self) -> bool:
        return self.method is not UNSET and self.id is not UNSET

    @property
    def is_valid(self) -> bool:
        """Whether the SDK processes this request. It gives an invalid one no response."""
        has_params = self.params is UNSET or bytes(self.params)[:1] in (b"{", b"n")
        return self.jsonrpc == "2.0" and isinstance(self.id, str | int) and has_params

    def find_param(self, name: str) -> Any:
        """Return a member of the params, or None."""
        try:
            return None if self.params is UNSET else _members.decode(self.params).get(name)
        except msgspec.MsgspecError:
            return None


_decoder = msgspec.json.Decoder(Envelope)
_members = msgspec.json.Decoder(dict[str, Any])


def decode(line: bytes) -> Envelope | None:
    """Return a line's envelope, or None if the line isn't a message."""
    try:
        return _decoder.decode(line)
    except msgspec.MsgspecError:
        return None


def encode(envelope: Envelope) -> bytes:
    return msgspec.json.encode(envelope) + b"\n"


def encode_message(**members: Any) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", **members}) + b"\n"


def encode_cancellation(id: str) -> bytes:
    """Return the notification that withdraws a question to the host."""
    return encode_message(method=CANCELLED, params={"requestId": id, "reason": "the server was restarted"})


def encode_broken(id: Any) -> bytes:
    """Return the response to a request during which several workers ended."""
    return encode_message(id=id, error={"code": _INTERNAL_ERROR, "message": _BROKE})


class StreamFrame(msgspec.Struct, rename={"meta": "_meta"}):
    """The params of a stream's notification."""

    meta: dict[str, Any] = {}
    cursor: str = ""


def decode_stream_frame(message: Envelope) -> StreamFrame | None:
    """Return the params of a message that belongs to a stream, or None if it doesn't."""
    is_frame = isinstance(message.method, str) and message.method.startswith(_STREAM_FRAMES)
    return msgspec.json.decode(message.params, type=StreamFrame) if is_frame and message.params else None


def advance(request: Envelope, frame: StreamFrame) -> Envelope:
    """Return the request that continues a stream after a notification, on the same list."""
    params: dict[str, Any] = _members.decode(request.params or b"{}")
    arguments: dict[str, Any] = params.get("arguments") or {}
    meta: dict[str, Any] = params.get("_meta") or {}
    members = {
        "arguments": arguments | {"conversation": frame.meta.get(CONVERSATION_KEY)},
        "cursor": frame.cursor,
        "_meta": meta | {RESUMED_KEY: True},
    }
    return msgspec.structs.replace(request, params=Raw(msgspec.json.encode(params | members)))
