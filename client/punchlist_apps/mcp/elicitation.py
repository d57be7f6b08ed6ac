"""Asks the user a tool's question through the client (elicitation), in both eras of the protocol."""

from typing import Any

from mcp.server.context import ServerRequestContext
from mcp_types import CallToolRequestParams, ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from punchlist.tools.model import Question

_NAME = "confirm"
_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {_NAME: {"type": "boolean", "title": "Yes, do it"}},
    "required": [_NAME],
}

Context = ServerRequestContext[Any, Any]


def can_ask(context: Context) -> bool:
    """Return whether the client can show a form to its user."""
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.elicitation is None:
        return False
    return capabilities.elicitation.form is not None or capabilities.elicitation.url is None


def is_modern(context: Context) -> bool:
    """Return whether the request's protocol version doesn't support requests from the server to the client."""
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def build_request(question: Question) -> InputRequiredResult:
    """Return the result that makes a modern client ask the user and repeat the call."""
    form = ElicitRequestFormParams(message=question.text, requested_schema=_FORM)
    return InputRequiredResult(input_requests={_NAME: ElicitRequest(params=form)}, request_state=question.token)


def parse_answer(params: CallToolRequestParams) -> tuple[str, bool] | None:
    """Return the question's token and whether the user agreed, or None if the call contains no answer."""
    response = (params.input_responses or {}).get(_NAME)
    if not isinstance(response, ElicitResult) or params.request_state is None:
        return None
    return params.request_state, _is_yes(response)


async def ask(context: Context, question: Question) -> bool:
    """Ask the user while the call is open, by sending a request to a client of the handshake era."""
    result = await context.session.elicit_form(question.text, _FORM, related_request_id=context.request_id)
    return _is_yes(result)


def _is_yes(result: ElicitResult) -> bool:
    return result.action == "accept" and bool((result.content or {}).get(_NAME))
