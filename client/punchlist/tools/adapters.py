"""Adapters for agent frameworks and model APIs. Each function imports its framework itself."""

from collections.abc import Callable, Iterable
from typing import Any, cast

from punchlist.tools.catalog import offered
from punchlist.tools.model import Dialect, Reply, Tool
from punchlist.tools.schema import build_parameters
from punchlist.tools.todos import import_framework, todo_middleware
from punchlist.tools.toolbox import AsyncToolbox, Toolbox

__all__ = [
    "DialectChoice",
    "agents_tools",
    "answer_anthropic",
    "answer_openai",
    "answer_responses",
    "claude_sdk_server",
    "langchain_tools",
    "pydantic_toolset",
    "todo_middleware",
]

DialectChoice = str | Dialect | Iterable[str]
"""A dialect, its name, or several names."""


def agents_tools(name: DialectChoice, box: AsyncToolbox, tools: Iterable[str] | None = None) -> list[Any]:
    """Return the tools of a dialect as `FunctionTool`s of the OpenAI Agents SDK, for `Agent(tools=...)`.

    Raises:
        ImportError: `openai-agents` is not installed.
        Problem: Unknown dialect or tool.
    """
    function_tool = import_framework("agents", "openai-agents").FunctionTool

    def build(dialect: Dialect, tool: Tool, schema: dict[str, Any]) -> Any:
        async def invoke(_context: object, arguments: str) -> str:
            return (await box.call(dialect, tool.name, arguments)).text

        return function_tool(
            name=tool.name,
            description=tool.text,
            params_json_schema=schema,
            on_invoke_tool=invoke,
            strict_json_schema=False,
        )

    return _build_tools(name, tools, build)


def langchain_tools(name: DialectChoice, box: Toolbox, tools: Iterable[str] | None = None) -> list[Any]:
    """Return the tools of a dialect as `StructuredTool`s, for the agents of LangChain, LangGraph and DeepAgents.

    Raises:
        ImportError: `langchain` is not installed.
        Problem: Unknown dialect or tool.
    """
    structured_tool = import_framework("langchain_core.tools", "langchain").StructuredTool

    def build(dialect: Dialect, tool: Tool, schema: dict[str, Any]) -> Any:
        def call(**arguments: Any) -> str:
            return box.call(dialect, tool.name, arguments).text

        return structured_tool(
            name=tool.name, description=tool.text, args_schema={"title": tool.name, **schema}, func=call
        )

    return _build_tools(name, tools, build)


def pydantic_toolset(name: DialectChoice, box: AsyncToolbox, tools: Iterable[str] | None = None) -> Any:
    """Return the tools of a dialect as a `FunctionToolset` of Pydantic AI, for `Agent(toolsets=[...])`.

    Raises:
        ImportError: `pydantic-ai-slim` is not installed.
        Problem: Unknown dialect or tool.
    """
    pydantic_ai = import_framework("pydantic_ai", "pydantic-ai-slim")

    def build(dialect: Dialect, tool: Tool, schema: dict[str, Any]) -> Any:
        # A refusal is a text and not a ModelRetry, because two of these in a row end the agent's run.
        async def call(**arguments: Any) -> str:
            return (await box.call(dialect, tool.name, arguments)).text

        return pydantic_ai.Tool.from_schema(call, tool.name, tool.text, schema)

    return pydantic_ai.FunctionToolset(_build_tools(name, tools, build))


def claude_sdk_server(name: DialectChoice, box: AsyncToolbox, tools: Iterable[str] | None = None) -> Any:
    """Return an MCP server in this process for the Claude Agent SDK.

    Use it as `ClaudeAgentOptions(mcp_servers={"punchlist": ...}, allowed_tools=["mcp__punchlist"])`.

    Raises:
        ImportError: `claude-agent-sdk` is not installed.
        Problem: Unknown dialect or tool.
    """
    sdk = import_framework("claude_agent_sdk", "claude-agent-sdk")

    def build(dialect: Dialect, tool: Tool, schema: dict[str, Any]) -> Any:
        async def call(arguments: dict[str, Any]) -> dict[str, Any]:
            reply = await box.call(dialect, tool.name, arguments)
            return {"content": [{"type": "text", "text": reply.text}], "is_error": reply.refused}

        return sdk.SdkMcpTool(tool.name, tool.text, schema, call)

    return sdk.create_sdk_mcp_server("punchlist", tools=_build_tools(name, tools, build))


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


def _build_tools(
    name: DialectChoice, tools: Iterable[str] | None, build: Callable[[Dialect, Tool, dict[str, Any]], Any]
) -> list[Any]:
    """Call `build` with each offered tool and its JSON Schema, and return the results."""
    return [
        build(dialect, tool, {"type": "object", "properties": {}, **build_parameters(tool.arguments)})
        for dialect in offered(name, tools)
        for tool in dialect.tools
    ]


def _call_tool(dialects: tuple[Dialect, ...], box: Toolbox, name: str, arguments: object) -> Reply:
    """Call a tool in the dialect that contains it. If no dialect does, the first one reports the unknown tool."""
    return box.call(next((dialect for dialect in dialects if dialect.tool(name)), dialects[0]), name, arguments)


def _get_member(value: Any, name: str) -> Any:
    return cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else getattr(value, name, None)
