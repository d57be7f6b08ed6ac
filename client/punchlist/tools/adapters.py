"""Adapters for agent frameworks and model APIs. A framework is imported only by the function that is about it."""

from collections.abc import Iterable
from importlib import import_module
from typing import Any, cast

from punchlist.tools.catalog import offered
from punchlist.tools.model import Dialect, Reply
from punchlist.tools.schema import parameters
from punchlist.tools.toolbox import AsyncToolbox, Toolbox

Named = str | Dialect | Iterable[str]
"""A dialect, its name, or the names of several."""


def agents_tools(name: Named, box: AsyncToolbox, tools: Iterable[str] | None = None) -> list[Any]:
    """The tools of a dialect as `FunctionTool`s of the OpenAI Agents SDK, for `Agent(tools=...)`.

    Raises:
        ImportError: `openai-agents` is not installed.
        Problem: There is no such dialect, or no such tool.
    """
    function_tool: Any = import_module("agents").FunctionTool

    def made(chosen: Dialect, tool_name: str) -> Any:
        async def invoke(_context: object, arguments: str) -> str:
            return (await box.call(chosen, tool_name, arguments)).text

        return invoke

    return [
        function_tool(
            name=tool.name,
            description=tool.text,
            params_json_schema={"properties": {}, **parameters(tool.arguments)},
            on_invoke_tool=made(chosen, tool.name),
            strict_json_schema=False,
        )
        for chosen in offered(name, tools)
        for tool in chosen.tools
    ]


def answer_openai(name: Named, box: Toolbox, message: Any, tools: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """The messages that answer an assistant message of the Chat Completions API, one for each of its tool calls."""
    chosen = offered(name, tools)
    answers: list[dict[str, Any]] = []
    for call in _member(message, "tool_calls") or ():
        function = _member(call, "function")
        reply = _called(chosen, box, _member(function, "name"), _member(function, "arguments"))
        answers.append({"role": "tool", "tool_call_id": _member(call, "id"), "content": reply.text})
    return answers


def answer_responses(
    name: Named, box: Toolbox, output: Iterable[Any], tools: Iterable[str] | None = None
) -> list[dict[str, Any]]:
    """The input items that answer the output of OpenAI's Responses API, one for each `function_call` in it."""
    chosen = offered(name, tools)
    answers: list[dict[str, Any]] = []
    for item in output:
        if _member(item, "type") == "function_call":
            reply = _called(chosen, box, _member(item, "name"), _member(item, "arguments"))
            answer = {"type": "function_call_output", "call_id": _member(item, "call_id"), "output": reply.text}
            answers.append(answer)
    return answers


def answer_anthropic(
    name: Named, box: Toolbox, content: Iterable[Any], tools: Iterable[str] | None = None
) -> dict[str, Any] | None:
    """The user message that answers the content of an Anthropic message, or None if it calls no tool."""
    chosen = offered(name, tools)
    results: list[dict[str, Any]] = []
    for block in content:
        if _member(block, "type") == "tool_use":
            reply = _called(chosen, box, _member(block, "name"), _member(block, "input"))
            result = {"type": "tool_result", "tool_use_id": _member(block, "id"), "content": reply.text}
            results.append(result | ({"is_error": True} if reply.refused else {}))
    return {"role": "user", "content": results} if results else None


def _called(chosen: tuple[Dialect, ...], box: Toolbox, name: str, arguments: object) -> Reply:
    """The call of a tool in the dialect that has it; where none has, the first one says so."""
    return box.call(next((one for one in chosen if one.tool(name)), chosen[0]), name, arguments)


def _member(value: Any, name: str) -> Any:
    return cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else getattr(value, name, None)
