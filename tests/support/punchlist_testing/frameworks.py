"""Runs an example of `examples/frameworks` with a scripted model.

    python -m punchlist_testing.frameworks EXAMPLE

TURNS in the environment is the script as JSON: for each turn a list of tool calls, the final text, or null, at which
the model waits to be killed. Before each turn, the model writes the last message that it received to the FIFO REPORT.
"""

import asyncio
import json
import os
import runpy
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[3] / "examples/frameworks"
Turn = list[tuple[str, dict[str, Any]]] | str
"""Tool calls, or the final text."""


def next_turn(seen: str, turns: Iterator[Turn | None]) -> Turn:
    with open(os.environ["REPORT"], "w", encoding="utf-8") as report:
        report.write(json.dumps(seen) + "\n")
    turn = next(turns)
    while turn is None:
        signal.pause()
    return turn


def run_langchain(example: Any, turns: Iterator[Turn | None]) -> None:
    from punchlist_testing.scripted_chat import ScriptedChat  # noqa: PLC0415 - each framework takes seconds to load

    example["main"](ScriptedChat(respond=lambda messages: next_turn(messages[-1].text, turns)), "Work.")


def run_pydantic_ai(example: Any, turns: Iterator[Turn | None]) -> None:
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart  # noqa: PLC0415
    from pydantic_ai.models.function import FunctionModel  # noqa: PLC0415

    def respond(messages: list[Any], _info: Any) -> Any:
        turn = next_turn(str(messages[-1].parts[-1].content), turns)
        if isinstance(turn, str):
            return ModelResponse([TextPart(turn)])
        return ModelResponse([ToolCallPart(name, args) for name, args in turn])

    asyncio.run(example["main"](FunctionModel(respond), "Work."))


def run_openai_agents(example: Any, turns: Iterator[Turn | None]) -> None:
    from agents import set_tracing_disabled  # noqa: PLC0415
    from agents.testing import ScriptedModel, assistant_message, function_call  # noqa: PLC0415

    set_tracing_disabled(True)

    class Reporting(ScriptedModel):
        async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
            turn = next_turn(input if isinstance(input, str) else str(input[-1].get("output", "")), turns)
            calls = [] if isinstance(turn, str) else [function_call(*call, call_id=str(len(input))) for call in turn]
            self.enqueue([assistant_message(turn)] if isinstance(turn, str) else calls)
            return await super().get_response(system_instructions, input, *args, **kwargs)

    asyncio.run(example["main"](Reporting([]), "Work."))


def run_claude_sdk(example: Any, _turns: Iterator[Turn | None]) -> None:
    asyncio.run(example["main"]("Work."))


def run_claude_code(turns: Iterator[Turn | None]) -> None:
    """Be the program `claude`, as far as the SDK talks to it."""

    def send(kind: str, **members: Any) -> None:
        print(json.dumps({"type": kind, **members}), flush=True)

    def receive() -> Any:
        return json.loads(sys.stdin.readline())

    def call(method: str, **params: Any) -> Any:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        request = {"subtype": "mcp_message", "server_name": "punchlist", "message": message}
        send("control_request", request_id=method, request=request)
        while (reply := receive())["type"] != "control_response":
            pass
        return reply["response"]["response"]["mcp_response"]["result"]

    while (message := receive())["type"] == "control_request":
        response = {"subtype": "success", "request_id": message["request_id"], "response": {}}
        send("control_response", response=response)
    call("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "claude", "version": "0"})
    turn = next_turn(message["message"]["content"], turns)
    while not isinstance(turn, str):
        results = [call("tools/call", name=name, arguments=args) for name, args in turn]
        turn = next_turn(results[-1]["content"][0]["text"], turns)
    numbers = {"duration_ms": 1, "duration_api_ms": 1, "num_turns": 1}
    send("result", subtype="success", is_error=False, session_id="s", result=turn, **numbers)
    sys.stdin.read()


RUNNERS = {
    "langchain_todos": run_langchain,
    "pydantic_ai_tasks": run_pydantic_ai,
    "openai_agents_tasks": run_openai_agents,
    "claude_sdk_tasks": run_claude_sdk,
}


if __name__ == "__main__":
    script: Iterator[Turn | None] = iter(json.loads(os.environ["TURNS"]))
    if sys.argv[1] in RUNNERS:
        RUNNERS[sys.argv[1]](runpy.run_path(str(EXAMPLES / f"{sys.argv[1]}.py")), script)
    else:
        run_claude_code(script)
