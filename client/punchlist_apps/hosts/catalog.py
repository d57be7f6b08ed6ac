"""The hosts that `punch setup` supports, with their files and entries as the hosts document them.

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

A host's own command is used only for the user's files, because no host documents that its command doesn't follow links
out of a checkout. The commands of Codex and Amp drop or move comments (seen with 0.169.0 and 0.0.1790142911), so they
are used only for files without comments. Members that a command can't set, such as Codex's `env_vars` and `required`,
are added by editing the file afterwards.
"""

import json
import os
import re
import shlex
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any, Literal, NamedTuple, cast

from punchlist_apps.hosts.hooks import HOOK_HOSTS
from punchlist_schemas import rendezvous

Scope = Literal["user", "project"]
SERVER = "punchlist"

TOOLS_RULE = f"mcp__{SERVER}"
"""Claude Code's name for all tools of the server, in `permissions.allow`."""

_VARIABLES = (
    *("PUNCHLIST_CONVERSATION", "PUNCHLIST_SOCKET", "PUNCHLIST_DATA_DIR", "PUNCHLIST_AUTOSTART"),
    *("XDG_RUNTIME_DIR", "XDG_DATA_HOME"),
)
"""Variables that determine the daemon and the list. Codex passes a server only the variables listed in `env_vars`."""

TOOL_S = 630
"""Timeout for a tool call in seconds, for hosts that have such a setting: the longest `wait` plus 30 seconds."""

_HOOK_SECONDS = 10
_CODEX_END_SECONDS = 3

PLUGIN_MARK = "// Written by punch setup"
"""Start of a plugin file that a setup wrote."""


class Edit(NamedTuple):
    """One member of a configuration, which is set at `path`. With `is_ours`, an item of the array at `path`.

    Attributes:
        path: The keys of the member.
        value: Its value.
        is_ours: Recognizes every item that an earlier setup may have added, even one for another list or command.
        only_removed: Whether the edit applies only to removals, which remove our item. In that case a setup leaves the
            array unchanged.
        is_shared: Whether the member may be the user's: a setup adds it if it is missing, and a removal leaves it.
    """

    path: tuple[str, ...]
    value: Any
    is_ours: Callable[[Any], bool] | None = None
    only_removed: bool = False
    is_shared: bool = False


class FileEdits(NamedTuple):
    """The edits to one configuration file. Links below `root` are not followed.

    A file of the form `plugin` has one edit, whose value is the whole file.
    """

    path: str
    form: Literal["json", "toml", "plugin"]
    edits: tuple[Edit, ...]
    root: str | None = None


class Place(NamedTuple):
    """The scope of a setup, and the command that the host runs.

    Attributes:
        scope: `user` for all projects of this user, `project` for all users of this directory.
        directory: The project's directory.
        env: The environment.
        punch: The command, as the host should call it.
        conversation: The list to write into the configuration, if any.
        allow: Whether the host may call the tools without asking the user.
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
        """The MCP server's command, in the format that most hosts use."""
        return {"command": self.punch, "args": self.arguments}

    def get_user_path(self, name: str) -> str:
        """Return a path in the home directory. XDG_CONFIG_HOME replaces `.config`."""
        config = self.env.get("XDG_CONFIG_HOME") or ""
        if name.startswith(".config/") and os.path.isabs(config):
            return os.path.join(config, name.removeprefix(".config/"))
        return os.path.join(rendezvous.home(self.env), name)


class CommandSpec(NamedTuple):
    """A host's own command for the user's servers.

    Attributes:
        program: The command's name.
        add: Arguments to add the server, which must not exist yet. `{command}` stands for the server's command line,
            `{json}` for its entry, `{named json}` for the entry with its name.
        remove: Arguments to remove the server; empty if the command can't remove servers.
        keeps_comments: Whether the command preserves comments in the file.
    """

    program: str
    add: tuple[str, ...]
    remove: tuple[str, ...] = ()
    keeps_comments: bool = True


def _build_plain(place: Place) -> dict[str, Any]:
    return place.server


def _build_typed(place: Place) -> dict[str, Any]:
    return {"type": "stdio", **place.server}


def _build_codex(place: Place) -> dict[str, Any]:
    # Without `required`, Codex 0.171 sends its first request before a server that takes a second to start can offer
    # tools.
    return {**place.server, "env_vars": list(_VARIABLES), "required": True, "tool_timeout_sec": TOOL_S}


def _build_copilot(place: Place) -> dict[str, Any]:
    return {"tools": ["*"], "type": "local", **_build_with_timeout_ms(place)}


def _build_opencode(place: Place) -> dict[str, Any]:
    return {"type": "local", "command": [place.punch, *place.arguments], "enabled": True, "timeout": TOOL_S * 1000}


def _build_with_timeout_ms(place: Place) -> dict[str, Any]:
    return {**place.server, "timeout": TOOL_S * 1000}


def _build_with_timeout_s(place: Place) -> dict[str, Any]:
    return {**place.server, "timeout": TOOL_S}


def _build_zed(place: Place) -> dict[str, Any]:
    return {**place.server, "env": {}}


class Host(NamedTuple):
    """A host that runs agents.

    Attributes:
        name: Its name for `punch setup`.
        title: Its product name.
        user: The file for all projects of a user, relative to the home directory.
        project: The file for one project, relative to the project's directory; None if the host has no such file.
        member: The keys that lead to the servers in the file.
        next_step: The user's next step after the setup.
        build_entry: Returns the server's entry in the file.
        form: The file's format.
        override: An environment variable that contains the directory of the user's file, and the file's name in it. The
            name is empty if the variable contains the file's path.
        command: The host's own command.
        list_hooks: Returns the edits for the hooks in the file that contains the servers.
        list_more: Returns the edits to other files.
    """

    name: str
    title: str
    user: str
    project: str | None
    member: tuple[str, ...]
    next_step: str
    build_entry: Callable[[Place], dict[str, Any]] = _build_plain
    form: Literal["json", "toml"] = "json"
    override: tuple[str, str] = ("", "")
    command: CommandSpec | None = None
    list_hooks: Callable[[Place], tuple[Edit, ...]] = lambda _place: ()
    list_more: Callable[[Place], tuple[FileEdits, ...]] | None = None

    def list_edits(self, place: Place) -> tuple[FileEdits, ...]:
        """Return the edits to the host's files. The file that contains the server comes first."""
        edit = Edit((*self.member, SERVER), self.build_entry(place))
        more = self.list_more(place) if self.list_more else ()
        return FileEdits(self.get_path(place), self.form, (edit, *self.list_hooks(place)), _get_root(place)), *more

    def get_path(self, place: Place) -> str:
        if place.scope == "project":
            return os.path.join(place.directory, self.project or "")
        variable, name = self.override
        directory = place.env.get(variable) if variable else None
        if not directory:
            return place.get_user_path(self.user)
        return os.path.join(directory, name) if name else directory

    def build_command(self, place: Place, *, remove: bool = False) -> list[str]:
        """Return the arguments of the host's own command; empty if it has none."""
        if self.command is None:
            return []
        entry = self.build_entry(place)
        placeholders = {
            "{command}": [place.punch, *place.arguments],
            "{json}": [json.dumps(entry)],
            "{named json}": [json.dumps({"name": SERVER, **entry})],
        }
        words = self.command.remove if remove else self.command.add
        return [part for word in words for part in placeholders.get(word, [word])]


def _get_root(place: Place) -> str | None:
    return place.directory if place.scope == "project" else None


def build_hook_command(place: Place, host: str = "claude-code") -> str:
    """Return the command line of a host's hook, quoted for a shell."""
    named = [] if host == "claude-code" else ["--host", host]
    selector = ["-c", place.conversation] if place.conversation else []
    return shlex.join([place.punch, "agent", "prime", "--hook", *named, *selector])


def _list_hooks(place: Place, host: str, extra: Mapping[str, Any], *, is_nested: bool = True) -> tuple[Edit, ...]:
    """Return an edit for each event of the host's hooks.

    Args:
        place: The scope of the setup.
        host: The host.
        extra: Members of the hook in addition to its command.
        is_nested: Whether the hook is in an array of its own.
    """
    hook = {"command": build_hook_command(place, host), **extra}
    entry = {"hooks": [{"type": "command", **hook}]} if is_nested else hook
    return tuple(Edit(("hooks", event), entry, is_our_hook) for event in HOOK_HOSTS[host].events)


def _build_claude_settings(place: Place) -> tuple[FileEdits, ...]:
    hooks = _list_hooks(place, "claude-code", {"timeout": _HOOK_SECONDS})
    allow = Edit(("permissions", "allow"), TOOLS_RULE, TOOLS_RULE.__eq__, only_removed=not place.allow)
    path = _locate(place, ".claude/settings.json", "CLAUDE_CONFIG_DIR", "settings.json")
    return (FileEdits(path, "json", (*hooks, allow), _get_root(place)),)


def _build_codex_hooks(place: Place) -> tuple[FileEdits, ...]:
    path = _locate(place, ".codex/hooks.json", "CODEX_HOME", "hooks.json")
    hooks = _list_hooks(place, "codex", {"timeout": _HOOK_SECONDS})
    # Codex warns of a longer timeout at the end of a session.
    ends = _list_hooks(place, "codex", {"timeout": _CODEX_END_SECONDS})
    edits = (end if end.path[-1] == "SessionEnd" else hook for hook, end in zip(hooks, ends, strict=True))
    return (FileEdits(path, "json", tuple(edits), _get_root(place)),)


def _list_gemini_hooks(place: Place) -> tuple[Edit, ...]:
    return _list_hooks(place, "gemini", {"name": SERVER, "timeout": _HOOK_SECONDS * 1000})


_VERSION = Edit(("version",), 1, is_shared=True)


def _build_cursor_hooks(place: Place) -> tuple[FileEdits, ...]:
    hooks = _list_hooks(place, "cursor", {"timeout": _HOOK_SECONDS}, is_nested=False)
    path = _locate(place, ".cursor/hooks.json")
    return (FileEdits(path, "json", (_VERSION, *hooks), _get_root(place)),)


def _build_copilot_hooks(place: Place) -> tuple[FileEdits, ...]:
    hooks = _list_hooks(place, "copilot", {"type": "command", "timeoutSec": _HOOK_SECONDS}, is_nested=False)
    user = _locate(place, ".copilot/hooks/punchlist.json", "COPILOT_HOME", "hooks/punchlist.json")
    path = user if place.scope == "user" else os.path.join(place.directory, ".github/hooks/punchlist.json")
    return (FileEdits(path, "json", (_VERSION, *hooks), _get_root(place)),)


def _build_opencode_plugin(place: Place) -> tuple[FileEdits, ...]:
    command = shlex.split(build_hook_command(place, "opencode"))
    template = resources.files("punchlist_apps.hosts").joinpath("opencode.js").read_text()
    text = f"{PLUGIN_MARK} opencode, which also replaces and removes it.\n" + template.replace(
        "$COMMAND", json.dumps(command)
    )
    folder = ".opencode" if place.scope == "project" else ".config/opencode"
    return (FileEdits(_locate(place, f"{folder}/plugins/punchlist.js"), "plugin", (Edit((), text),), _get_root(place)),)


def read_plugin_command(text: str) -> tuple[str, ...]:
    """Return the command line in a plugin file; empty if no setup wrote the file.

    Raises:
        ValueError: The command line was edited and can't be parsed.
    """
    line = re.search(r"^const COMMAND = (.*);$", text, re.MULTILINE) if text.startswith(PLUGIN_MARK) else None
    return tuple(str(word) for word in json.loads(line[1])) if line else ()


def _locate(place: Place, name: str, variable: str = "", moved: str = "") -> str:
    """Return the path of a file in the project's or home directory, or in the directory that a variable contains."""
    if place.scope == "project":
        return os.path.join(place.directory, name)
    directory = place.env.get(variable)
    return os.path.join(directory, moved) if directory else place.get_user_path(name)


def get_hook_line(entry: Any) -> str:
    """Return the command line of an entry that runs one command; empty if it has another form."""
    if not isinstance(entry, dict):
        return ""
    hook = cast("dict[str, Any]", entry)
    inner = hook.get("hooks", [hook])
    if not isinstance(inner, list) or len(cast("list[Any]", inner)) != 1 or not isinstance(inner[0], dict):
        return ""
    line = cast("dict[str, Any]", inner[0]).get("command")
    return line if isinstance(line, str) else ""


def is_our_hook(entry: Any) -> bool:
    """Return whether an entry runs `punch agent prime --hook` and nothing else."""
    try:
        program, *arguments = shlex.split(get_hook_line(entry))
    except ValueError:
        return False
    words = arguments[1:] if arguments[:1] == ["agent"] else arguments  # version 0.1.0 wrote it without "agent"
    return os.path.basename(program) == "punch" and words[:2] == ["prime", "--hook"]


HOSTS = (
    Host(
        "claude-code",
        "Claude Code",
        ".claude.json",
        ".mcp.json",
        ("mcpServers",),
        "start a new session; /mcp shows punchlist, /hooks the four hooks",
        build_entry=_build_typed,
        override=("CLAUDE_CONFIG_DIR", ".claude.json"),
        command=CommandSpec(
            "claude",
            ("mcp", "add-json", "--scope", "user", SERVER, "{json}"),
            ("mcp", "remove", "--scope", "user", SERVER),
        ),
        list_more=_build_claude_settings,
    ),
    Host(
        "codex",
        "Codex",
        ".codex/config.toml",
        ".codex/config.toml",
        ("mcp_servers",),
        "start a new session and trust its hooks (/hooks); /mcp shows punchlist (a project has to be trusted)",
        build_entry=_build_codex,
        form="toml",
        override=("CODEX_HOME", "config.toml"),
        command=CommandSpec(
            "codex", ("mcp", "add", SERVER, "--", "{command}"), ("mcp", "remove", SERVER), keeps_comments=False
        ),
        list_more=_build_codex_hooks,
    ),
    Host(
        "cursor",
        "Cursor",
        ".cursor/mcp.json",
        ".cursor/mcp.json",
        ("mcpServers",),
        "restart Cursor; its settings show punchlist's server and hooks",
        list_more=_build_cursor_hooks,
    ),
    Host(
        "vscode",
        "VS Code",
        ".config/Code/User/mcp.json",
        ".vscode/mcp.json",
        ("servers",),
        "run the command 'MCP: List Servers' and start punchlist",
        build_entry=_build_typed,
        command=CommandSpec("code", ("--add-mcp", "{named json}")),
    ),
    Host(
        "gemini",
        "Gemini CLI",
        ".gemini/settings.json",
        ".gemini/settings.json",
        ("mcpServers",),
        "start a new session in a trusted folder; /mcp shows punchlist",
        build_entry=_build_with_timeout_ms,
        command=CommandSpec(
            "gemini",
            ("mcp", "add", "--scope", "user", SERVER, "{command}"),
            ("mcp", "remove", "--scope", "user", SERVER),
        ),
        list_hooks=_list_gemini_hooks,
    ),
    Host(
        "copilot",
        "Copilot CLI",
        ".copilot/mcp-config.json",
        ".github/mcp.json",
        ("mcpServers",),
        "start a new session; /mcp show lists punchlist",
        build_entry=_build_copilot,
        override=("COPILOT_HOME", "mcp-config.json"),
        command=CommandSpec("copilot", ("mcp", "add", SERVER, "--", "{command}"), ("mcp", "remove", SERVER)),
        list_more=_build_copilot_hooks,
    ),
    Host(
        "opencode",
        "OpenCode",
        ".config/opencode/opencode.json",
        "opencode.json",
        ("mcp",),
        "start a new session; opencode mcp list shows punchlist",
        build_entry=_build_opencode,
        list_more=_build_opencode_plugin,
    ),
    Host(
        "zed",
        "Zed",
        ".config/zed/settings.json",
        ".zed/settings.json",
        ("context_servers",),
        "the agent panel's settings show punchlist",
        build_entry=_build_zed,
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
        build_entry=_build_with_timeout_s,
        override=("CLINE_MCP_SETTINGS_PATH", ""),
    ),
    Host(
        "amp",
        "Amp",
        ".config/amp/settings.json",
        ".amp/settings.json",
        ("amp.mcpServers",),
        "start a new session; amp mcp list shows punchlist (a project's server has to be approved)",
        command=CommandSpec(
            "amp", ("mcp", "add", SERVER, "--", "{command}"), ("mcp", "remove", SERVER), keeps_comments=False
        ),
    ),
)


def get_host(name: str) -> Host:
    return next(host for host in HOSTS if host.name == name)
