"""The environment variables in which hosts describe a session. Imports nothing, to load fast."""

PROJECT = ("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CURSOR_PROJECT_DIR")
"""The session's project directory, passed to hooks. Claude Code also passes it to its MCP servers."""

PLUGIN = ("PLUGIN_ROOT", "CLAUDE_PLUGIN_ROOT")
"""The directory of the plugin that started the server."""

_SESSION = ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID")
_OWN_PREFIX = "PUNCHLIST_"


def select(env: "dict[str, str]") -> "dict[str, str]":
    """Return the variables that concern a session: those of hosts, and punchlist's own."""
    names = {*PROJECT, *PLUGIN, *_SESSION}
    return {name: value for name, value in env.items() if name in names or name.startswith(_OWN_PREFIX)}
