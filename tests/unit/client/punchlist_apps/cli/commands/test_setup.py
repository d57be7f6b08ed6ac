import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from punchlist.taskfiles.config import Config
from punchlist_apps.common import autostart
from punchlist_apps.hosts import jsonc
from punchlist_apps.hosts.catalog import HOSTS
from punchlist_testing.played import CLAUDE, SERVER, program


@pytest.fixture(autouse=True)
def _home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home without any host programs, and a working `punch` in PATH."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    program(home / "bin", "punch", SERVER)
    monkeypatch.setenv("PATH", str(home / "bin"))
    (home / "project").mkdir()
    monkeypatch.chdir(home / "project")


def tree(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    ("host", "scope"),
    [(host.name, scope) for host in HOSTS for scope in ("user", "project") if host.project or scope == "user"],
)
def test_remove_restores_all_files(run: Any, home: Path, host: str, scope: str) -> None:
    before = tree(home)
    outcome = run("setup", host, "--scope", scope)
    assert outcome.code == 0
    assert f"to remove it: punch setup {host} --scope {scope} --remove" in outcome.out
    after = tree(home)
    assert len(after) > len(before)
    assert run("setup", host, "--scope", scope).lines[-1].endswith("nothing to change")
    assert tree(home) == after
    assert run("setup", host, "--scope", scope, "--remove").code == 0
    assert tree(home) == before
    assert {path.name for path in home.iterdir()} <= {"project", "data", "bin"}


MISSING = "import sys; sys.exit('error: it needs the extra mcp\\n  /py -m pip install x[mcp]')"


def test_broken_server_prevents_changes(run: Any, home: Path) -> None:
    for source, message in (
        (MISSING, "it needs the extra mcp\n  /py -m pip install x[mcp]\n"),
        ("raise RuntimeError('broken')", "RuntimeError: broken\n  to see more, run: "),
    ):
        program(home / "bin", "punch", source)
        before = tree(home)
        outcome = run("setup", "claude-code")
        assert outcome.code == 1
        assert outcome.err.startswith("error: the MCP server doesn't start, so nothing was changed: ")
        assert message in outcome.err
        assert tree(home) == before
    assert run("setup", "claude-code", "--remove").code == 0


def test_unusable_program_is_reported(run: Any, home: Path) -> None:
    (home / "bin" / "punch").write_text("#!/bin/sh")
    (home / "bin" / "punch").chmod(0o644)
    outcome = run("setup", "cursor", "--scope", "project")
    assert outcome.code == 1 and len(outcome.err.splitlines()) == 2
    assert "punch: not executable\n  chmod +x " in outcome.err


def test_own_command_of_host_writes_its_file(run: Any, home: Path) -> None:
    program(home / "bin", "claude", CLAUDE)
    (home / ".claude.json").write_text('{"theme": "dark"}')
    assert run("setup", "claude-code").code == 0
    assert (home / "asked").read_text() == "mcp add-json --scope\n"
    server = json.loads((home / ".claude.json").read_text())["mcpServers"]["punchlist"]
    assert server == {"type": "stdio", "command": f"{home}/bin/punch", "args": ["agent", "mcp", "--dialect", "native"]}
    assert "hooks" in json.loads((home / ".claude" / "settings.json").read_text())
    assert run("setup", "claude-code").lines == ["Claude Code: nothing to change"]
    assert run("setup", "claude-code", "-c", "website").code == 0
    assert (home / "asked").read_text().split("\n")[1:3] == ["mcp remove --scope", "mcp add-json --scope"]
    assert run("setup", "claude-code", "--remove").code == 0
    assert (home / ".claude.json").read_text() == '{"theme": "dark"}'
    assert not (home / ".claude").exists()


def test_failed_host_command_falls_back_to_editing(run: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(home / "bin", "claude", CLAUDE)
    monkeypatch.setenv("REFUSES", "add-json")
    outcome = run("setup", "claude-code")
    assert outcome.code == 0
    assert outcome.err == f"claude mcp add-json: not today; {home}/.claude.json is edited instead\n"
    assert "punchlist" in json.loads((home / ".claude.json").read_text())["mcpServers"]


def test_later_failure_rolls_back_host_command(run: Any, home: Path) -> None:
    program(home / "bin", "claude", CLAUDE)
    (home / ".claude.json").write_text('{"theme": "dark"}')
    (home / ".claude").symlink_to("/proc/nowhere")
    outcome = run("setup", "claude-code")
    assert outcome.code == 1
    assert (home / ".claude.json").read_text() == '{"theme": "dark"}'


def test_project_files_are_edited_directly(run: Any, home: Path) -> None:
    program(home / "bin", "claude", CLAUDE)
    assert run("setup", "claude-code", "--scope", "project").code == 0
    assert not (home / "asked").exists()


@pytest.mark.parametrize("name", ["$(touch PWN)", "a b", "-c", "x" * 129, ""])
def test_invalid_list_name_reaches_no_shell(run: Any, home: Path, name: str) -> None:
    before = tree(home)
    outcome = run("setup", "claude-code", f"--conversation={name}")
    assert outcome.code == 2
    assert tree(home) == before


def test_allow_permits_tools_without_question(run: Any, home: Path) -> None:
    (home / ".claude").mkdir()
    path = home / ".claude" / "settings.json"
    path.write_text('{"permissions": {"allow": ["Bash(ls)"]}}')
    assert run("setup", "claude-code", "--allow").code == 0
    assert json.loads(path.read_text())["permissions"]["allow"] == ["Bash(ls)", "mcp__punchlist"]
    assert run("setup", "claude-code").lines == ["Claude Code: nothing to change"]
    path.write_text(path.read_text() + "\n")
    assert run("setup", "claude-code", "--remove").code == 0
    assert path.read_text() == '{"permissions": {"allow": ["Bash(ls)"]}}\n'
    assert run("setup", "codex", "--allow").code == 2


def test_claude_code_tasks_are_copied_until_removed(run: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr(autostart, "ensure_running", lambda socket, data_dir: started.append(data_dir))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    config = Config(str(home / "data"))
    outcome = run("setup", "claude-code", "--tasks")
    assert outcome.code == 0
    assert outcome.lines[-1].startswith(f"{home}/.claude/tasks is copied into the projects' lists")
    assert config.read().inbound == (f"{home}/.claude/tasks",)
    assert started == [str(home / "data")]
    assert not (home / ".claude" / "tasks").exists()
    assert f"{home}/.claude/tasks  claude, inbound only" in run("mirror", "list").lines
    assert run("setup", "claude-code", "--tasks", "--remove").code == 0
    assert config.read().inbound == ()
    assert (home / ".claude.json").exists()
    run("setup", "claude-code", "--tasks")
    assert run("setup", "claude-code", "--remove").code == 0
    assert config.read().inbound == ()
    assert not (home / ".claude.json").exists()
    for refused in (("codex", "--tasks"), ("claude-code", "--tasks", "--scope", "project")):
        assert run("setup", *refused).code == 2


def test_host_without_project_scope_is_rejected(run: Any) -> None:
    outcome = run("setup", "windsurf", "--scope", "project")
    assert outcome.code == 2
    assert "Windsurf has no project configuration" in outcome.err


def test_claude_is_claude_code(run: Any) -> None:
    outcome = run("setup", "claude", "--print")
    assert outcome.code == 0 and outcome.out == run("setup", "claude-code", "--print").out
    assert "did you mean 'claude-code'" in run("setup", "claud").err


def test_print_changes_nothing(run: Any, home: Path) -> None:
    before = tree(home)
    outcome = run("setup", "codex", "--print", "-c", "website")
    assert run("setup", "codex", "--dry-run", "-c", "website").out == outcome.out
    assert '+args = ["agent", "mcp", "--dialect", "native", "--conversation", "website"]' in outcome.lines
    assert tree(home) == before


def test_broken_file_prevents_all_changes(run: Any, home: Path) -> None:
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text('{\n  "hooks": {,\n}')
    before = tree(home)
    outcome = run("setup", "claude-code")
    assert outcome.code == 1
    assert "settings.json:2: expected a name" in outcome.err
    assert tree(home) == before


def test_project_file_contains_bare_command(run: Any, home: Path) -> None:
    run("setup", "claude-code", "--scope", "project")
    assert json.loads((home / "project" / ".mcp.json").read_text())["mcpServers"]["punchlist"]["command"] == "punch"


def test_json_lists_changed_files(run: Any, home: Path) -> None:
    result = run("setup", "cursor", "--json").json
    files = [f"{home}/.cursor/mcp.json", f"{home}/.cursor/hooks.json"]
    assert result == {"host": "cursor", "files": files, "changed": files}


@pytest.mark.parametrize(
    ("host", "path", "text"),
    [
        ("codex", ".codex/hooks.json", '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}}'),
        ("cursor", ".cursor/hooks.json", '{"version": 1, "hooks": {"stop": [{"command": "mine"}]}}'),
        ("gemini", ".gemini/settings.json", '{"theme": "x", "hooks": {"AfterAgent": [{"hooks": []}]}}'),
    ],
)
def test_own_hooks_stay_after_removal(run: Any, home: Path, host: str, path: str, text: str) -> None:
    (home / path).parent.mkdir()
    (home / path).write_text(f"// mine\n{text}")
    assert run("setup", host).code == 0
    (home / path).write_text((home / path).read_text() + "// the host's\n")
    assert run("setup", host, "--remove").code == 0
    left = (home / path).read_text()
    assert jsonc.parse(left).value == json.loads(text)
    assert left.startswith("// mine") and left.endswith("// the host's\n")


def test_plugin_of_another_author_is_kept(run: Any, home: Path) -> None:
    plugin = home / ".config" / "opencode" / "plugins" / "punchlist.js"
    plugin.parent.mkdir(parents=True)
    plugin.write_text("export const Mine = 1;\n")
    outcome = run("setup", "opencode")
    assert outcome.code == 1
    assert f"{plugin}: not written by punch setup; move it away" in outcome.err
    assert run("setup", "opencode", "--remove").code == 0
    assert plugin.read_text() == "export const Mine = 1;\n"
    assert not (home / ".config" / "opencode" / "opencode.json").exists()


def test_edited_plugin_is_removed(run: Any, home: Path) -> None:
    plugin = home / ".config" / "opencode" / "plugins" / "punchlist.js"
    run("setup", "opencode")
    plugin.write_text(plugin.read_text() + "// edited\n")
    assert run("setup", "opencode", "--remove").code == 0
    assert not plugin.exists()


def test_plugin_file_of_a_lost_record_is_removed(run: Any, home: Path) -> None:
    plugin = home / ".config" / "opencode" / "plugins" / "punchlist.js"
    run("setup", "opencode")
    plugin.write_text(plugin.read_text().replace(str(home / "bin"), "/old"))
    shutil.rmtree(home / "data" / "setup")
    for options in ((), ("--remove",)):
        assert run("setup", "opencode", *options).code == 0
    assert not plugin.exists()


def test_plugin_of_a_project_is_reported(run: Any, home: Path) -> None:
    (home / "project" / ".claude").mkdir()
    (home / "project" / ".claude" / "settings.json").write_text('{"enabledPlugins": {"punchlist@ours": true}}')
    assert run("setup", "claude-code").lines[-1].endswith("claude plugin disable punchlist@ours --scope local")
    assert "punchlist" in (home / ".claude.json").read_text()


def test_vscode_extension_does_not_prevent_entries(run: Any, home: Path) -> None:
    (home / ".vscode" / "extensions").mkdir(parents=True)
    (home / ".vscode" / "extensions" / "extensions.json").write_text('[{"identifier": {"id": "punchlist.punchlist"}}]')
    assert run("setup", "vscode", "--scope", "project", "-c", "website").code == 0
    assert "website" in (home / "project" / ".vscode" / "mcp.json").read_text()


def test_plugin_replaces_entries_of_setup(run: Any, home: Path) -> None:
    assert run("setup", "codex").code == 0
    config = home / ".codex" / "config.toml"
    plugin = '[plugins."punchlist@punchlist"]\nenabled = true\n'
    config.write_text(config.read_text() + plugin)
    for options in (("-c", "website"), ("--scope", "project")):
        rejected = run("setup", "codex", *options)
        assert rejected.code == 2
        assert rejected.err.endswith("or first run codex plugin remove punchlist@punchlist\n")
    assert "mcp_servers" in config.read_text()
    outcome = run("setup", "codex")
    assert outcome.code == 0 and "-[mcp_servers.punchlist]" in outcome.lines
    assert "Codex has punchlist's plugin punchlist@punchlist, so setup adds nothing to its settings" in outcome.lines
    assert config.read_text().strip() == plugin.strip()
    assert run("setup", "codex", "--print").lines[0] == "Codex: nothing to remove"
    assert run("setup", "codex", "--json").json["plugin"] == "punchlist@punchlist"
