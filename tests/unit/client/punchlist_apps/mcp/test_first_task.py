"""From a fresh machine to an agent's first task: one setup, then what the host starts from its configuration."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from punchlist_apps.hosts.health import find_commands
from punchlist_testing.agent_hosts import environment
from punchlist_testing.optional import require_package
from punchlist_testing.repositories import repository
from punchlist_testing.workers import PATIENCE_S, Session, stop_workers

require_package("mcp")

ROOT = Path(__file__).resolve().parents[5]
PUNCH = os.path.join(os.path.dirname(sys.executable), "punch")


class Machine(NamedTuple):
    """A machine on which punchlist was just installed."""

    home: Path
    env: dict[str, str]

    def punch(self, *words: str) -> str:
        return subprocess.run(
            [PUNCH, *words],
            env=self.env,
            cwd=self.home / "project",
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE_S,
        ).stdout

    def take_first_task(self, command: list[str], env: dict[str, str]) -> None:
        """Start a server as a host does in a project, and check that an agent gets a task that people see."""
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            cwd=self.home / "project",
        )
        with Session(process) as session:
            session.call("plan", tasks=["Write the parser"])
            assert "#1: Write the parser" in session.call("next")
            assert json.loads(self.punch("list", "--json"))["tasks"][0]["status"] == "in_progress"


@pytest.fixture
def machine(tmp_path: Path) -> Generator[Machine]:
    repository(tmp_path / "project")
    (tmp_path / "run").mkdir(0o700)
    places = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run"), "PUNCHLIST_WARM": "0"}
    found = environment(None, **places, PATH=f"{os.path.dirname(PUNCH)}:{os.environ['PATH']}")
    others = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "CODEX_HOME", "COPILOT_HOME")
    machine = Machine(tmp_path, {name: value for name, value in found.items() if name not in others})
    yield machine
    machine.punch("daemon", "stop")
    stop_workers(tmp_path / "run" / "punchlist")


@pytest.mark.parametrize("host", ["claude-code", "codex", "cursor", "vscode", "gemini", "copilot"])
def test_one_setup_leads_to_first_task(machine: Machine, host: str) -> None:
    machine.punch("setup", host)
    (found,) = [one for one in find_commands(machine.env, str(machine.home / "project")) if not one.is_hook]
    env = machine.env
    if host == "codex":  # passes only some variables
        entry = tomllib.loads((machine.home / ".codex" / "config.toml").read_text())["mcp_servers"]["punchlist"]
        env = {name: env[name] for name in ("HOME", "PATH", *entry["env_vars"]) if name in env}
    machine.take_first_task([*found.command], env)


@pytest.mark.parametrize(
    "manifest", ["punchlist/.mcp.json", "punchlist/codex.mcp.json", "gemini/gemini-extension.json"]
)
def test_plugin_leads_to_first_task(machine: Machine, manifest: str) -> None:
    entry: dict[str, Any] = json.loads((ROOT / "plugins" / manifest).read_text())["mcpServers"]["punchlist"]
    machine.take_first_task([entry["command"], *entry["args"]], machine.env)
