"""Models through the OpenAI Agents SDK, for Responses and Chat Completions. Needs the extra `chat-sdk`.

The SDK runs the loop. A response's tool calls are stored before its tools run, and the tools make the turn's calls. The
SDK's tracing is off, because it would export messages if the environment contains an API key. Retries are off too.
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

from punchlist_apps.chat.models.port import ModelError, Work
from punchlist_apps.chat.models.requests import KEY_STATUSES, Limits, parse_retry_after, read_reason
from punchlist_apps.chat.toolset import ToolCall, clean_arguments

_MAX_TURNS = 12
"""Maximum number of iterations of the SDK's loop. The turn's own limit on steps is lower."""


class AgentsSdk:
    """A model at a URL, called through the SDK.

    Args:
        key: API key; empty for none.
        responses: Whether to use the Responses API instead of Chat Completions.
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
        timeout = Timeout(max(self._limits.first_s, self._limits.silent_s), connect=self._limits.connect_s)
        try:
            client = AsyncOpenAI(base_url=self._url, api_key=self._key or "none", max_retries=0, timeout=timeout)
        except (OpenAIError, ValueError) as error:
            raise ModelError("configuration", str(error)) from None
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
            tools=[_build_tool(definition["function"], work) for definition in definitions],
            tool_use_behavior=lambda _context, _results: ToolsToFinalOutputResult(work.is_finished, ""),
        )
        items: list[Any] = [*work.history]
        for calls, results in work.finished_steps:
            items += _build_items(calls, results)
        run = Runner.run_streamed(
            agent, items, max_turns=_MAX_TURNS, hooks=hooks, run_config=RunConfig(tracing_disabled=True)
        )
        try:
            async for event in run.stream_events():
                if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                    work.add_delta(event.data.delta)
        except Exception as error:
            raise (hooks.error or _to_model_error(error, self._key)) from None
        finally:
            run.cancel()
        return str(run.final_output or ""), hooks.usage


def _build_tool(function: dict[str, Any], work: Work) -> FunctionTool:
    async def invoke(context: Any, _arguments: str) -> str:
        return await work.make_call(context.tool_call_id)

    return FunctionTool(
        name=function["name"],
        description=function["description"],
        params_json_schema=function["parameters"],
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


def _build_items(calls: list[ToolCall], results: list[str]) -> list[dict[str, Any]]:
    requests = [
        {"type": "function_call", "call_id": call.id, "name": call.tool, "arguments": json.dumps(call.arguments)}
        for call in calls
    ]
    outputs = [
        {"type": "function_call_output", "call_id": call.id, "output": result}
        for call, result in zip(calls, results, strict=True)
    ]
    return requests + outputs


class _Hooks(RunHooks[Any]):
    """Stores the calls in each response before the SDK makes the first of them."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.usage: dict[str, int] = {}
        self.error: ModelError | None = None

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        """Store the calls in a response. The SDK runs this before any tool."""
        usage = {"input": int(response.usage.input_tokens), "output": int(response.usage.output_tokens)}
        items = [item for item in cast("list[Any]", response.output) if getattr(item, "type", "") == "function_call"]
        if not items:
            self.usage = usage
            return
        calls = [ToolCall(item.call_id, item.name, clean_arguments(item.arguments)) for item in items]
        try:
            if len({call.id for call in calls}) < len(calls):
                raise ModelError("malformed", "several of its calls have the same id")
            await self._work.plan_step(calls, usage)
        except ModelError as error:
            # `_run` raises this error in place of the SDK's exception.
            self.error = error
            raise


def _to_model_error(error: Exception, key: str) -> ModelError:
    if isinstance(error, ModelError):
        return error
    if isinstance(error, APIStatusError):
        reason = "" if error.status_code in KEY_STATUSES else read_reason(error.response.content, key)
        return ModelError(
            str(error.status_code), reason, parse_retry_after(error.response.headers.get("retry-after", ""))
        )
    kind = next((kind for type_, kind in _KINDS if isinstance(error, type_)), "cut")
    return ModelError(kind, type(error).__name__)


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
"""Exception → kind of error. The first match wins."""
