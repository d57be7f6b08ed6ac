"""A LangChain agent whose todos are a list of punchlist: they outlive the program, and other agents see them.

pip install punchlist langchain langchain-openai
python langchain_todos.py "prepare the release"
"""

import sys
from typing import Any

from langchain.agents import create_agent

import punchlist
from punchlist.tools import Toolbox, ToolCaller
from punchlist.tools.adapters import todo_middleware


def main(model: Any, request: str) -> str:
    with punchlist.connect() as client:
        box = Toolbox(client, ToolCaller("release", actor="langchain"))
        agent = create_agent(model, middleware=[todo_middleware(box)])  # was: [TodoListMiddleware()]
        return agent.invoke({"messages": [("user", request)]})["messages"][-1].text


if __name__ == "__main__":
    print(main("openai:gpt-5.5", sys.argv[1]))
