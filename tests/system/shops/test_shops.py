import json
import os
import subprocess
import sys
import tomllib
import zipapp
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

import pytest

from punchlist_apps.hosts.catalog import Place, get_host
from punchlist_apps.hosts.check import list_tools
from punchlist_apps.hosts.plugins import find_plugin
from punchlist_packages.__main__ import mcp_bundle
from punchlist_packages.hatch_build import ROOT
from punchlist_testing.agent_hosts import environment
from punchlist_testing.repositories import repository
from punchlist_testing.scripted_model import serving
from punchlist_testing.shops import list_commands
from punchlist_testing.workers import stop_workers

BUILD = ROOT / "build" / "shops"
TOOLS = {"plan", "next", "update", "tasks", "wait"}
TIMEOUT_S = 60
RUBY = """
import { loadPrism } from "@ruby/prism";
import { readFileSync } from "node:fs";
const errors = (await loadPrism())(readFileSync(process.argv[1], "utf8")).errors;
errors.forEach(error => console.log(error.message));
process.exit(errors.length);
"""
"""Parses a Ruby file with Ruby's own parser."""

HOST = """
import subprocess, sys
print(subprocess.Popen(sys.argv[1:], stderr=subprocess.PIPE, text=True).stderr.readline())
"""
"""Prints the first error of a command, then ends without it."""


class User(NamedTuple):
    """A user with an empty home, in whose PATH are `punch` and the hosts."""

    home: Path
    env: dict[str, str]

    def run(self, *words: str | Path, stdin: str = "", directory: str = "project", code: int = 0) -> str:
        done = subprocess.run(
            [str(word) for word in words],
            input=stdin,
            env=self.env,
            cwd=self.home / directory,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == code, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def assert_plugin_is_found(self, host: str) -> None:
        assert find_plugin(get_host(host), Place("user", str(self.home / "project"), self.env, "punch"))
        assert "so setup adds nothing" in self.run("punch", "setup", host)


@pytest.fixture
def user(tmp_path: Path) -> Generator[User]:
    repository(tmp_path / "project")
    (tmp_path / "run").mkdir(0o700)
    places = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run"), "PUNCHLIST_WARM": "0"}
    folders = (Path(sys.executable).parent, BUILD / "node_modules" / ".bin", BUILD / "venv" / "bin")
    path = os.pathsep.join([*map(str, folders), os.environ["PATH"]])
    offline = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    user = User(tmp_path, environment(None, **places, **offline, PATH=path))
    yield user
    user.run("punch", "daemon", "stop")
    stop_workers(tmp_path / "run" / "punchlist")


def test_claude_code_connects_to_its_plugin(user: User) -> None:
    for place in (ROOT, ROOT / "plugins/punchlist"):
        assert "Validation passed" in user.run("claude", "plugin", "validate", place)
    user.run("claude", "plugin", "install", "punchlist", "--marketplace", ROOT)
    details = user.run("claude", "plugin", "details", "punchlist@punchlist")
    assert "Hooks (4)" in details and "Skills (2)" in details
    assert "punchlist: punch agent mcp --dialect native - ✔ Connected" in user.run("claude", "mcp", "list")
    user.assert_plugin_is_found("claude-code")


def test_codex_lists_the_server_of_its_plugin(user: User) -> None:
    user.run("codex", "plugin", "marketplace", "add", ROOT)
    user.run("codex", "plugin", "add", "punchlist@punchlist")
    listed = user.run("codex", "mcp", "list", "--json")
    (server,) = json.loads(listed[listed.index("[\n") :].partition("\n]")[0] + "]")
    assert server["name"] == "punchlist" and server["enabled"]
    assert "XDG_RUNTIME_DIR" in server["transport"]["env_vars"] and server["transport"]["cwd"] is None
    user.assert_plugin_is_found("codex")


def test_gemini_connects_to_its_extension(user: User) -> None:
    extension = ROOT / "plugins/gemini"
    assert "successfully validated" in user.run("gemini", "extensions", "validate", extension)
    user.run("gemini", "extensions", "link", "--consent", extension, stdin="y\n")
    assert "MCP servers:\n  punchlist" in user.run("gemini", "extensions", "list")
    assert "punchlist (from punchlist): punch agent mcp --dialect native (stdio) - Connected" in user.run(
        "gemini", "mcp", "list"
    )
    user.assert_plugin_is_found("gemini")


SESSIONS = {
    "claude": (
        ["claude plugin install punchlist --marketplace {root}"],
        "claude -p hello",
    ),
    "codex": (
        ["codex plugin marketplace add {root}", "codex plugin add punchlist@punchlist"],
        "codex exec -c model_provider=scripted -c model=scripted --dangerously-bypass-hook-trust hello",
    ),
}
"""For each host: the commands that install the plugin, and the one that runs a session with one prompt."""

PROVIDER = """
[model_providers.scripted]
name = "scripted"
base_url = "{url}"
wire_api = "responses"
"""


@pytest.mark.parametrize("host", SESSIONS)
def test_hook_of_plugin_informs_model(user: User, host: str) -> None:
    install, session = SESSIONS[host]
    for line in install:
        user.run(*line.format(root=ROOT).split())
    user.run("punch", "add", "Write the parser")
    with serving(lambda _messages: "done") as model:
        model.status = 400  # the host ends after its request, which is what matters
        if host == "codex":
            with (user.home / ".codex" / "config.toml").open("a") as config:
                config.write(PROVIDER.format(url=model.url))
        user.env.update(ANTHROPIC_BASE_URL=model.url.removesuffix("/v1"), ANTHROPIC_API_KEY="none")
        user.run(*session.split(), code=1)
    assert any("Write the parser" in json.dumps(body) for body in model.asked)


def test_packed_bundle_offers_tools(user: User) -> None:
    """The packed single file imports this checkout; `make dist` packs one that contains everything."""
    (user.home / "program").mkdir()
    (user.home / "program" / "__main__.py").write_text(
        "import sys\nfrom punchlist_apps.cli import main\nsys.exit(main())"
    )
    zipapp.create_archive(user.home / "program", user.home / "punch.pyz")
    packed, unpacked = user.home / "punchlist.mcpb", user.home / "unpacked"
    mcp_bundle(packed, user.home / "punch.pyz")
    user.run("mcpb", "unpack", packed, unpacked)
    user.run("mcpb", "validate", unpacked / "manifest.json")
    user.run("mcpb", "pack", unpacked, packed)
    manifest = json.loads((unpacked / "manifest.json").read_text())
    config = manifest["server"]["mcp_config"]
    known = {"${__dirname}": str(unpacked), "${user_config.list}": manifest["user_config"]["list"]["default"]}
    words = [config["command"], *config["args"]]
    for name, value in known.items():
        words = [word.replace(name, value) for word in words]
    assert set(list_tools(words, user.env)) == TOOLS == {tool["name"] for tool in manifest["tools"]}


@pytest.mark.parametrize("path", ["registry/server.json", "agent-plugin/plugin.json", "agent-plugin/mcp.json"])
def test_file_matches_its_schema(user: User, path: str) -> None:
    file = ROOT / "plugins" / path
    user.run("check-jsonschema", "--schemafile", fetch_schema(json.loads(file.read_text())["$schema"]), file)


def test_action_matches_its_schema(user: User) -> None:
    user.run("check-jsonschema", "--builtin-schema", "vendor.github-actions", ROOT / "plugins/github/action.yml")


def fetch_schema(url: str) -> Path:
    """Return the schema's copy in build/shops, or skip the test if it can't be fetched."""
    path = BUILD / "schemas" / url.removeprefix("https://")
    if not path.exists():
        try:
            with urlopen(url, timeout=TIMEOUT_S) as response:
                data = response.read()
        except OSError as error:
            pytest.skip(f"{url} can't be fetched: {error}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return path


def test_texts_for_hosts_are_valid(user: User) -> None:
    for plugin in ("punchlist", "agent-plugin"):
        user.run("agentskills", "validate", ROOT / "plugins" / plugin / "skills/punchlist")
    command = tomllib.loads((ROOT / "plugins/gemini/commands/tasks.toml").read_text())
    assert "!{punch list}" in command["prompt"] and "are data" in command["prompt"]


def test_image_and_formula_are_valid(user: User) -> None:
    user.run("hadolint", ROOT / "Dockerfile")
    (script := BUILD / "ruby.mjs").write_text(RUBY.replace("process.argv[1]", "process.argv[2]"))
    user.run("node", "--no-warnings", script, ROOT / "Formula/punchlist.rb")


@pytest.mark.parametrize("words", list_commands(), ids=" ".join)
def test_command_of_package_runs(user: User, words: tuple[str, ...]) -> None:
    if words[:3] == ("punch", "agent", "mcp"):
        assert set(list_tools(words, user.env)) == TOOLS
        return
    user.run("punch", "add", "Write the parser")
    if words == ("punch", "agent", "watch"):  # ends with its host
        assert "No task list" in user.run(sys.executable, "-c", HOST, *words, "--session", "7f3c2d10", directory=".")
        return
    event = {"session_id": "7f3c2d10", "hook_event_name": "SessionStart", "cwd": str(user.home / "project")}
    output = user.run(*("1" if word == "ID" else word for word in words), stdin=json.dumps(event))
    if "--hook" in words:
        assert "Write the parser" in output
