"""The client's side of JSON-RPC 2.0: encodes requests, and decodes responses and notifications.

The daemon's side is in `punchlistd.net.jsonrpc`.
"""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from punchlist_schemas.errors import ErrorObject
from punchlist_schemas.params import Params

NO_PARAMS = Raw(b"{}")


class Reply(msgspec.Struct, frozen=True, gc=False):
    """Response to a request: exactly one of `result` and `error` is set."""

    id: int | str | None
    result: Raw | UnsetType = UNSET
    error: ErrorObject | UnsetType = UNSET


class Notice(msgspec.Struct, frozen=True, gc=False):
    """Notification from the daemon."""

    method: str
    params: Raw = NO_PARAMS


class _Request(msgspec.Struct, frozen=True, gc=False):
    jsonrpc: str
    id: int | str
    method: str
    params: Any


class _Message(msgspec.Struct, frozen=True, gc=False):
    jsonrpc: Literal["2.0"]
    id: int | str | None | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: ErrorObject | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw = NO_PARAMS


_decode_message = msgspec.json.Decoder(_Message).decode
_encode = msgspec.json.Encoder().encode


def encode_request(id: int | str, method: str, params: Params | dict[str, Any]) -> bytes:
    """Return a request as the payload of one frame."""
    return _encode(_Request("2.0", id, method, params))


def decode_message(frame: bytes) -> Reply | Notice:
    """Decode a message from the daemon.

    Raises:
        ValueError: The message is neither a response nor a notification.
    """
    try:
        message = _decode_message(frame)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not a JSON-RPC message: {error}") from error
    if message.method is not UNSET and message.id is UNSET:
        return Notice(message.method, message.params)
    if message.id is UNSET or (message.result is UNSET) == (message.error is UNSET):
        raise ValueError("neither a response nor a notification")
    return Reply(message.id, message.result, message.error)
