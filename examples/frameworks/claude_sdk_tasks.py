"""An agent of the Claude Agent SDK that works on a list of punchlist, with the tools in this process.

pip install punchlist claude-agent-sdk
python claude_sdk_tasks.py "prepare the release"
"""

import asyncio
import sys

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

import punchlist
from punchlist import tools
from punchlist.tools.adapters import claude_sdk_server


async def main(request: str) -> str:
    async with punchlist.connect_async() as client:
        box = tools.AsyncToolbox(client, tools.ToolCaller("release", actor="claude"))
        options = ClaudeAgentOptions(
            system_prompt=tools.prompt("native"),
            mcp_servers={"punchlist": claude_sdk_server("native", box)},
            allowed_tools=["mcp__punchlist"],
        )
        answers = [message async for message in query(prompt=request, options=options)]
        return next(str(message.result) for message in answers if isinstance(message, ResultMessage))


if __name__ == "__main__":
    print(asyncio.run(main(sys.argv[1])))
