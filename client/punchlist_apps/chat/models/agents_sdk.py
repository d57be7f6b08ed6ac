"""Models through the OpenAI Agents SDK, for Responses and for those who have it: the extra `chat-sdk`.

The SDK runs the loop; what it wants to call is written down before its tools run, and its tools are our calls. Its
tracing, which would export what is said wherever a key lies in the environment, is off, and so are its retries.
"""

import json
from typing import Any, cast

from agents import (
    Agent,
    FunctionTool,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    RunHooks,
    Runner,
    set_tracing_disabled,
)
from agents.agent import ToolsToFinalOutputResult
from agents.exceptions import AgentsException, MaxTurnsExceeded
from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI, OpenAIError, Timeout

from punchlist_apps.chat.models.port import Away, Work
from punchlist_apps.chat.models.requests import OF_KEYS, Limits, reason, retry_after
from punchlist_apps.chat.toolset import Wanted, cleaned

_MOST_TURNS = 12
"""A bound of last resort: the turn itself counts steps, and ends before."""


class AgentsSdk:
    """A model behind a URL, asked through the SDK.

    Args:
        key: What it wants to see, if anything.
        responses: Whether it speaks Responses; else Chat Completions.
    """

    def __init__(
        self, name: str, base_url: str, key: str = "", limits: Limits | None = None, *, responses: bool = False
    ) -> None:
        set_tracing_disabled(True)
        self.name = name
        self._limits = limits or Limits()
        self._url = base_url
        self._key = key
        self._kind = OpenAIResponsesModel if responses else OpenAIChatCompletionsModel

    async def run(self, work: Work, instructions: str, definitions: list[dict[str, Any]]) -> tuple[str, dict[str, int]]:
        waits = Timeout(max(self._limits.first_s, self._limits.silent_s), connect=self._limits.connect_s)
        try:
            client = AsyncOpenAI(base_url=self._url, api_key=self._key or "none", max_retries=0, timeout=waits)
        except (OpenAIError, ValueError) as error:
            raise Away("configuration", str(error)) from None
        async with client:
            return await self._run(client, work, instructions, definitions)

    async def _run(
        self, client: AsyncOpenAI, work: Work, instructions: str, definitions: list[dict[str, Any]]
    ) -> tuple[str, dict[str, int]]:
        hooks = _Hooks(work)
        agent: Agent[None] = Agent(
            name="punchlist",
            instructions=instructions,
            model=self._kind(self.name, client),
            model_settings=ModelSettings(include_usage=True),
            tools=[_tool(one["function"], work) for one in definitions],
            tool_use_behavior=lambda _context, _results: ToolsToFinalOutputResult(work.is_over, ""),
        )
        given: list[Any] = [*work.history]
        for calls, results in work.taken:
            given += _items(calls, results)
        running = Runner.run_streamed(
            agent, given, max_turns=_MOST_TURNS, hooks=hooks, run_config=RunConfig(tracing_disabled=True)
        )
        try:
            async for event in running.stream_events():
                if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                    work.delta(event.data.delta)
        except Exception as error:
            raise (hooks.away or _away(error, self._key)) from None
        finally:
            running.cancel()
        return str(running.final_output or ""), hooks.usage


def _tool(function: dict[str, Any], work: Work) -> FunctionTool:
    async def invoke(context: Any, _arguments: str) -> str:
        return await work.call(context.tool_call_id)

    return FunctionTool(
        name=function["name"],
        description=function["description"],
        params_json_schema=function["parameters"],
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


def _items(calls: list[Wanted], results: list[str]) -> list[dict[str, Any]]:
    made = [
        {"type": "function_call", "call_id": one.id, "name": one.tool, "arguments": json.dumps(one.arguments)}
        for one in calls
    ]
    told = [
        {"type": "function_call_output", "call_id": one.id, "output": result}
        for one, result in zip(calls, results, strict=True)
    ]
    return made + told


class _Hooks(RunHooks[Any]):
    """Writes the calls of each answer down before the SDK makes the first of them."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.usage: dict[str, int] = {}
        self.away: Away | None = None

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        """Called when the model has answered, before any tool runs."""
        usage = {"input": int(response.usage.input_tokens), "output": int(response.usage.output_tokens)}
        made = [item for item in cast("list[Any]", response.output) if getattr(item, "type", "") == "function_call"]
        if not made:
            self.usage = usage
            return
        calls = [Wanted(item.call_id, item.name, cleaned(item.arguments)) for item in made]
        try:
            if len({one.id for one in calls}) < len(calls):
                raise Away("malformed", "several of its calls have one id")
            await self._work.step(calls, usage)
        except Away as away:
            self.away = away
            raise


def _away(error: Exception, key: str) -> Away:
    """What a fault of the SDK or of the server means for the turn."""
    if isinstance(error, Away):
        return error
    if isinstance(error, APIStatusError):
        said = "" if error.status_code in OF_KEYS else reason(error.response.content, key)
        return Away(str(error.status_code), said, retry_after(error.response.headers.get("retry-after", "")))
    kind = next((kind for type_, kind in _KINDS if isinstance(error, type_)), "cut")
    return Away(kind, type(error).__name__)


_KINDS: tuple[tuple[type[Exception], str], ...] = (
    (APITimeoutError, "timeout"),
    (APIConnectionError, "unreachable"),
    (MaxTurnsExceeded, "steps"),
    (AgentsException, "malformed"),
    (OpenAIError, "malformed"),
    (ValueError, "malformed"),
    (TypeError, "malformed"),
    (KeyError, "malformed"),
)
"""Fault → how the model is away; the first that fits decides."""
