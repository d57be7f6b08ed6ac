"""The commands of every day in about the time of a bare interpreter.

Handles the plain forms of `punch list`, `show ID`, `status --line`, `add TITLE` and `start`, `done`, `pause` and
`reopen` of one task, imports nothing heavy (a test holds this), and hands everything unusual, from an unknown option
to a missing daemon or a refusal, to the full path.
"""

import os
import sys
import time

from punchlist.base import project
from punchlist.base.text import safe, safe_json, task_id
from punchlist.connection.launch import HOOK_LOOK_S, Target
from punchlist_apps.cli.calling.person import STARTED_MS, person
from punchlist_apps.common import plain_json, wire
from punchlist_apps.common.terminal import render
from punchlist_apps.common.terminal.style import Style, style_of, write
from punchlist_schemas import directory, rendezvous
from punchlist_schemas.project_file import DirectoryError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from punchlist_apps.cli.calling.names import Ask

_VALUES = {
    "-c": "conversation",
    "--conversation": "conversation",
    "--socket": "socket",
    "--data-dir": "data_dir",
}
_OF_FINISHED = {"show", "reopen", "rm", "edit", "move"}
"""Commands whose tasks may be finished ones: the others are offered unfinished tasks alone."""
_FLAGS = {"--json": "json", "--all": "all", "-a": "all", "--no-autostart": "", "--line": "line"}


def run(argv: "Sequence[str]", env: "Mapping[str, str]") -> "int | None":
    """The exit code of a command handled here, or `None` when it needs the full path."""
    # These may be left by an earlier command of this process.
    wire.taken_key()
    wire.completed.clear()
    wire.written.clear()
    if argv and argv[0] == "complete":
        return _complete(argv[1:], env)
    parsed = _parse(argv)
    if parsed is None:
        return None
    words, options = parsed
    if words[:2] == ["daemon", "status"]:
        words = words[1:]
    handler = _HANDLERS.get(words[0]) if words else None
    return handler(words[1:], options, env) if handler else None


def _parse(argv: "Sequence[str]") -> "tuple[list[str], dict[str, str]] | None":
    words: list[str] = []
    options: dict[str, str] = {}
    rest = iter(argv)
    for arg in rest:
        name, equals, value = arg.partition("=")
        if not arg.startswith("-"):
            words.append(arg)
        elif arg in _FLAGS:
            options[_FLAGS[arg]] = "1"
        elif name in _VALUES and equals and name.startswith("--"):
            options[_VALUES[name]] = value
        elif arg in _VALUES:
            value = next(rest, "")
            if not value:
                return None
            options[_VALUES[arg]] = value
        else:
            return None
    return words, options


def _target(options: "dict[str, str]", env: "Mapping[str, str]") -> Target:
    autostart = False if "" in options else None
    target = Target(options.get("socket"), options.get("data_dir"), autostart=autostart, env=env)
    target.look_at(_note)
    return target


def _note(text: str) -> None:
    sys.stderr.write(f"{safe(text)}\n")


def _conversation(options: "dict[str, str]", env: "Mapping[str, str]") -> "str | None":
    """The list that is meant; None: there is something to say about it first."""
    if (named := options.get("conversation")) is not None:
        return named
    try:
        name, meant = project.of_directory(env) or (directory.OUTSIDE, None)
    except DirectoryError:
        return None
    data_dir = rendezvous.data_dir(env, options.get("data_dir"))
    if meant is None:
        return name
    if meant.file is None:
        return name if project.was_announced(data_dir, name, time.time()) else None
    return name if meant.is_allowed(data_dir) else None


def _list(words: "list[str]", options: "dict[str, str]", env: "Mapping[str, str]") -> "int | None":
    if words or "line" in options:
        return None if words or {"json", "all"} & options.keys() else _prompt(options, env)
    conversation = _conversation(options, env)
    result = conversation and wire.call(_target(options, env), "task.list", {"conversation": conversation})
    if not conversation or not result:
        return None
    answer = plain_json.decode(result)
    if "damaged" in answer:
        return None  # a list that is not whole needs a word about that
    if not answer["tasks"] and (answer.get("version") or conversation != directory.OUTSIDE):
        return None  # an unused or deleted list: the full path names who deleted it
    if "json" in options:
        return write(safe_json(result) + "\n")
    style = style_of(env, now=int(time.time() * 1000))
    folded = style.terminal and "all" not in options
    note = render.shared_note(answer.get("shared"))
    lines = render.list_lines(
        answer.get("name", conversation), answer["tasks"], answer["counts"], style, note=note, folded=folded
    )
    return write("\n".join(lines) + "\n")


def _prompt(options: "dict[str, str]", env: "Mapping[str, str]") -> int:
    """One line about the list that is meant, for a shell prompt: whatever is wrong, there is just nothing to say."""
    try:
        name = options.get("conversation") or (project.of_directory(env) or (directory.OUTSIDE,))[0]
        result = wire.call(_target(options, env), "conversation.get", {"conversation": name}, timeout_s=HOOK_LOOK_S)
    except (DirectoryError, TimeoutError):
        return 0
    answer: dict[str, Any] = plain_json.decode(result) if result else {"conversation": {}}
    told = answer["conversation"]
    return write(render.header(answer.get("name", name), told["counts"], Style()) + "\n") if told.get("version") else 0


def _show(words: "list[str]", options: "dict[str, str]", env: "Mapping[str, str]") -> "int | None":
    if len(words) != 1 or not task_id(words[0]).strip() or not {"line", "all"}.isdisjoint(options):
        return None
    conversation = _conversation(options, env)
    params = {"conversation": conversation or "", "task": task_id(words[0])}
    result = conversation and wire.call(_target(options, env), "task.get", params)
    if not result:
        return None
    answer = plain_json.decode(result)
    if "damaged" in answer:
        return None
    if "json" in options:
        return write(safe_json(result) + "\n")
    style = style_of(env, now=int(time.time() * 1000))
    return write("\n".join(render.detail_lines(answer["task"], style, answer.get("path", ()))) + "\n")


def _status(words: "list[str]", options: "dict[str, str]", env: "Mapping[str, str]") -> "int | None":
    if words or "line" not in options or not {"json", "all", "conversation"}.isdisjoint(options):
        return None
    try:
        with open(rendezvous.status_path(_target(options, env).socket), encoding="utf-8") as file:
            line = file.read(200)
    except (OSError, UnicodeError):
        return None
    # Only the two numbers: somebody else may have written the file, and must not write to this terminal.
    numbers = line.removesuffix(" in progress\n").split(" open, ")
    if len(numbers) != 2 or not all(number.isascii() and number.isdecimal() for number in numbers):  # noqa: PLR2004
        return None
    return write(line)


def _add(words: "list[str]", options: "dict[str, str]", env: "Mapping[str, str]") -> "int | None":
    if not words or wire.are_titles(words):
        return None
    result = _change("task.add", {"title": " ".join(words)}, options, env)
    if result is None:
        return None
    _note_restart(plain_json.decode(result), options, env)
    if "json" in options:
        return write(safe_json(result) + "\n")
    style = style_of(env, now=int(time.time() * 1000))
    return write("\n".join(render.task_lines(plain_json.decode(result)["task"], style)) + "\n")


def _note_restart(added: "dict[str, Any]", options: "dict[str, str]", env: "Mapping[str, str]") -> None:
    """Print a note if an addition started a deleted list again."""
    if wire.may_restart(added) and (name := _conversation(options, env)):
        from punchlist_apps.cli.printing import deletions

        try:
            read = wire.call(_target(options, env), "event.read", deletions.first_event(name))
        except TimeoutError:
            return  # the addition is done, and the note is a convenience
        if read and (note := deletions.describe_restart(plain_json.decode(read), added, name)):
            _note(note)


def _set(status: str) -> "Callable[[list[str], dict[str, str], Mapping[str, str]], int | None]":
    def handler(words: "list[str]", options: "dict[str, str]", env: "Mapping[str, str]") -> "int | None":
        task = task_id(words[0]) if len(words) == 1 else ""
        if not (task.isascii() and task.isdecimal()):
            return None
        began = int(time.time() * 1000)
        result = _change("task.set_status", {"task": task, "status": status}, options, env)
        if result is None:
            return None
        from punchlist_apps.cli.printing.earlier import is_old_completion

        if is_old_completion(plain_json.decode(result), began):
            return None  # the full path says who was first
        if "json" in options:
            return write(safe_json(result) + "\n")
        style = style_of(env, now=int(time.time() * 1000))
        return write("\n".join(render.step_lines(plain_json.decode(result), style)) + "\n")

    return handler


def _complete(words: "Sequence[str]", env: "Mapping[str, str]") -> int:
    """Print what fits at the end of a command line, one `VALUE<TAB>text` a line, for shells: tasks, lists or names.

    A shell runs this at each TAB: whatever is wrong, there is just nothing to offer.

    Args:
        words: `task`, `list` or `name`, and behind `--` the words of the command line so far, without the program.
        env: The environment variables.
    """
    kind, given = words[0] if words else "", words[2:]
    options = {_VALUES[name]: value for name, value in zip(given, given[1:], strict=False) if name in _VALUES}
    conversation = "" if kind == "list" else _conversation(options, env) or ""
    if kind not in ("task", "list", "name") or (kind != "list" and not conversation):
        return 0

    def ask(method: str, params: "dict[str, Any]") -> "dict[str, Any] | None":
        found = wire.call(_target(options, env), method, params, timeout_s=HOOK_LOOK_S)
        return plain_json.decode(found) if found else None

    try:
        return write("".join(_OFFERED[kind](ask, conversation, given)))
    except TimeoutError:
        return 0


def _lists(ask: "Ask", _conversation: str, _given: "Sequence[str]") -> "Iterable[str]":
    found = ask("conversation.list", {}) or {}
    names = found.get("names", {})
    for row in found.get("conversations", ()):
        name = row["conversation"]
        yield f"{safe(names.get(name, name))}\t{safe(row.get('title', ''))}\n"


def _tasks(ask: "Ask", conversation: str, given: "Sequence[str]") -> "Iterable[str]":
    for row in (ask("task.list", {"conversation": conversation}) or {}).get("tasks", ()):
        if row["status"] not in render.FINISHED or not _OF_FINISHED.isdisjoint(given):
            yield f"{safe(row['id'])}\t{safe(row['title'])}\n"


def _names(ask: "Ask", conversation: str, given: "Sequence[str]") -> "Iterable[str]":
    from punchlist_apps.cli.calling.names import find

    if "assign" in given:  # its last word is a name, the others are tasks
        yield from _tasks(ask, conversation, given)
    for name in find(ask, conversation):
        yield f"{safe(name)}\t\n"


_OFFERED = {"task": _tasks, "list": _lists, "name": _names}
"""Kind of completion → function that yields its lines."""


def _change(method: str, params: "dict[str, Any]", options: "dict[str, str]", env: "Mapping[str, str]") -> "str | None":
    if not {"line", "all"}.isdisjoint(options):
        return None
    if "conversation" in options and os.isatty(2):
        return None  # a new list of that name is told to whoever is at the terminal
    conversation = _conversation(options, env)
    if not conversation:
        return None
    params = {"conversation": conversation, "actor": person(env), **params}
    return wire.call(_target(options, env), method, params, writes=True)


def _start(words: "list[str]", options: "dict[str, str]", env: "Mapping[str, str]") -> "int | None":
    task = task_id(words[0]) if len(words) == 1 else ""
    if not (task.isascii() and task.isdecimal()):
        return None
    owner = env.get("PUNCHLIST_OWNER") or person(env)
    members: dict[str, Any] = {"task": task, "owner": owner, "lease_ms": STARTED_MS, "keep": True}
    result = _change("task.claim", members, options, env) or _begun(task, owner, options, env)
    if result is None:
        return None
    if "json" in options:
        return write(safe_json(result) + "\n")
    style = style_of(env, now=int(time.time() * 1000))
    answer = plain_json.decode(result)
    return write("\n".join(render.task_lines(answer["task"], style, path=answer.get("path", ()))) + "\n")


def _begun(task: str, owner: str, options: "dict[str, str]", env: "Mapping[str, str]") -> "str | None":
    """A task that could not be claimed because this owner has it already, as it is; None: there is more to say."""
    conversation = _conversation(options, env)
    if not conversation or not {"line", "all"}.isdisjoint(options):
        return None
    result = wire.call(_target(options, env), "task.get", {"conversation": conversation, "task": task}, same_build=True)
    answer: dict[str, Any] = plain_json.decode(result) if result else {}
    shown = answer.get("task", {})
    mine = shown.get("owner") == owner and shown["status"] == "in_progress" and "damaged" not in answer
    return result if mine else None


_HANDLERS = {
    "list": _list,
    "ls": _list,
    "show": _show,
    "status": _status,
    "add": _add,
    "start": _start,
    "done": _set("completed"),
    "pause": _set("paused"),
    "reopen": _set("pending"),
}
