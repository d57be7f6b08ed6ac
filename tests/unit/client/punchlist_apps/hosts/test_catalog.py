import json
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from punchlist.connection.launch import HOOK_END_S, HOOK_S
from punchlist.tools.dialects.native import Wait
from punchlist.tools.schema import build_parameters
from punchlist_apps.cli.commands.setup import COMMANDS
from punchlist_apps.cli.installing.editor_plugins import EDITORS
from punchlist_apps.cli.installing.vscode_extension import NAME as EXTENSION
from punchlist_apps.hosts import jsonc
from punchlist_apps.hosts.catalog import HOSTS, Host, Place, Scope, build_hook_command, get_hook_line, get_host
from punchlist_apps.hosts.configure import Configurator
from punchlist_apps.hosts.hooks import HOOK_HOSTS
from punchlist_testing.played import program

READERS: dict[str, Callable[[str], Any]] = {"toml": tomllib.loads, "json": lambda text: jsonc.parse(text).value}


def configured(tmp_path: Path, host: str, scope: Scope = "user", **env: str) -> dict[str, Any]:
    """Return the planned contents of a host's configuration files by relative path."""
    place = Place(scope, str(tmp_path), {"HOME": str(tmp_path), **env}, "/bin/punch")
    found: dict[str, Any] = {}
    for target in get_host(host).list_edits(place):
        text = (Configurator(str(tmp_path)).plan(target).after or b"").decode()
        name = str(Path(target.path).relative_to(tmp_path))
        found[name] = text if target.form == "plugin" else READERS[target.form](text)
    return found


SERVER = {"command": "/bin/punch", "args": ["agent", "mcp", "--dialect", "native"]}


def test_command_line_offers_all_hosts_and_editors() -> None:
    assert COMMANDS["setup"].arguments[0].options["choices"] == (*(host.name for host in HOSTS), *EDITORS, EXTENSION)


@pytest.mark.parametrize(
    ("host", "scope", "path", "members"),
    [
        ("cursor", "user", ".cursor/mcp.json", {"mcpServers": {"punchlist": SERVER}}),
        ("cursor", "project", ".cursor/mcp.json", {"mcpServers": {"punchlist": SERVER}}),
        ("gemini", "user", ".gemini/settings.json", {"mcpServers": {"punchlist": {**SERVER, "timeout": 630_000}}}),
        ("vscode", "user", ".config/Code/User/mcp.json", {"servers": {"punchlist": {"type": "stdio", **SERVER}}}),
        ("vscode", "project", ".vscode/mcp.json", {"servers": {"punchlist": {"type": "stdio", **SERVER}}}),
        ("zed", "user", ".config/zed/settings.json", {"context_servers": {"punchlist": {**SERVER, "env": {}}}}),
        ("windsurf", "user", ".codeium/windsurf/mcp_config.json", {"mcpServers": {"punchlist": SERVER}}),
        (
            "cline",
            "user",
            ".cline/data/settings/cline_mcp_settings.json",
            {"mcpServers": {"punchlist": {**SERVER, "timeout": 630}}},
        ),
        ("amp", "project", ".amp/settings.json", {"amp.mcpServers": {"punchlist": SERVER}}),
        ("claude-code", "user", ".claude.json", {"mcpServers": {"punchlist": {"type": "stdio", **SERVER}}}),
        ("claude-code", "project", ".mcp.json", {"mcpServers": {"punchlist": {"type": "stdio", **SERVER}}}),
    ],
)
def test_server_is_configured_in_the_hosts_file(
    tmp_path: Path, host: str, scope: Scope, path: str, members: dict[str, Any]
) -> None:
    found = configured(tmp_path, host, scope)[path]
    assert {name: member for name, member in found.items() if name != "hooks"} == members


def test_codex_passes_variables_that_locate_the_daemon(tmp_path: Path) -> None:
    table = configured(tmp_path, "codex")[".codex/config.toml"]["mcp_servers"]["punchlist"]
    assert table["command"] == "/bin/punch"
    assert {"PUNCHLIST_SOCKET", "XDG_RUNTIME_DIR"} <= set(table["env_vars"])
    moved = configured(tmp_path, "codex", CODEX_HOME=str(tmp_path / "elsewhere"))
    assert set(moved) == {"elsewhere/config.toml", "elsewhere/hooks.json"}


@pytest.mark.parametrize(
    ("host", "path", "member", "unit"),
    [
        ("codex", ".codex/config.toml", "tool_timeout_sec", 1),
        ("gemini", ".gemini/settings.json", "timeout", 1000),
        ("copilot", ".copilot/mcp-config.json", "timeout", 1000),
        ("opencode", ".config/opencode/opencode.json", "timeout", 1000),
        ("cline", ".cline/data/settings/cline_mcp_settings.json", "timeout", 1),
    ],
)
def test_the_longest_wait_fits_a_hosts_timeout(tmp_path: Path, host: str, path: str, member: str, unit: int) -> None:
    servers = next(iter(configured(tmp_path, host)[path].values()))
    longest_s = build_parameters(Wait)["properties"]["seconds"]["maximum"]
    assert servers["punchlist"][member] / unit > longest_s
    assert Wait().seconds < 60, "default of hosts without a setting"


def test_codex_waits_for_the_server(tmp_path: Path) -> None:
    assert configured(tmp_path, "codex")[".codex/config.toml"]["mcp_servers"]["punchlist"]["required"] is True


def test_claude_code_runs_one_command_for_four_events(tmp_path: Path) -> None:
    hooks = configured(tmp_path, "claude-code")[".claude/settings.json"]["hooks"]
    assert set(hooks) == {"SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"}
    for entries in hooks.values():
        assert [hook["command"] for entry in entries for hook in entry["hooks"]] == ["/bin/punch agent prime --hook"]
    moved = configured(tmp_path, "claude-code", CLAUDE_CONFIG_DIR=str(tmp_path / "x"))
    assert set(moved) == {"x/.claude.json", "x/settings.json"}


@pytest.mark.parametrize(
    ("host", "path", "project_path"),
    [
        ("codex", ".codex/hooks.json", ".codex/hooks.json"),
        ("gemini", ".gemini/settings.json", ".gemini/settings.json"),
        ("cursor", ".cursor/hooks.json", ".cursor/hooks.json"),
        ("copilot", ".copilot/hooks/punchlist.json", ".github/hooks/punchlist.json"),
    ],
)
def test_each_event_of_a_host_has_one_hook(tmp_path: Path, host: str, path: str, project_path: str) -> None:
    for scope, name in (("user", path), ("project", project_path)):
        hooks = configured(tmp_path, host, cast("Scope", scope))[name]["hooks"]
        assert list(hooks) == list(HOOK_HOSTS[host].events)
        for entry in hooks.values():
            assert [get_hook_line(item) for item in entry] == [f"/bin/punch agent prime --hook --host {host}"]


@pytest.mark.parametrize("host", ["claude-code", "codex"])
def test_hook_ends_before_its_hosts_timeout(tmp_path: Path, host: str) -> None:
    (hooks,) = (config["hooks"] for config in configured(tmp_path, host).values() if "hooks" in config)
    for event, entries in hooks.items():
        for hook in entries[0]["hooks"]:
            assert hook["timeout"] > (HOOK_END_S if event == "SessionEnd" else HOOK_S)


def test_opencode_plugin_contains_the_command(tmp_path: Path) -> None:
    text = configured(tmp_path, "opencode")[".config/opencode/plugins/punchlist.js"]
    (line,) = [line for line in text.splitlines() if line.startswith("const COMMAND")]
    assert line == 'const COMMAND = ["/bin/punch", "agent", "prime", "--hook", "--host", "opencode"];'


@pytest.mark.parametrize(
    ("entry", "ours"),
    [
        ({"hooks": [{"type": "command", "command": "punch agent prime --hook"}]}, True),
        ({"matcher": "startup", "hooks": [{"command": "'/a b/punch' prime --hook -c website", "timeout": 3}]}, True),
        ({"hooks": [{"command": "punch agent prime --hook"}, {"command": "mine"}]}, False),
        ({"hooks": [{"command": "punch list"}]}, False),
        ({"hooks": [{"command": "cd /x && punch agent prime --hook"}]}, False),
        ({"hooks": [{"command": "it's"}]}, False),
        ({"hooks": [{"command": ""}]}, False),
        ({"hooks": [{"command": 3}]}, False),
        ({"hooks": {"command": "punch agent prime --hook"}}, False),
        ({}, False),
        ({"command": "punch agent prime --hook --host cursor", "timeout": 10}, True),
        ({"hooks": ["punch agent prime --hook"]}, False),
        ("punch agent prime --hook", False),
        (None, False),
    ],
)
def test_only_own_hooks_are_recognized(entry: Any, ours: bool) -> None:
    place = Place("user", "/p", {"HOME": "/h"}, "punch")
    known = get_host("claude-code").list_edits(place)[1].edits[0].is_ours
    assert known is not None
    assert known(entry) is ours


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_a_named_list_goes_into_every_hosts_configuration(tmp_path: Path, host: Host) -> None:
    place = Place("user", str(tmp_path), {"HOME": str(tmp_path)}, "/a b/punch", "website")
    for target in host.list_edits(place):
        text = (Configurator(str(tmp_path)).plan(target).after or b"").decode()
        assert "website" in text
        if target.form == "plugin":
            assert '"/a b/punch", "agent", "prime", "--hook", "--host", "opencode", "-c", "website"' in text
        elif "prime" in text:
            assert f"{build_hook_command(place, host.name)}" in text


@pytest.mark.parametrize("word", ["$(touch PWN)", "a b", "`x`", "it's", ";rm", "a\nb"])
def test_every_word_of_a_hook_is_quoted(tmp_path: Path, word: str) -> None:
    told = program(tmp_path, "punch", "import json, sys; json.dump(sys.argv[1:], open('told', 'w'))")
    renamed = told.rename(tmp_path / f"{word.replace('/', '')} punch")
    place = Place("user", "/p", {"HOME": "/h"}, str(renamed), word)
    subprocess.run(build_hook_command(place), shell=True, check=True, cwd=tmp_path)
    assert json.loads((tmp_path / "told").read_text()) == ["agent", "prime", "--hook", "-c", word]


def test_only_project_files_have_a_root(tmp_path: Path) -> None:
    for host in HOSTS:
        place = Place("project", str(tmp_path), {"HOME": "/h"}, "punch")
        if host.project:
            assert {target.root for target in host.list_edits(place)} == {str(tmp_path)}
        assert {target.root for target in host.list_edits(place._replace(scope="user"))} == {None}


def test_variables_override_configuration_paths(tmp_path: Path) -> None:
    env = {"HOME": "/h", "XDG_CONFIG_HOME": "/x", "COPILOT_HOME": "/c"}
    place = Place("user", "/p", env, "punch")
    found = {name: get_host(name).get_path(place) for name in ("zed", "amp", "vscode", "opencode", "copilot", "cline")}
    assert found == {
        "zed": "/x/zed/settings.json",
        "amp": "/x/amp/settings.json",
        "vscode": "/x/Code/User/mcp.json",
        "opencode": "/x/opencode/opencode.json",
        "copilot": "/c/mcp-config.json",
        "cline": "/h/.cline/data/settings/cline_mcp_settings.json",
    }
    assert get_host("cline").get_path(place._replace(env={**env, "CLINE_MCP_SETTINGS_PATH": "/m.json"})) == "/m.json"
