"""Converts the params of calls as the router does, but without a connection."""

from typing import Any

import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.methods import Method
from punchlist_schemas.params import Params
from punchlistd.net import jsonrpc


def parse_params(method: Method, params: dict[str, Any] | list[Any]) -> Params | Rejection:
    """Return the typed params of a call, or a rejection."""
    try:
        return msgspec.convert(params, method.params)
    except msgspec.ValidationError as error:
        return jsonrpc.invalid_params(method, error)
