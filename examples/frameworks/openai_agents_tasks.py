"""An agent of the OpenAI Agents SDK that works on a list of punchlist.

pip install punchlist openai-agents
python openai_agents_tasks.py "prepare the release"
"""

import asyncio
import sys
from typing import Any

from agents import Agent, Runner

import punchlist
from punchlist import tools
from punchlist.tools.adapters import agents_tools


async def main(model: Any, request: str) -> str:
    async with punchlist.connect_async() as client:
        box = tools.AsyncToolbox(client, tools.ToolCaller("release", actor="openai-agents"))
        agent = Agent("worker", instructions=tools.prompt("native"), model=model, tools=agents_tools("native", box))
        return (await Runner.run(agent, request)).final_output


if __name__ == "__main__":
    print(asyncio.run(main("gpt-5.5", sys.argv[1])))
