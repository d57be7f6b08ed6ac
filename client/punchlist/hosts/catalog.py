"""The hosts we can set up, as data: which file says what, by the hosts' own documentation.

| host | documentation |
|---|---|
| Claude Code | https://code.claude.com/docs/en/mcp, https://code.claude.com/docs/en/hooks |
| Codex | https://developers.openai.com/codex/mcp, https://developers.openai.com/codex/config-reference |
| Cursor | https://cursor.com/docs/mcp |
| VS Code | https://code.visualstudio.com/docs/agents/reference/mcp-configuration |
| Gemini CLI | https://geminicli.com/docs/tools/mcp-server |
"""

import os
import shlex
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

Scope = Literal["user", "project"]
SERVER = "punchlist"

_ENVIRONMENT = (
    *("PUNCHLIST_CONVERSATION", "PUNCHLIST_SOCKET", "PUNCHLIST_DATA_DIR", "PUNCHLIST_AUTOSTART"),
    *("XDG_RUNTIME_DIR", "XDG_DATA_HOME"),
)
"""What decides where the daemon and the list are; Codex hands only named variables on to a server."""

_HOOK_SECONDS = 10


class Edit(NamedTuple):
    """One member of a configuration: set at `path`, or with `ours` an item of the array there.

    `ours` knows each item that a setup of ours may have left there, also one that names another list or command.
    """

    path: tuple[str, ...]
    value: Any
    ours: Callable[[Any], bool] | None = None


class FileEdits(NamedTuple):
    """What one configuration file has to say."""

    path: str
    form: Literal["json", "toml"]
    edits: tuple[Edit, ...]


class Place(NamedTuple):
    """Where a host is set up, and how punchlist is called there.

    Attributes:
        scope: `user` for all projects of this user, `project` for whoever works in this directory.
        directory: The project's directory.
        env: The environment.
        punch: The command, as the host should call it.
        conversation: The list, if the configuration should name it.
    """

    scope: Scope
    directory: str
    env: Mapping[str, str]
    punch: str
    conversation: str | None = None

    @property
    def server(self) -> dict[str, Any]:
        """How the MCP server is started."""
        named = ["--conversation", self.conversation] if self.conversation else []
        return {"command": self.punch, "args": ["mcp", "--dialect", "native", *named]}

    def file(self, user: str, project: str) -> str:
        """The file of this scope: `user` is relative to the home directory, `project` to the project's."""
        home = self.env.get("HOME") or os.path.expanduser("~")
        return os.path.join(home, user) if self.scope == "user" else os.path.join(self.directory, project)


class Host(NamedTuple):
    """A host of agents."""

    name: str
    title: str
    files: Callable[[Place], tuple[FileEdits, ...]]
    then: str
    """What is left for the person to do."""


def _claude(place: Place) -> tuple[FileEdits, ...]:
    named = f" -c {place.conversation}" if place.conversation else ""
    command = f"{shlex.quote(place.punch)} prime --hook{named}"
    entry = {"hooks": [{"type": "command", "command": command, "timeout": _HOOK_SECONDS}]}
    hooks = tuple(Edit(("hooks", event), entry, _is_our_hook) for event in ("SessionStart", "UserPromptSubmit", "Stop"))
    server = Edit(("mcpServers", SERVER), {"type": "stdio", **place.server})
    moved = place.env.get("CLAUDE_CONFIG_DIR") if place.scope == "user" else None
    settings = place.file(".claude/settings.json", ".claude/settings.json")
    servers = place.file(".claude.json", ".mcp.json")
    if moved:
        settings, servers = os.path.join(moved, "settings.json"), os.path.join(moved, ".claude.json")
    return FileEdits(servers, "json", (server,)), FileEdits(settings, "json", hooks)


def _is_our_hook(entry: Any) -> bool:
    """Whether an entry runs `punch prime --hook` and nothing else."""
    try:
        (hook,) = entry["hooks"]
        program, *arguments = shlex.split(hook["command"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return False
    return os.path.basename(program) == "punch" and arguments[:2] == ["prime", "--hook"]


def _codex(place: Place) -> tuple[FileEdits, ...]:
    table = {**place.server, "env_vars": list(_ENVIRONMENT)}
    path = place.file(".codex/config.toml", ".codex/config.toml")
    if place.scope == "user" and place.env.get("CODEX_HOME"):
        path = os.path.join(place.env["CODEX_HOME"], "config.toml")
    return (FileEdits(path, "toml", (Edit(("mcp_servers", SERVER), table),)),)


def _cursor(place: Place) -> tuple[FileEdits, ...]:
    path = place.file(".cursor/mcp.json", ".cursor/mcp.json")
    return (FileEdits(path, "json", (Edit(("mcpServers", SERVER), place.server),)),)


def _vscode(place: Place) -> tuple[FileEdits, ...]:
    config = place.env.get("XDG_CONFIG_HOME") or ".config"
    path = place.file(os.path.join(config, "Code/User/mcp.json"), ".vscode/mcp.json")
    return (FileEdits(path, "json", (Edit(("servers", SERVER), {"type": "stdio", **place.server}),)),)


def _gemini(place: Place) -> tuple[FileEdits, ...]:
    path = place.file(".gemini/settings.json", ".gemini/settings.json")
    return (FileEdits(path, "json", (Edit(("mcpServers", SERVER), place.server),)),)


HOSTS = (
    Host("claude-code", "Claude Code", _claude, "start a new session; /mcp shows punchlist, /hooks the three hooks"),
    Host(
        "codex", "Codex", _codex, "start a new session; /mcp shows punchlist (a project's file needs a trusted project)"
    ),
    Host("cursor", "Cursor", _cursor, "restart Cursor; its MCP settings show punchlist"),
    Host("vscode", "VS Code", _vscode, "run the command 'MCP: List Servers' and start punchlist"),
    Host("gemini", "Gemini CLI", _gemini, "start a new session in a trusted folder; /mcp shows punchlist"),
)


def host_named(name: str) -> Host:
    """The host of this name."""
    return next(host for host in HOSTS if host.name == name)
