"""`punch complete`: completions for a command line, called by the shells' completion scripts.

Shells run it each time TAB is pressed, so it prints nothing on an error and never starts a daemon.
"""

from collections.abc import Iterable, Sequence

from punchlist.base.text import safe
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.calling.names import Call, find_names
from punchlist_apps.cli.parsing.parser import parse
from punchlist_apps.common.terminal.render import FINISHED
from punchlist_apps.common.terminal.style import write
from punchlist_schemas.project_file import DirectoryError

_TARGET_OPTIONS = {
    "-c": "conversation",
    "--conversation": "conversation",
    "--socket": "socket",
    "--data-dir": "data_dir",
}
_ACCEPT_FINISHED = {"show", "reopen", "rm", "edit", "move"}
"""Commands that also accept finished tasks. For other commands, only unfinished tasks are offered."""


def print_completions(words: Sequence[str]) -> int:
    """Print one `VALUE<TAB>text` per line.

    Args:
        words: `task`, `list` or `name`, then `--` and the arguments typed so far, without the program's name.
    """
    kind, typed = words[0] if words else "", words[2:]
    args = parse(["list"])
    for option, value in zip(typed, typed[1:], strict=False):
        if option in _TARGET_OPTIONS:
            setattr(args, _TARGET_OPTIONS[option], value)
    context = Context(args)
    complete = _COMPLETERS.get(kind)
    if complete is None:
        return 0
    try:
        conversation = "" if kind == "list" else context.find_conversation()
        return write("".join(complete(context.peek, conversation, typed)))
    except DirectoryError:
        return 0


def _complete_lists(call: Call, _conversation: str, _typed: Sequence[str]) -> Iterable[str]:
    result = call("conversation.list", {}) or {}
    names = result.get("names", {})
    for row in result.get("conversations", ()):
        name = row["conversation"]
        yield f"{safe(names.get(name, name))}\t{safe(row.get('title', ''))}\n"


def _complete_tasks(call: Call, conversation: str, typed: Sequence[str]) -> Iterable[str]:
    for row in (call("task.list", {"conversation": conversation}) or {}).get("tasks", ()):
        if row["status"] not in FINISHED or not _ACCEPT_FINISHED.isdisjoint(typed):
            yield f"{safe(row['id'])}\t{safe(row['title'])}\n"


def _complete_names(call: Call, conversation: str, typed: Sequence[str]) -> Iterable[str]:
    if "assign" in typed:  # accepts tasks, then a name
        yield from _complete_tasks(call, conversation, typed)
    for name in find_names(call, conversation):
        yield f"{safe(name)}\t\n"


_COMPLETERS = {"task": _complete_tasks, "list": _complete_lists, "name": _complete_names}
"""Kind of completion → function that yields its lines."""
