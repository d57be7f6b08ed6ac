"""The environment variables in which hosts describe a session. Imports nothing, to load fast."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import MutableMapping

PROJECT = ("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CURSOR_PROJECT_DIR")
"""The session's project directory, passed to hooks. Claude Code also passes it to its MCP servers."""

PLUGIN = ("PLUGIN_ROOT", "CLAUDE_PLUGIN_ROOT")
"""The directory of the plugin that started the server."""

PLACES = ("HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR")
"""What determines the default paths of the daemon's socket and data."""

_SESSION = ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID")
_OWN_PREFIX = "PUNCHLIST_"


def select(env: "dict[str, str]") -> "dict[str, str]":
    """Return the variables that concern a session: those of hosts, punchlist's own, and `PLACES`."""
    return {name: value for name, value in env.items() if _is_of_session(name) or name in PLACES}


def remove(env: "MutableMapping[str, str]") -> None:
    """Remove the variables of a session, except `PLACES`, which also concern other programs."""
    for name in [*filter(_is_of_session, env)]:
        del env[name]


def _is_of_session(name: str) -> bool:
    return name in (*PROJECT, *PLUGIN, *_SESSION) or name.startswith(_OWN_PREFIX)
