"""The hosts we can set up, as data: which file says what, by the hosts' own documentation.

| host | documentation, and its own command |
|---|---|
| Claude Code | https://code.claude.com/docs/en/mcp, https://code.claude.com/docs/en/hooks; `claude mcp add-json` |
| Codex | https://developers.openai.com/codex/mcp, and codex/config-reference there; `codex mcp add` |
| Cursor | https://cursor.com/docs/mcp; none |
| VS Code | https://code.visualstudio.com/docs/agents/reference/mcp-configuration; `code --add-mcp`, no removal |
| Gemini CLI | https://geminicli.com/docs/tools/mcp-server; `gemini mcp add` |
| Copilot CLI | https://docs.github.com/en/copilot/how-tos/copilot-cli (add MCP servers); `copilot mcp add` |
| OpenCode | https://opencode.ai/docs/mcp-servers, https://opencode.ai/docs/config; `opencode mcp add` asks a person |
| Zed | https://zed.dev/docs/ai/mcp; none |
| Windsurf | https://docs.windsurf.com/windsurf/cascade/mcp; none |
| Cline | https://docs.cline.bot/getting-started/config; none |
| Amp | https://ampcode.com/manual; `amp mcp add` |

A host's own command is used in the user's own scope alone: none of them says that it follows no link out of a checkout.
Those of Codex and Amp drop or move comments (seen with 0.169.0 and 0.0.1790142911), so they are used where there are
none; what they can't say, such as Codex's `env_vars` and `required`, is edited in behind them.
"""

import json
import os
import shlex
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from punchlist_schemas import rendezvous

Scope = Literal["user", "project"]
SERVER = "punchlist"

TOOLS_RULE = f"mcp__{SERVER}"
"""Claude Code's name for all tools of our server, in `permissions.allow`."""

_ENVIRONMENT = (
    *("PUNCHLIST_CONVERSATION", "PUNCHLIST_SOCKET", "PUNCHLIST_DATA_DIR", "PUNCHLIST_AUTOSTART"),
    *("XDG_RUNTIME_DIR", "XDG_DATA_HOME"),
)
"""What decides where the daemon and the list are; Codex hands only named variables on to a server."""

TOOL_S = 630
"""The timeout of a tool call, in seconds, where a host's file has one: the longest `wait` and half a minute."""

_HOOK_SECONDS = 10
_HOOK_EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")


class Edit(NamedTuple):
    """One member of a configuration: set at `path`, or with `ours` an item of the array there.

    `ours` knows each item that a setup of ours may have left there, also one that names another list or command.
    With `only_removed` a setup leaves the place alone, and a removal takes our item out.
    """

    path: tuple[str, ...]
    value: Any
    ours: Callable[[Any], bool] | None = None
    only_removed: bool = False


class FileEdits(NamedTuple):
    """The edits of one configuration file. Below `root`, if given, no link is followed."""

    path: str
    form: Literal["json", "toml"]
    edits: tuple[Edit, ...]
    root: str | None = None


class Place(NamedTuple):
    """Where a host is set up, and how punchlist is called there.

    Attributes:
        scope: `user` for all projects of this user, `project` for whoever works in this directory.
        directory: The project's directory.
        env: The environment.
        punch: The command, as the host should call it.
        conversation: The list, if the configuration should name it.
        allow: Whether the host may call our tools without asking the person.
    """

    scope: Scope
    directory: str
    env: Mapping[str, str]
    punch: str
    conversation: str | None = None
    allow: bool = False

    @property
    def arguments(self) -> list[str]:
        return [
            "agent",
            "mcp",
            "--dialect",
            "native",
            *(["--conversation", self.conversation] if self.conversation else []),
        ]

    @property
    def server(self) -> dict[str, Any]:
        """How the MCP server is started, as most hosts say it."""
        return {"command": self.punch, "args": self.arguments}

    def user_file(self, name: str) -> str:
        """A file below the home directory; XDG_CONFIG_HOME moves those below `.config`."""
        config = self.env.get("XDG_CONFIG_HOME") or ""
        if name.startswith(".config/") and os.path.isabs(config):
            return os.path.join(config, name.removeprefix(".config/"))
        return os.path.join(rendezvous.home(self.env), name)


class Own(NamedTuple):
    """A host's own command for its user's servers.

    Attributes:
        program: The command's name.
        add: What it is given to add our server, which must not be there; `{command}` stands for the words of our
            command line, `{json}` for what the file says of the server, `{named json}` for that with its name.
        remove: What it is given to remove it; empty where it can't.
        keeps_comments: Whether it leaves other people's comments where they are.
    """

    program: str
    add: tuple[str, ...]
    remove: tuple[str, ...] = ()
    keeps_comments: bool = True


def _plain(place: Place) -> dict[str, Any]:
    return place.server


def _typed(place: Place) -> dict[str, Any]:
    return {"type": "stdio", **place.server}


def _codex(place: Place) -> dict[str, Any]:
    # Without `required`, Codex 0.171 sends its first request before a server that takes a second to start offers tools.
    return {**place.server, "env_vars": list(_ENVIRONMENT), "required": True, "tool_timeout_sec": TOOL_S}


def _copilot(place: Place) -> dict[str, Any]:
    return {"tools": ["*"], "type": "local", **_in_milliseconds(place)}


def _opencode(place: Place) -> dict[str, Any]:
    return {"type": "local", "command": [place.punch, *place.arguments], "enabled": True, "timeout": TOOL_S * 1000}


def _in_milliseconds(place: Place) -> dict[str, Any]:
    return {**place.server, "timeout": TOOL_S * 1000}


def _in_seconds(place: Place) -> dict[str, Any]:
    return {**place.server, "timeout": TOOL_S}


def _zed(place: Place) -> dict[str, Any]:
    return {**place.server, "env": {}}


class Host(NamedTuple):
    """A host of agents.

    Attributes:
        name: What `punch setup` calls it.
        title: What people call it.
        user: The file for all projects of a user, below the home directory.
        project: The file for one project, below its directory; None where there is none.
        member: Where the servers stand in the file.
        then: What is left for the person to do.
        entry: What the file says of our server.
        form: How the file is written.
        moved: A variable that names the directory of the user's file, and the file's name there; empty where the
            variable names the file itself.
        own: The host's own command.
        more: Further files.
    """

    name: str
    title: str
    user: str
    project: str | None
    member: tuple[str, ...]
    then: str
    entry: Callable[[Place], dict[str, Any]] = _plain
    form: Literal["json", "toml"] = "json"
    moved: tuple[str, str] = ("", "")
    own: Own | None = None
    more: Callable[[Place], tuple[FileEdits, ...]] | None = None

    def files(self, place: Place) -> tuple[FileEdits, ...]:
        """The edits of each of the host's files, the file with the server first."""
        edit = Edit((*self.member, SERVER), self.entry(place))
        return FileEdits(self.path(place), self.form, (edit,), _root(place)), *(self.more(place) if self.more else ())

    def path(self, place: Place) -> str:
        if place.scope == "project":
            return os.path.join(place.directory, self.project or "")
        variable, name = self.moved
        directory = place.env.get(variable) if variable else None
        if not directory:
            return place.user_file(self.user)
        return os.path.join(directory, name) if name else directory

    def own_words(self, place: Place, *, remove: bool = False) -> list[str]:
        """The words of the host's own command; empty if it has none."""
        if self.own is None:
            return []
        entry = self.entry(place)
        stands_for = {
            "{command}": [place.punch, *place.arguments],
            "{json}": [json.dumps(entry)],
            "{named json}": [json.dumps({"name": SERVER, **entry})],
        }
        words = self.own.remove if remove else self.own.add
        return [part for word in words for part in stands_for.get(word, [word])]


def _root(place: Place) -> str | None:
    return place.directory if place.scope == "project" else None


def hook_command(place: Place) -> str:
    """The command line of a hook, for a shell; everything in it is quoted."""
    named = ["-c", place.conversation] if place.conversation else []
    return shlex.join([place.punch, "agent", "prime", "--hook", *named])


def _claude_settings(place: Place) -> tuple[FileEdits, ...]:
    entry = {"hooks": [{"type": "command", "command": hook_command(place), "timeout": _HOOK_SECONDS}]}
    hooks = (Edit(("hooks", event), entry, is_our_hook) for event in _HOOK_EVENTS)
    allow = Edit(("permissions", "allow"), TOOLS_RULE, TOOLS_RULE.__eq__, only_removed=not place.allow)
    moved = place.env.get("CLAUDE_CONFIG_DIR")
    if place.scope == "project":
        path = os.path.join(place.directory, ".claude/settings.json")
    else:
        path = os.path.join(moved, "settings.json") if moved else place.user_file(".claude/settings.json")
    return (FileEdits(path, "json", (*hooks, allow), _root(place)),)


def is_our_hook(entry: Any) -> bool:
    """Whether an entry runs `punch agent prime --hook` and nothing else."""
    try:
        (hook,) = entry["hooks"]
        program, *arguments = shlex.split(hook["command"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return False
    words = arguments[1:] if arguments[:1] == ["agent"] else arguments  # version 0.1.0 wrote it without that word
    return os.path.basename(program) == "punch" and words[:2] == ["prime", "--hook"]


HOSTS = (
    Host(
        "claude-code",
        "Claude Code",
        ".claude.json",
        ".mcp.json",
        ("mcpServers",),
        "start a new session; /mcp shows punchlist, /hooks the four hooks",
        entry=_typed,
        moved=("CLAUDE_CONFIG_DIR", ".claude.json"),
        own=Own(
            "claude",
            ("mcp", "add-json", "--scope", "user", SERVER, "{json}"),
            ("mcp", "remove", "--scope", "user", SERVER),
        ),
        more=_claude_settings,
    ),
    Host(
        "codex",
        "Codex",
        ".codex/config.toml",
        ".codex/config.toml",
        ("mcp_servers",),
        "start a new session; /mcp shows punchlist (a project's file needs a trusted project)",
        entry=_codex,
        form="toml",
        moved=("CODEX_HOME", "config.toml"),
        own=Own("codex", ("mcp", "add", SERVER, "--", "{command}"), ("mcp", "remove", SERVER), keeps_comments=False),
    ),
    Host(
        "cursor",
        "Cursor",
        ".cursor/mcp.json",
        ".cursor/mcp.json",
        ("mcpServers",),
        "restart Cursor; its MCP settings show punchlist",
    ),
    Host(
        "vscode",
        "VS Code",
        ".config/Code/User/mcp.json",
        ".vscode/mcp.json",
        ("servers",),
        "run the command 'MCP: List Servers' and start punchlist",
        entry=_typed,
        own=Own("code", ("--add-mcp", "{named json}")),
    ),
    Host(
        "gemini",
        "Gemini CLI",
        ".gemini/settings.json",
        ".gemini/settings.json",
        ("mcpServers",),
        "start a new session in a trusted folder; /mcp shows punchlist",
        entry=_in_milliseconds,
        own=Own(
            "gemini",
            ("mcp", "add", "--scope", "user", SERVER, "{command}"),
            ("mcp", "remove", "--scope", "user", SERVER),
        ),
    ),
    Host(
        "copilot",
        "Copilot CLI",
        ".copilot/mcp-config.json",
        ".github/mcp.json",
        ("mcpServers",),
        "start a new session; /mcp show lists punchlist",
        entry=_copilot,
        moved=("COPILOT_HOME", "mcp-config.json"),
        own=Own("copilot", ("mcp", "add", SERVER, "--", "{command}"), ("mcp", "remove", SERVER)),
    ),
    Host(
        "opencode",
        "OpenCode",
        ".config/opencode/opencode.json",
        "opencode.json",
        ("mcp",),
        "start a new session; opencode mcp list shows punchlist",
        entry=_opencode,
    ),
    Host(
        "zed",
        "Zed",
        ".config/zed/settings.json",
        ".zed/settings.json",
        ("context_servers",),
        "the agent panel's settings show punchlist",
        entry=_zed,
    ),
    Host(
        "windsurf",
        "Windsurf",
        ".codeium/windsurf/mcp_config.json",
        None,
        ("mcpServers",),
        "refresh the MCP servers in Cascade; they show punchlist",
    ),
    Host(
        "cline",
        "Cline",
        ".cline/data/settings/cline_mcp_settings.json",
        None,
        ("mcpServers",),
        "open its MCP servers; they show punchlist",
        entry=_in_seconds,
        moved=("CLINE_MCP_SETTINGS_PATH", ""),
    ),
    Host(
        "amp",
        "Amp",
        ".config/amp/settings.json",
        ".amp/settings.json",
        ("amp.mcpServers",),
        "start a new session; amp mcp list shows punchlist (a project's server has to be approved)",
        own=Own("amp", ("mcp", "add", SERVER, "--", "{command}"), ("mcp", "remove", SERVER), keeps_comments=False),
    ),
)


def host_named(name: str) -> Host:
    return next(host for host in HOSTS if host.name == name)
