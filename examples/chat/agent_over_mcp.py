"""A chat assistant: an agent of the OpenAI Agents SDK with the tools of `punch agent mcp --http`.

A turn has five steps: fetch, append, run, persist, respond. The log stores the messages of user and assistant, which
never change and have their own ids, independent of the SDK's. The daemon isolates users: `--users FILE` lists the users
that a token may name.

    punch agent mcp --http --dialect todo-v1 --users users.json
    MCP_TOKEN=… OPENAI_BASE_URL=… OPENAI_API_KEY=… python agent_over_mcp.py MODEL USER THREAD "show me my tasks"

Prefer `punch chat` unless you need your own agent. In this example, the model's statements about tasks are not checked,
and the model itself asks the user before a deletion.
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
        model: Name of the model; the SDK reads its address from the environment.
        user: Owner of the tasks.
        thread: Conversation that stores the messages, created by the first one.
        text: The user's message.
    """
    # Otherwise the SDK exports the messages whenever the environment has an OpenAI key.
    set_tracing_disabled(True)
    async with connect_async(user=user) as client:
        chat = client.conversation(thread, actor="assistant")
        await chat.open(kind="chat")
        page = await chat.messages(limit=HISTORY, order="desc", roles=("user", "assistant"))
        items: list[Any] = [{"role": past.role, "content": past.content["text"]} for past in reversed(page.messages)]
        message = await chat.append_message("user", {"text": text})
        rule = {"role": "system", "content": f"The current user's ID is: {user!r}. You MUST use this user_id."}
        reply = await _run(model, [rule, *items, {"role": "user", "content": text}], thread)
        await chat.append_message("assistant", {"text": reply}, message=f"{message.message}.a")
        return reply


async def _run(model: str, items: list[Any], thread: str) -> str:
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
        names = [tool.name for tool in await tools.list_tools()]
        print(f"MCP tools available to agent: {names}", file=sys.stderr)
        agent = Agent(name="todo", instructions=GUIDE, model=kind(model, api), mcp_servers=[tools])
        run = Runner.run_streamed(
            agent, items, max_turns=8, run_config=RunConfig(tracing_disabled=True, group_id=thread)
        )
        async for event in run.stream_events():
            if event.type == "run_item_stream_event" and event.name == "tool_called":
                print(f"· {getattr(event.item.raw_item, 'name', '')}", file=sys.stderr)
        return str(run.final_output or "")


if __name__ == "__main__":
    print(asyncio.run(answer(*sys.argv[1:])))
