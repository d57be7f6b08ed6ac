"""Checks punchlist's entries in hosts' configurations: commands must exist and work, hooks must be quoted."""

import json
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

from punchlist_apps.hosts import jsonc
from punchlist_apps.hosts.catalog import (
    HOSTS,
    SERVER,
    Host,
    Place,
    Scope,
    get_hook_line,
    is_our_hook,
    read_plugin_command,
)
from punchlist_apps.hosts.check import ServerError, find_program, list_tools
from punchlist_apps.hosts.files import FileError, read

_SHELL = frozenset("$`;|&<>()*?[]{}~!\n")


class ConfiguredCommand(NamedTuple):
    """A punchlist command line in a host's configuration.

    Attributes:
        is_hook: Whether it is a hook, not a server.
        line: A hook's command line, as it is written in the configuration.
        problem: Why the file can't be read; in that case there is no command.
    """

    host: str
    scope: Scope
    title: str
    path: str
    command: tuple[str, ...] = ()
    is_hook: bool = False
    line: str = ""
    problem: str = ""

    @property
    def text(self) -> str:
        return f"{self.line or shlex.join(self.command)} ({self.path})"


def find_commands(env: Mapping[str, str], directory: str) -> Iterator[ConfiguredCommand]:
    """Find punchlist's command lines in the user's files and in the files of the project in this directory."""
    scopes: tuple[Scope, Scope] = ("user", "project")
    for host in HOSTS:
        for scope in scopes:
            if host.project is not None or scope == "user":
                yield from _find_in_host(host, Place(scope, directory, env, "punch"))


def check_command(configured: ConfiguredCommand, env: Mapping[str, str]) -> tuple[str, str]:
    """Return the problem with a command line and the server's advice; both are empty if the command works."""
    if configured.problem:
        return configured.problem, "correct the file by hand"
    try:
        if configured.is_hook:
            find_program(configured.command[0], env)
        else:
            list_tools(configured.command, env)
    except ServerError as error:
        return f"{error} ({configured.path})", error.advice
    if configured.is_hook and shlex.join(configured.command) != configured.line and _SHELL & set(configured.line):
        return f"not quoted for the shell: {configured.line} ({configured.path})", ""
    return "", ""


def _find_in_host(host: Host, place: Place) -> Iterator[ConfiguredCommand]:
    for target in host.list_edits(place):
        head = (host.name, place.scope, host.title, target.path)
        try:
            data = read(target.path, target.root)
            if data is None:
                continue
            text = data.decode()
            if target.form == "plugin":
                words = read_plugin_command(text)
                if words:
                    yield ConfiguredCommand(*head, command=words, is_hook=True, line=shlex.join(words))
                continue
            config: Any = tomllib.loads(text) if target.form == "toml" else jsonc.parse(text).value
        except (FileError, ValueError, jsonc.JsoncError) as error:
            yield ConfiguredCommand(*head, problem=f"{target.path}: {error}")
            continue
        lines: dict[str, None] = {}
        for edit in target.edits:
            value = _get_at(config, edit.path)
            if edit.path[-1:] == (SERVER,) and isinstance(value, dict):
                yield ConfiguredCommand(*head, command=_parse_command(cast("dict[str, Any]", value)))
            elif edit.is_ours is not None and isinstance(value, list):
                entries = [entry for entry in cast("list[Any]", value) if is_our_hook(entry)]
                lines |= dict.fromkeys(map(get_hook_line, entries))
        for line in lines:
            yield ConfiguredCommand(*head, command=tuple(shlex.split(line)), is_hook=True, line=line)


def _get_at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
    return value


def _parse_command(entry: dict[str, Any]) -> tuple[str, ...]:
    """Return the words of a server's command line, which is either a single list or a command and its arguments."""
    words: list[Any] = []
    for member in (entry.get("command"), entry.get("args", [])):
        words += cast("list[Any]", member) if isinstance(member, list) else [member]
    return tuple(word if isinstance(word, str) else json.dumps(word) for word in words)
