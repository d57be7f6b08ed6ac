"""Puts a tool's question to the user where the client can (elicitation), in either era of the protocol."""

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
    """Whether the client can show a form to its user."""
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.elicitation is None:
        return False
    return capabilities.elicitation.form is not None or capabilities.elicitation.url is None


def is_modern(context: Context) -> bool:
    """Whether the request is of an era without requests from the server."""
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def build_request(question: Question) -> InputRequiredResult:
    """The answer that makes a modern client ask and call again."""
    form = ElicitRequestFormParams(message=question.text, requested_schema=_FORM)
    return InputRequiredResult(input_requests={_NAME: ElicitRequest(params=form)}, request_state=question.token)


def parse_answer(params: CallToolRequestParams) -> tuple[str, bool] | None:
    """The token of a question and whether the user agreed, if the call brings an answer."""
    given = (params.input_responses or {}).get(_NAME)
    if not isinstance(given, ElicitResult) or params.request_state is None:
        return None
    return params.request_state, _is_yes(given)


async def ask(context: Context, question: Question) -> bool:
    """Ask a client of the handshake era while its call is open."""
    result = await context.session.elicit_form(question.text, _FORM, related_request_id=context.request_id)
    return _is_yes(result)


def _is_yes(result: ElicitResult) -> bool:
    return result.action == "accept" and bool((result.content or {}).get(_NAME))
