"""Adapters for agent frameworks and model APIs. Each function imports its framework itself."""

from collections.abc import Iterable
from importlib import import_module
from typing import Any, cast

from punchlist.tools.catalog import offered
from punchlist.tools.model import Dialect, Reply
from punchlist.tools.schema import build_parameters
from punchlist.tools.toolbox import AsyncToolbox, Toolbox

DialectChoice = str | Dialect | Iterable[str]
"""A dialect, its name, or several names."""


def agents_tools(name: DialectChoice, box: AsyncToolbox, tools: Iterable[str] | None = None) -> list[Any]:
    """Return the tools of a dialect as `FunctionTool`s of the OpenAI Agents SDK, for `Agent(tools=...)`.

    Raises:
        ImportError: `openai-agents` is not installed.
        Problem: Unknown dialect or tool.
    """
    function_tool: Any = import_module("agents").FunctionTool

    def build_handler(dialect: Dialect, tool_name: str) -> Any:
        async def invoke(_context: object, arguments: str) -> str:
            return (await box.call(dialect, tool_name, arguments)).text

        return invoke

    return [
        function_tool(
            name=tool.name,
            description=tool.text,
            params_json_schema={"properties": {}, **build_parameters(tool.arguments)},
            on_invoke_tool=build_handler(dialect, tool.name),
            strict_json_schema=False,
        )
        for dialect in offered(name, tools)
        for tool in dialect.tools
    ]


def answer_openai(
    name: DialectChoice, box: Toolbox, message: Any, tools: Iterable[str] | None = None
) -> list[dict[str, Any]]:
    """Run the tool calls of an assistant message (Chat Completions API). Return one result message for each call."""
    dialects = offered(name, tools)
    answers: list[dict[str, Any]] = []
    for call in _get_member(message, "tool_calls") or ():
        function = _get_member(call, "function")
        reply = _call_tool(dialects, box, _get_member(function, "name"), _get_member(function, "arguments"))
        answers.append({"role": "tool", "tool_call_id": _get_member(call, "id"), "content": reply.text})
    return answers


def answer_responses(
    name: DialectChoice, box: Toolbox, output: Iterable[Any], tools: Iterable[str] | None = None
) -> list[dict[str, Any]]:
    """Run each `function_call` in the output of OpenAI's Responses API. Return one input item for each."""
    dialects = offered(name, tools)
    answers: list[dict[str, Any]] = []
    for item in output:
        if _get_member(item, "type") == "function_call":
            reply = _call_tool(dialects, box, _get_member(item, "name"), _get_member(item, "arguments"))
            answer = {"type": "function_call_output", "call_id": _get_member(item, "call_id"), "output": reply.text}
            answers.append(answer)
    return answers


def answer_anthropic(
    name: DialectChoice, box: Toolbox, content: Iterable[Any], tools: Iterable[str] | None = None
) -> dict[str, Any] | None:
    """Run the tool calls in the content of an Anthropic message. Return the user message with the results.

    Return None if the content has no tool calls.
    """
    dialects = offered(name, tools)
    results: list[dict[str, Any]] = []
    for block in content:
        if _get_member(block, "type") == "tool_use":
            reply = _call_tool(dialects, box, _get_member(block, "name"), _get_member(block, "input"))
            result = {"type": "tool_result", "tool_use_id": _get_member(block, "id"), "content": reply.text}
            results.append(result | ({"is_error": True} if reply.refused else {}))
    return {"role": "user", "content": results} if results else None


def _call_tool(dialects: tuple[Dialect, ...], box: Toolbox, name: str, arguments: object) -> Reply:
    """Call a tool in the dialect that contains it. If no dialect does, the first one reports the unknown tool."""
    return box.call(next((dialect for dialect in dialects if dialect.tool(name)), dialects[0]), name, arguments)


def _get_member(value: Any, name: str) -> Any:
    return cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else getattr(value, name, None)
