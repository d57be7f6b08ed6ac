"""A chat assistant of your own: an agent of the OpenAI Agents SDK whose tools are those of `punch agent mcp --http`.

It keeps the sequence fetch, append, run, persist, respond. What was said is in the log as messages, which are never
changed and each have an id of their own, whatever ids the SDK gives. Users are kept apart by the daemon: `--users FILE`
says which user a token may name.

    punch agent mcp --http --dialect todo-v1 --users users.json
    MCP_TOKEN=… OPENAI_BASE_URL=… OPENAI_API_KEY=… python agent_over_mcp.py MODEL USER THREAD "show me my tasks"

Prefer `punch chat` unless you need an agent of your own. Here the model alone decides what it says about your tasks,
and the question before a deletion passes through its hands.
"""

import asyncio
import os
import sys
from typing import Any

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    set_tracing_disabled,
)
from agents.mcp import MCPServerStreamableHttp
from openai import AsyncOpenAI

from punchlist import connect_async

HISTORY = 20
WAIT_S = 30.0
GUIDE = """You are a Todo AI Assistant. For greetings and questions about yourself call no tool and speak of no tasks.
Whatever you say about tasks comes from a tool's result of this turn. Ask the user before you delete or rename."""


async def answer(model: str, user: str, thread: str, text: str) -> str:
    """Answer one message of a thread.

    Args:
        model: The model's name; the environment says where it is, as the SDK reads it.
        user: Whose tasks it is about.
        thread: The conversation that keeps what was said; it is made with its first message.
        text: What the user says.
    """
    set_tracing_disabled(True)  # else what is said is exported wherever a key of OpenAI lies in the environment
    async with connect_async(user=user) as client:
        said = client.conversation(thread, actor="assistant")
        await said.open(kind="chat")
        page = await said.messages(limit=HISTORY, order="desc", roles=("user", "assistant"))
        past: list[Any] = [{"role": one.role, "content": one.content["text"]} for one in reversed(page.messages)]
        message = await said.append_message("user", {"text": text})
        past.insert(0, {"role": "system", "content": f"The current user's ID is: {user!r}. You MUST use this user_id."})
        reply = await _run(model, [*past, {"role": "user", "content": text}], thread)
        await said.append_message("assistant", {"text": reply}, message=f"{message.message}.a")
        return reply


async def _run(model: str, given: list[Any], thread: str) -> str:
    headers = {"Authorization": f"Bearer {os.environ['MCP_TOKEN']}"}
    url = os.environ.get("MCP_URL", "http://127.0.0.1:8321/mcp")
    kind = OpenAIResponsesModel if os.environ.get("OPENAI_API") == "responses" else OpenAIChatCompletionsModel
    async with (
        AsyncOpenAI(max_retries=0) as api,
        MCPServerStreamableHttp(
            {"url": url, "headers": headers, "timeout": WAIT_S},
            cache_tools_list=True,
            client_session_timeout_seconds=WAIT_S,
        ) as tools,
    ):
        there = [tool.name for tool in await tools.list_tools()]
        print(f"MCP tools available to agent: {there}", file=sys.stderr)
        agent = Agent(name="todo", instructions=GUIDE, model=kind(model, api), mcp_servers=[tools])
        running = Runner.run_streamed(
            agent, given, max_turns=8, run_config=RunConfig(tracing_disabled=True, group_id=thread)
        )
        async for event in running.stream_events():
            if event.type == "run_item_stream_event" and event.name == "tool_called":
                print(f"· {getattr(event.item.raw_item, 'name', '')}", file=sys.stderr)
        return str(running.final_output or "")


if __name__ == "__main__":
    print(asyncio.run(answer(*sys.argv[1:])))
