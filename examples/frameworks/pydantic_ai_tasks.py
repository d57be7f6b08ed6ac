"""A Pydantic AI agent that works on a list of punchlist.

pip install punchlist 'pydantic-ai-slim[openai]'
python pydantic_ai_tasks.py "prepare the release"
"""

import asyncio
import sys
from typing import Any

from pydantic_ai import Agent

import punchlist
from punchlist import tools
from punchlist.tools.adapters import pydantic_toolset


async def main(model: Any, request: str) -> str:
    async with punchlist.connect_async() as client:
        box = tools.AsyncToolbox(client, tools.ToolCaller("release", actor="pydantic-ai"))
        agent = Agent(model, instructions=tools.prompt("native"), toolsets=[pydantic_toolset("native", box)])
        return (await agent.run(request)).output


if __name__ == "__main__":
    print(asyncio.run(main("openai:gpt-5.5", sys.argv[1])))
