"""Finds punchlist's plugin in the hosts that install plugins. It brings the server and hooks that a setup would add.

| host | where it records its plugins |
|---|---|
| Claude Code | `enabledPlugins` in the settings of the user, the project, and this person in the project |
| Codex | `plugins` in `config.toml` |
| Gemini CLI | a directory below `extensions`, and rules in `extension-enablement.json` that turn it off |

VS Code's extension isn't among them: it offers no server where a file configures one.
"""

import fnmatch
import os
import shlex
import tomllib
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from punchlist_apps.hosts import jsonc
from punchlist_apps.hosts.catalog import SERVER, Host, Place
from punchlist_schemas import rendezvous


class Plugin(NamedTuple):
    """An enabled plugin.

    Attributes:
        name: Its name in the host.
        is_local: Whether only the files of the project enable it.
        turn_off: The command that removes it; if it is local, the one that disables it for this user in the project.
    """

    name: str
    is_local: bool
    turn_off: str


class _PluginHost(NamedTuple):
    find: Callable[[Host, Place], str | None]
    uninstall: str
    disable: str = ""


def find_plugin(host: Host, place: Place) -> Plugin | None:
    """Return the plugin that the host uses in this scope. A file that can't be read contains none."""
    plugin_host = _HOSTS.get(host.name)
    name = plugin_host.find(host, place) if plugin_host else None
    if plugin_host is None or name is None:
        return None
    is_local = plugin_host.find(host, place._replace(scope="user")) is None
    turn_off = plugin_host.disable if is_local else plugin_host.uninstall
    return Plugin(name, is_local, turn_off.format(shlex.quote(name)))


def _find_in_claude(_host: Host, place: Place) -> str | None:
    user = place.env.get("CLAUDE_CONFIG_DIR") or place.get_user_path(".claude")
    own = os.path.join(place.directory, ".claude")
    paths = [os.path.join(user, "settings.json")]
    if place.scope == "project":
        paths += [os.path.join(own, "settings.json"), os.path.join(own, "settings.local.json")]
    enabled: dict[str, Any] = {}
    for path in paths:  # later files override earlier ones
        enabled |= _get_member(_read(path), "enabledPlugins")
    return next((name for name, value in enabled.items() if _is_ours(name) and value), None)


def _find_in_codex(host: Host, place: Place) -> str | None:
    path = host.get_path(place._replace(scope="user"))
    for name, entry in _get_member(_read(path), "plugins").items():
        if _is_ours(name) and isinstance(entry, dict) and cast("dict[str, Any]", entry).get("enabled", True):
            return name
    return None


def _find_in_gemini(_host: Host, place: Place) -> str | None:
    folder = place.get_user_path(".gemini/extensions")
    if not os.path.isdir(os.path.join(folder, SERVER)):
        return None
    rules = _get_member(_read(os.path.join(folder, "extension-enablement.json")), SERVER).get("overrides")
    # The last rule that matches wins; `!` turns the extension off.
    place_of_use = f"{place.directory if place.scope == 'project' else rendezvous.home(place.env)}/"
    is_enabled = True
    for rule in cast("list[Any]", rules) if isinstance(rules, list) else []:
        if isinstance(rule, str) and fnmatch.fnmatchcase(place_of_use, rule.removeprefix("!")):
            is_enabled = not rule.startswith("!")
    return SERVER if is_enabled else None


_HOSTS = {
    "claude-code": _PluginHost(_find_in_claude, "claude plugin uninstall {}", "claude plugin disable {} --scope local"),
    "codex": _PluginHost(_find_in_codex, "codex plugin remove {}"),
    "gemini": _PluginHost(
        _find_in_gemini, "gemini extensions uninstall {}", "gemini extensions disable {} --scope workspace"
    ),
}


def _is_ours(name: str) -> bool:
    """Return whether a plugin's name, followed by its marketplace, is punchlist's."""
    return name.partition("@")[0] == SERVER


def _read(path: str) -> Any:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        return tomllib.loads(text) if path.endswith(".toml") else jsonc.parse(text).value
    except (OSError, ValueError, jsonc.JsoncError):
        return None


def _get_member(value: Any, name: str) -> dict[str, Any]:
    member = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
    return cast("dict[str, Any]", member) if isinstance(member, dict) else {}
