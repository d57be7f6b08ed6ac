"""Whether what hosts' configurations say of us still works: the command is there and serves, the hooks are quoted."""

import json
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

from punchlist_apps.hosts import jsonc
from punchlist_apps.hosts.catalog import HOSTS, SERVER, Host, Place, Scope, is_our_hook
from punchlist_apps.hosts.check import ServerError, program_of, tools_of
from punchlist_apps.hosts.files import FileError, read

_SHELL = frozenset("$`;|&<>()*?[]{}~!\n")


class Installed(NamedTuple):
    """One command line of ours in a host's configuration; `is_hook`: a shell runs it.

    `problem` says why there is none, where a file can't be read.
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
    def shown(self) -> str:
        return f"{self.line or shlex.join(self.command)} ({self.path})"


def installed(env: Mapping[str, str], directory: str) -> Iterator[Installed]:
    """All command lines of ours, in the user's files and in those of the project in this directory."""
    scopes: tuple[Scope, Scope] = ("user", "project")
    for host in HOSTS:
        for scope in scopes:
            if host.project is not None or scope == "user":
                yield from _of_host(host, Place(scope, directory, env, "punch"))


def trouble(one: Installed, env: Mapping[str, str]) -> tuple[str, str]:
    """What is wrong with a command line, and what the server itself says helps; both empty where nothing is."""
    if one.problem:
        return one.problem, "correct the file by hand"
    try:
        if one.is_hook:
            program_of(one.command[0], env)
        else:
            tools_of(one.command, env)
    except ServerError as error:
        return f"{error} ({one.path})", error.advice
    if one.is_hook and shlex.join(one.command) != one.line and _SHELL & set(one.line):
        return f"not quoted for the shell: {one.line} ({one.path})", ""
    return "", ""


def _of_host(host: Host, place: Place) -> Iterator[Installed]:
    for wanted in host.files(place):
        head = (host.name, place.scope, host.title, wanted.path)
        try:
            data = read(wanted.path, wanted.root)
            if data is None:
                continue
            text = data.decode()
            whole: Any = tomllib.loads(text) if wanted.form == "toml" else jsonc.parse(text).value
        except (FileError, ValueError, jsonc.JsoncError) as error:
            yield Installed(*head, problem=f"{wanted.path}: {error}")
            continue
        lines: dict[str, None] = {}
        for edit in wanted.edits:
            value = _at(whole, edit.path)
            if edit.path[-1] == SERVER and isinstance(value, dict):
                yield Installed(*head, command=_command(cast("dict[str, Any]", value)))
            elif edit.ours is not None and isinstance(value, list):
                entries = [entry for entry in cast("list[Any]", value) if is_our_hook(entry)]
                lines |= dict.fromkeys(str(entry["hooks"][0]["command"]) for entry in entries)
        for line in lines:
            yield Installed(*head, command=tuple(shlex.split(line)), is_hook=True, line=line)


def _at(whole: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        whole = cast("dict[str, Any]", whole).get(key) if isinstance(whole, dict) else None
    return whole


def _command(entry: dict[str, Any]) -> tuple[str, ...]:
    """The words of a server's command line: in one list, or a command and its arguments."""
    words: list[Any] = []
    for member in (entry.get("command"), entry.get("args", [])):
        words += cast("list[Any]", member) if isinstance(member, list) else [member]
    return tuple(word if isinstance(word, str) else json.dumps(word) for word in words)
