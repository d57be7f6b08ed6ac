"""Finds punchlist's plugin in the hosts that install plugins. It brings the server and hooks that a setup would add.

| host | where it records its plugins |
|---|---|
| Claude Code | `enabledPlugins` in the settings of the user, the project, and this person in the project |
| Codex | `plugins` in `config.toml` |
| VS Code | `extensions.json` in its directory of extensions; ours provides the server |
| Gemini CLI | a directory below `extensions`, and rules in `extension-enablement.json` that turn it off |
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

_EXTENSION = "punchlist.punchlist"


class Plugin(NamedTuple):
    """An enabled plugin.

    Attributes:
        name: Its name in the host.
        uninstall: The command that removes it.
    """

    name: str
    uninstall: str


def find_plugin(host: Host, place: Place) -> Plugin | None:
    """Return the plugin that the host uses in this scope. A file that can't be read contains none."""
    find = _FINDERS.get(host.name)
    return find(host, place) if find else None


def _find_in_claude(host: Host, place: Place) -> Plugin | None:
    user = place.env.get("CLAUDE_CONFIG_DIR") or place.get_user_path(".claude")
    own = os.path.join(place.directory, ".claude")
    paths = [os.path.join(user, "settings.json")]
    if place.scope == "project":
        paths += [os.path.join(own, "settings.json"), os.path.join(own, "settings.local.json")]
    enabled: dict[str, Any] = {}
    for path in paths:  # later files override earlier ones
        enabled |= _get_member(_read(path), "enabledPlugins")
    name = next((name for name, value in enabled.items() if _is_ours(name) and value), None)
    return Plugin(name, f"claude plugin uninstall {shlex.quote(name)}") if name else None


def _find_in_codex(host: Host, place: Place) -> Plugin | None:
    path = host.get_path(place._replace(scope="user"))
    for name, entry in _get_member(_read(path), "plugins").items():
        if _is_ours(name) and isinstance(entry, dict) and cast("dict[str, Any]", entry).get("enabled", True):
            return Plugin(name, f"codex plugin remove {shlex.quote(name)}")
    return None


def _find_in_vscode(_host: Host, place: Place) -> Plugin | None:
    entries = _read(place.get_user_path(".vscode/extensions/extensions.json"))
    for entry in cast("list[Any]", entries) if isinstance(entries, list) else []:
        if _get_member(entry, "identifier").get("id") == _EXTENSION:
            return Plugin(_EXTENSION, "punch setup vscode-extension --remove")
    return None


def _find_in_gemini(host: Host, place: Place) -> Plugin | None:
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
    return Plugin(SERVER, f"gemini extensions uninstall {SERVER}") if is_enabled else None


_FINDERS: dict[str, Callable[[Host, Place], Plugin | None]] = {
    "claude-code": _find_in_claude,
    "codex": _find_in_codex,
    "vscode": _find_in_vscode,
    "gemini": _find_in_gemini,
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
