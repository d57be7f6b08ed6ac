import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist import connect
from punchlist_testing.daemon import spawned_daemon
from punchlist_testing.optional import require_package

require_package("agents")
sdk: Any = import_module("agents")


async def test_an_agent_of_the_openai_sdk_works_a_list_through_stdio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    script, over_mcp = import_module("agents.testing"), import_module("agents.mcp")
    turns: list[list[Any]] = [
        [script.function_call("plan", {"tasks": ["Copy", "Publish"]}, call_id="a")],
        [script.function_call("next", {}, call_id="b")],
        [script.function_call("next", {"result": "in docs/copy.md"}, call_id="c")],
        [script.function_call("next", {"result": "it is out"}, call_id="d")],
        [script.assistant_message("All done.")],
    ]
    with spawned_daemon(tmp_path) as daemon:
        command = ["-m", "punchlist", "agent", "mcp", "--socket", daemon.socket, "--no-autostart", "-c", "work"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(one for one in sys.path if one)}
        params = {"command": sys.executable, "args": command, "env": environment}
        with anyio.fail_after(50):
            async with over_mcp.MCPServerStdio(params=params, client_session_timeout_seconds=30) as server:
                agent = sdk.Agent(name="worker", model=script.ScriptedModel(turns), mcp_servers=[server])
                result = await sdk.Runner.run(agent, "Work.", run_config=sdk.RunConfig(tracing_disabled=True))
        assert result.final_output == "All done."
        with connect(socket=daemon.socket, autostart=False) as client:
            assert [task.status for task in client.conversation("work").list()] == ["completed", "completed"]
